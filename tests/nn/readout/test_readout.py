"""The read-outs against loops over graphs in plain PyTorch, and against PyG."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Conv1d, Flatten, Linear, Module, Sequential
from torch_geometric.nn import GCNConv
from torch_geometric.nn.aggr import SortAggregation

import lgcn
from lgcn.nn.readout import JoinedReadout, KLargestReadout, SimpleReadout, SortPooling
from lgcn.utils.choices import readout_names

SIZES = [3, 0, 7, 1, 0]  # fewer than k nodes, none, more, one, none at the end
NAMES = ("sum", "mean", "max", "k_largest", "sort", "sum+max+k_largest")


def offsets(sizes: list[int]) -> Tensor:
    return torch.tensor([0, *sizes]).cumsum(0)


def features(sizes: list[int], channels: int = 4, seed: int = 0) -> Tensor:
    """Values with ties, in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-5, 6, (sum(sizes), channels), generator=generator).double() / 2


def largest_of_each(rows: Tensor, k: int) -> Tensor:
    """[k, C]: the k largest values of each column, then zeros."""
    grid = torch.zeros(k, rows.size(1), dtype=rows.dtype)
    found = rows.sort(0, descending=True).values[:k]
    grid[: len(found)] = found
    return grid


def first_by_last_feature(rows: Tensor, k: int) -> Tensor:
    grid = torch.zeros(k, rows.size(1), dtype=rows.dtype)
    order = sorted(range(len(rows)), key=lambda i: -float(rows[i, -1]))[:k]
    for place, node in enumerate(order):
        grid[place] = rows[node]
    return grid


def slow(readout: Module, rows: Tensor) -> Tensor:
    """What a read-out gives for one graph."""
    if isinstance(readout, KLargestReadout):
        grid = largest_of_each(rows, readout.k)
        out: Tensor = readout.cnn(grid.t().unsqueeze(0))
        return out.reshape(-1)
    if isinstance(readout, SortPooling):
        grid = first_by_last_feature(rows, readout.k)
        if readout.cnn is None:
            return grid.reshape(-1)
        out = readout.cnn(grid.t().unsqueeze(0))
        return out.reshape(-1)
    assert isinstance(readout, SimpleReadout)
    if len(rows) == 0:
        return rows.new_zeros(rows.size(1))
    return rows.max(0).values if readout.reduce == "max" else getattr(rows, readout.reduce)(0)


READOUTS = {
    "sum": lambda: SimpleReadout("sum"),
    "mean": lambda: SimpleReadout("mean"),
    "max": lambda: SimpleReadout("max"),
    "k_largest": lambda: KLargestReadout(4, 3, k=5),
    "k_largest, k=1": lambda: KLargestReadout(4, 3, k=1, cnn="double"),
    "k_largest, double": lambda: KLargestReadout(4, 3, k=4, cnn="double", activation=torch.tanh),
    "k_largest, shared": lambda: KLargestReadout(4, 4, k=4, cnn="shared"),
    "k_largest, depthwise": lambda: KLargestReadout(4, 4, k=4, cnn="depthwise"),
    "k_largest, module": lambda: KLargestReadout(
        4, 3, k=2, cnn=Sequential(Flatten(), Linear(8, 3))
    ),
    "sort": lambda: SortPooling(4, 3, k=5),
    "sort, none": lambda: SortPooling(4, k=5, cnn="none"),
    "sort, module": lambda: SortPooling(4, 3, k=2, cnn=Conv1d(4, 3, 2)),
}


@pytest.mark.parametrize("name", READOUTS)
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(0, 9), max_size=6), seed=st.integers(0, 99))
def test_every_graph_is_read_out_as_if_it_were_alone(
    name: str, sizes: list[int], seed: int
) -> None:
    readout = READOUTS[name]().double().eval()
    x = features(sizes, seed=seed)
    out = readout(x, ptr=offsets(sizes))
    assert out.size(0) == len(sizes)
    for row, rows in zip(out, x.split(sizes), strict=True):
        torch.testing.assert_close(row, slow(readout, rows))


@pytest.mark.parametrize("name", [name for name in READOUTS if name != "sort, module"])
def test_graphs_without_nodes_give_zeros_and_the_cnn_its_bias(name: str) -> None:
    readout = READOUTS[name]().eval()
    out = readout(torch.ones(2, 4), ptr=torch.tensor([0, 0, 2, 2]))
    if name != "k_largest, module":  # whose linear map has a bias
        assert not out[[0, 2]].any()
    assert readout(torch.ones(0, 4), ptr=torch.tensor([0, 0])).shape == (1, out.size(1))
    assert readout(torch.ones(0, 4), ptr=torch.tensor([0])).shape == (0, out.size(1))


@pytest.mark.parametrize("name", READOUTS)
def test_gradients(name: str) -> None:
    readout = READOUTS[name]().double()
    x = torch.randn(sum(SIZES), 4, dtype=torch.float64, requires_grad=True)  # without ties
    weights = tuple(readout.parameters())

    def of(x: Tensor, *_: Tensor) -> Tensor:
        out: Tensor = readout(x, ptr=offsets(SIZES))
        return out

    assert torch.autograd.gradcheck(of, (x, *weights))
    assert torch.autograd.gradgradcheck(of, (x, *weights))


@pytest.mark.parametrize("name", [name for name in READOUTS if not name.startswith("sort")])
def test_the_order_of_nodes_does_not_matter(name: str) -> None:
    readout = READOUTS[name]().double().eval()
    x, ptr = features(SIZES), offsets(SIZES)
    shuffled = torch.cat([rows[torch.randperm(len(rows))] for rows in x.split(SIZES)])
    torch.testing.assert_close(readout(shuffled, ptr=ptr), readout(x, ptr=ptr))


def test_the_gradient_of_a_maximum_goes_to_the_first_node() -> None:
    x = torch.tensor([[1.0], [2.0], [2.0]], requires_grad=True)
    SimpleReadout("max")(x, torch.tensor([0, 3])).sum().backward()
    assert x.grad is not None
    assert x.grad.flatten().tolist() == [0, 1, 0]


def test_all_negative_values_are_kept_unless_zeros_compete() -> None:
    x, ptr = torch.tensor([[-2.0], [-1.0]]), torch.tensor([0, 2])
    sums = torch.ones(1, 1, 2)
    for zeros, wanted in (("pad", -3.0), ("compete", 0.0)):
        readout = KLargestReadout(1, 1, k=2, zeros=zeros)  # type: ignore[arg-type]
        readout.load_state_dict({"cnn.0.weight": sums, "cnn.0.bias": torch.zeros(1)})
        assert readout(x, ptr=ptr).item() == wanted
    assert SimpleReadout("max")(x, ptr).item() == -1


def test_pyg_has_the_same_sort_pooling() -> None:
    torch.manual_seed(1)
    x, sizes = torch.randn(20, 4), [4, 9, 1, 6]
    own = SortPooling(4, k=5, cnn="none")(x, offsets(sizes))
    batch = torch.arange(4).repeat_interleave(torch.tensor(sizes))
    torch.testing.assert_close(own, SortAggregation(5)(x, batch))


def test_in_a_pyg_model_by_the_batch_vector() -> None:
    conv, readout = GCNConv(7, 32), KLargestReadout(32, 64, k=10)
    x, edge_index = torch.randn(9, 7), torch.tensor([[0, 1, 2, 5, 6], [1, 2, 0, 6, 7]])
    batch = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 2])
    h = conv(x, edge_index).relu()
    out = readout(h, batch)
    torch.testing.assert_close(out, readout(h, ptr=torch.tensor([0, 3, 5, 9])))
    order = torch.randperm(9)
    torch.testing.assert_close(readout(h[order], batch[order]), out)
    assert readout(h, batch, dim_size=5).shape == (5, 64)
    torch.testing.assert_close(readout(h), readout(h, torch.zeros(9, dtype=torch.long)))


def test_joined_readouts_lie_side_by_side() -> None:
    joined = JoinedReadout("sum+max+k_largest", 4, k=3)
    x, ptr = features(SIZES).float(), offsets(SIZES)
    out = joined(x, ptr)
    assert joined.out_channels == out.size(1) == 12
    for part, readout in zip(out.split(4, 1), joined.readouts, strict=True):
        torch.testing.assert_close(part, readout(x, ptr=ptr))
    weight = joined.readouts[2].cnn[0].weight  # type: ignore[union-attr, index]
    before = weight.clone()
    joined.reset_parameters()
    assert not torch.equal(weight, before)


def test_a_reused_tensor_of_offsets_is_read_again() -> None:
    ptr = torch.tensor([0, 1, 3])
    readout = SimpleReadout("sum")
    assert readout(torch.ones(3, 1), ptr).flatten().tolist() == [1, 2]
    ptr[1] = 2
    assert readout(torch.ones(3, 1), ptr).flatten().tolist() == [2, 1]


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_offsets_of_both_types(dtype: torch.dtype) -> None:
    x, ptr = features(SIZES), offsets(SIZES)
    readout = JoinedReadout("+".join(("sum", "mean", "max", "k_largest", "sort")), 4).double()
    torch.testing.assert_close(readout(x, ptr.to(dtype)), readout(x, ptr))


@pytest.mark.parametrize("name", NAMES)
def test_in_half_precision(name: str) -> None:
    readout = JoinedReadout(name, 4)
    x, ptr = features(SIZES).bfloat16(), offsets(SIZES)
    with torch.autocast("cpu", torch.bfloat16):
        out = readout(x, ptr)
    torch.testing.assert_close(out.float(), readout(x.float(), ptr), atol=0.2, rtol=0.05)


def test_wrong_arguments_are_named() -> None:
    x, ptr = torch.ones(3, 4), torch.tensor([0, 3])
    for make in (KLargestReadout, SortPooling):
        with pytest.raises(ValueError, match="k must be at least 1, got 0"):
            make(4, 3, k=0)
        with pytest.raises(
            ValueError, match=r"cnn must .*'shared', 'depthwise' or a module, got 'x'"
        ):
            make(4, 3, cnn="x")
        with pytest.raises(ValueError, match=r"in_channels = 5 features, got shape \[3, 4\]"):
            make(5, 3)(x, ptr=ptr)
        with pytest.raises(ValueError, match=r"cnn must map \[1, 4, 16\] to \[1, 3\]"):
            make(4, 3, cnn=Flatten())(x, ptr=ptr)
    with pytest.raises(ValueError, match=r"zeros must .* got 'none'"):
        KLargestReadout(4, 3, zeros="none")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reduce must be sum, mean or max, got 'min'"):
        SimpleReadout("min")  # type: ignore[arg-type]
    for wrong in ([0, 2], [], [0, 4]):
        with pytest.raises(ValueError, match=r"ptr must rise from 0 .*\(3\)"):
            SimpleReadout("sum")(x, torch.tensor(wrong, dtype=torch.long))
    SimpleReadout("sum")(x, ptr)
    with pytest.raises(ValueError, match=r"one row per node of the graphs \(3\), got 2"):
        SimpleReadout("sum")(x[:2], ptr)


@pytest.mark.parametrize("wrong", ["", "sums", "sum+", "sum+sum", "k-largest"])
def test_unknown_names_are_named(wrong: str) -> None:
    with pytest.raises(ValueError, match=r"readout must be one of sum, mean, .* joined with"):
        readout_names(wrong)


def test_text_forms() -> None:
    assert repr(KLargestReadout(4, 3, k=5)) == "KLargestReadout(4, 3, k=5)"
    assert repr(SortPooling(4, k=5, cnn="none")) == "SortPooling(4, 20, k=5)"
    assert repr(SimpleReadout("max")) == "SimpleReadout(max)"
    assert lgcn.KLargestReadout is KLargestReadout
