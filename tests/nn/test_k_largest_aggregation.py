"""KLargestAggregation against plain Python, alone and inside PyG's convolutions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv, GINConv, SAGEConv, SimpleConv

from lgcn import Graph, KLargestAggregation

RandomGraph = Callable[..., Graph]
K = 3
INDEX = [2, 0, 2, 5, 0, 2, 2, 3, 5]  # unsorted; groups 1, 4 and 6 are empty
NUM_GROUPS = 7
WEIGHT = [0.5, -2.0, 3.0]


def largest(x: Tensor, group: int, channel: int) -> list[float]:
    """The K largest values of a group in descending order, without zeros."""
    values = [row[channel] for row, i in zip(x.tolist(), INDEX, strict=True) if i == group]
    return sorted(values, reverse=True)[:K]


def expected(x: Tensor, reduce: str) -> Tensor:
    rows = []
    for group in range(NUM_GROUPS):
        columns = [largest(x, group, channel) for channel in range(x.size(1))]
        padded = [column + [0.0] * (K - len(column)) for column in columns]
        if reduce == "cat":
            rows.append([column[rank] for rank in range(K) for column in padded])
        elif reduce == "mean":
            rows.append([sum(column) / max(len(column), 1) for column in columns])
        else:
            rows.append([sum(w * v for w, v in zip(WEIGHT, c, strict=True)) for c in padded])
    return torch.tensor(rows)


def aggregation(reduce: str) -> KLargestAggregation:
    module = KLargestAggregation(K, reduce)
    if reduce == "learn":
        module.weight.data = torch.tensor(WEIGHT)
    return module


@pytest.fixture
def x() -> Tensor:
    return torch.randn(len(INDEX), 4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("reduce", ["mean", "learn", "cat"])
def test_unsorted_groups_some_empty(x: Tensor, reduce: str) -> None:
    actual = aggregation(reduce)(x, torch.tensor(INDEX), dim_size=NUM_GROUPS)
    torch.testing.assert_close(actual, expected(x, reduce))


@pytest.mark.parametrize("reduce", ["mean", "learn", "cat"])
def test_groups_as_ptr(x: Tensor, reduce: str) -> None:
    index, order = torch.tensor(INDEX).sort(stable=True)
    ptr = torch.tensor([0, *torch.bincount(index, minlength=NUM_GROUPS).cumsum(0)])
    actual = aggregation(reduce)(x[order], ptr=ptr)
    torch.testing.assert_close(actual, expected(x, reduce))


def test_competing_zeros_replace_negative_values() -> None:
    x, index = torch.tensor([[-1.0], [-2.0], [4.0]]), torch.tensor([0, 0, 0])
    assert KLargestAggregation(2, "cat")(x, index).tolist() == [[4.0, -1.0]]
    assert KLargestAggregation(2, "cat", zeros="compete")(x, index).tolist() == [[4.0, 0.0]]


def test_learned_weights_start_as_the_mean_and_get_gradients(x: Tensor) -> None:
    module = KLargestAggregation(K, "learn")
    assert module.weight.tolist() == pytest.approx([1 / K] * K)
    module(x, torch.tensor(INDEX)).sum().backward()
    ranks = expected(x, "cat").view(NUM_GROUPS, K, -1).sum(dim=(0, 2))
    torch.testing.assert_close(module.weight.grad, ranks)


def test_gradient_goes_to_selected_rows_only() -> None:
    x = torch.tensor([[3.0], [1.0], [2.0]], requires_grad=True)
    KLargestAggregation(2)(x, torch.tensor([0, 0, 0])).sum().backward()
    assert x.grad.tolist() == [[0.5], [0.0], [0.5]]


@pytest.mark.parametrize(
    "make",
    [
        lambda aggr: SimpleConv(aggr=aggr),
        lambda aggr: SAGEConv(5, 4, aggr=aggr),
        lambda aggr: GINConv(torch.nn.Linear(5, 4), aggr=aggr),
        lambda aggr: GCNConv(5, 4, aggr=aggr),
    ],
    ids=["SimpleConv", "SAGEConv", "GINConv", "GCNConv"],
)
def test_inside_pyg_convolutions(
    random_graph: RandomGraph, make: Callable[[object], torch.nn.Module]
) -> None:
    graph = random_graph()
    torch.manual_seed(0)
    # With k above all degrees the mean is PyG's own mean aggregation.
    conv = make(KLargestAggregation(k=20))
    torch.manual_seed(0)
    mean = make("mean")
    out = conv(graph.x, graph.edge_index)
    torch.testing.assert_close(out, mean(graph.x, graph.edge_index))
    torch.manual_seed(0)
    assert not torch.allclose(make(KLargestAggregation(k=1))(graph.x, graph.edge_index), out)


def test_repr() -> None:
    assert repr(KLargestAggregation(4, "cat")) == "KLargestAggregation(k=4, reduce='cat')"


def test_wrong_arguments_are_named(x: Tensor) -> None:
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        KLargestAggregation(0)
    with pytest.raises(ValueError, match=r"reduce must .*mean, learn, cat, got 'max'"):
        KLargestAggregation(2, "max")
    with pytest.raises(ValueError, match="two-dimensional"):
        KLargestAggregation(2)(x.unsqueeze(0), torch.tensor(INDEX))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32])
def test_groups_of_any_integer_type(dtype: torch.dtype) -> None:
    x, index = torch.randn(6, 3), torch.tensor([2, 0, 2, 1, 0, 2])
    aggregate = KLargestAggregation(2)
    torch.testing.assert_close(aggregate(x, index.to(dtype)), aggregate(x, index))


@pytest.mark.parametrize("index", [[0, -1], [0, 5]])
def test_groups_that_are_not_there_are_named(index: list[int]) -> None:
    with pytest.raises(ValueError, match="index must lie between 0 and 1, got"):
        KLargestAggregation(2)(torch.ones(2, 1), torch.tensor(index), dim_size=2)


@pytest.mark.parametrize("ptr", [[0, 2**62, -(2**62), 2], [0, 3], [0.0, 2.0]])
def test_wrong_offsets_are_refused(ptr: list[float]) -> None:
    with pytest.raises(ValueError, match="rowptr must"):
        KLargestAggregation(2)(torch.ones(2, 1), ptr=torch.tensor(ptr))
