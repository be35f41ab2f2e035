"""LGConv: by hand, against dense torch, and in every form of input."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Conv1d, Flatten, Linear, Module, Sequential
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lgcn import Graph, LGConv
from lgcn.ops import spmm

RandomGraph = Callable[..., Graph]


def dense_grid(x: Tensor, adjacency: Tensor, k: int, zeros: str) -> Tensor:
    """The selection as the released program makes it: all N x C x N products, then top_k.

    With ``zeros="pad"`` nodes that are no neighbours are left out of the ranking.
    """
    products = adjacency.unsqueeze(1) * x.t().unsqueeze(0)
    if zeros == "pad":
        products = products.masked_fill((adjacency == 0).unsqueeze(1), -torch.inf)
        filler = -torch.inf
    else:
        filler = 0.0
    products = torch.cat([products, torch.full((*products.shape[:2], k), filler)], dim=2)
    top = products.topk(k).values
    top = top.masked_fill(top == -torch.inf, 0)
    return torch.cat([x.unsqueeze(2), top], dim=2).transpose(1, 2)


def dense_adjacency(graph: Graph, rank: str, self_loops: bool) -> Tensor:
    edge_index, weight = graph.edge_index, graph.edge_weight
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    if rank == "normalized":
        edge_index, weight = gcn_norm(
            edge_index, weight, graph.num_nodes, add_self_loops=self_loops
        )
    matrix[edge_index[1], edge_index[0]] = 1.0 if weight is None else weight
    if self_loops and rank == "raw":
        matrix += torch.eye(graph.num_nodes)
    return matrix


def test_repr_and_shape(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 7, k=4)
    assert repr(conv) == "LGConv(5, 7, k=4)"
    assert conv(graph.x, graph).shape == (12, 7)


def test_figure_2_of_the_paper() -> None:
    x = torch.tensor([[7.0], [5.0], [0.0], [9.0], [3.0], [0.0], [6.0]])
    graph = Graph.as_given(torch.tensor([[1, 2, 3, 4, 5, 6], [0] * 6]), 7)
    grid = LGConv(1, 5, k=4).select(x, x, graph.adjacency())
    assert grid[0, :, 0].tolist() == [7, 9, 6, 5, 3]
    assert grid[1, :, 0].tolist() == [5, 0, 0, 0, 0]


def test_by_hand() -> None:
    conv = LGConv(1, 1, k=2)
    first, _, _, second = conv.cnn
    with torch.no_grad():
        first.weight.copy_(torch.tensor([[[1.0, 2.0]]]))
        first.bias.fill_(1.0)
        second.weight.copy_(torch.tensor([[[3.0, 5.0]]]))
    x = torch.tensor([[10.0], [4.0], [6.0]])
    out = conv(x, torch.tensor([[1, 2], [0, 0]]))
    # Node 0 has the grid 10, 6, 4: 10 + 12 + 1 = 23, 6 + 8 + 1 = 15, 3 * 23 + 5 * 15 = 144.
    # Nodes 1 and 2 have none but themselves: 3 * (4 + 1) + 5 = 20 and 3 * (6 + 1) + 5 = 26.
    assert out.tolist() == [[144.0], [20.0], [26.0]]


@pytest.mark.parametrize("k", range(1, 10))
def test_two_convolutions_reach_length_one(k: int) -> None:
    conv = LGConv(6, 3, k=k)
    first, last = conv.cnn[0], conv.cnn[-1]
    assert conv.cnn(torch.randn(2, 6, k + 1)).shape == (2, 3, 1)
    if k % 2 == 0:
        assert first.kernel_size == last.kernel_size == (k // 2 + 1,)
    assert first.out_channels == last.in_channels == (6 + 3) // 2
    assert first.bias is not None
    assert last.bias is None


def test_activation_is_between_the_convolutions(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 3, k=4, activation=torch.tanh)
    grid = conv.select(graph.x, graph.x, graph.adjacency()).transpose(1, 2)
    expected = conv.cnn[-1](conv.cnn[0](grid).tanh()).squeeze(2)
    torch.testing.assert_close(conv(graph.x, graph), expected)


def test_single_convolution_covers_all_positions(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 3, k=4, cnn="single")
    (layer,) = conv.cnn
    grid = conv.select(graph.x, graph.x, graph.adjacency())
    expected = torch.einsum("npc,dcp->nd", grid, layer.weight) + layer.bias
    torch.testing.assert_close(conv(graph.x, graph), expected)


@pytest.mark.parametrize(
    "make", [lambda: Conv1d(5, 3, 5), lambda: Sequential(Flatten(), Linear(25, 3))]
)
def test_own_cnn(random_graph: RandomGraph, make: Callable[[], Module]) -> None:
    graph, cnn = random_graph(), make()
    conv = LGConv(5, 3, k=4, cnn=cnn)
    grid = conv.select(graph.x, graph.x, graph.adjacency()).transpose(1, 2)
    torch.testing.assert_close(conv(graph.x, graph), cnn(grid).reshape(12, 3))
    before = [p.clone() for p in cnn.parameters()]
    conv.reset_parameters()
    assert all(not torch.equal(a, b) for a, b in zip(before, cnn.parameters(), strict=True))


def test_a_shared_kernel_weights_positions_alike_in_every_feature(
    random_graph: RandomGraph,
) -> None:
    graph, conv = random_graph(), LGConv(5, 5, k=4, cnn="shared")
    grid = conv.select(graph.x, graph.x, graph.adjacency())
    torch.testing.assert_close(conv(graph.x, graph), grid.sum(1))  # which it starts as
    assert sum(p.numel() for p in conv.parameters()) == 5
    torch.nn.init.normal_(conv.cnn.weight)
    expected = torch.einsum("npc,p->nc", grid, 1 + conv.cnn.weight)
    torch.testing.assert_close(conv(graph.x, graph), expected)
    conv.reset_parameters()
    torch.testing.assert_close(conv(graph.x, graph), grid.sum(1))
    with pytest.raises(ValueError, match=r"out_channels must equal in_channels \(5\) .* got 3"):
        LGConv(5, 3, cnn="shared")


def test_a_shared_kernel_starts_as_propagation_where_all_neighbours_are_selected(
    random_graph: RandomGraph,
) -> None:
    graph = random_graph()
    conv = LGConv(5, 5, k=12, cnn="shared", rank="normalized", self_loops=True)
    adjacency = graph.adjacency(normalize=True, self_loops=True)
    propagated = spmm(adjacency.rowptr, adjacency.col, adjacency.values(), graph.x)
    torch.testing.assert_close(conv(graph.x, graph), graph.x + propagated)


@pytest.mark.parametrize("options", [{}, {"mean": True}, {"sum": True}])
def test_a_depthwise_kernel_weights_positions_of_each_feature_on_its_own(
    random_graph: RandomGraph, options: dict[str, bool]
) -> None:
    graph, conv = random_graph(), LGConv(5, 5, k=4, cnn="depthwise", **options)
    grid = conv.select(graph.x, graph.x, graph.adjacency())
    start = grid[:, -1] if options else grid.mean(1)
    torch.testing.assert_close(conv(graph.x, graph), start)
    assert sum(p.numel() for p in conv.parameters()) == 5 * conv.positions
    torch.nn.init.normal_(conv.cnn.weight)
    expected = torch.einsum("npc,pc->nc", grid, conv.cnn.weight) + start
    torch.testing.assert_close(conv(graph.x, graph), expected)
    conv.reset_parameters()
    torch.testing.assert_close(conv(graph.x, graph), start)
    with pytest.raises(ValueError, match=r"out_channels must equal in_channels \(5\) .* got 3"):
        LGConv(5, 3, cnn="depthwise")


def test_own_cnn_of_a_wrong_shape_is_refused(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(), LGConv(5, 3, k=4, cnn=Conv1d(5, 3, 2))
    message = r"map \[12, 5, 5\] to \[12, 3\] or \[12, 3, 1\], got \[12, 3, 4\]"
    with pytest.raises(ValueError, match=message):
        conv(graph.x, graph)


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("weighted", [False, True])
def test_all_forms_of_the_graph_give_the_same(
    random_graph: RandomGraph, rank: str, weighted: bool
) -> None:
    graph = random_graph(weighted=weighted)
    conv = LGConv(5, 3, k=4, rank=rank, self_loops=True)
    expected = conv(graph.x, graph)
    weight = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    adj_t = torch.sparse_coo_tensor(
        graph.edge_index.flip(0), weight, (12, 12), check_invariants=True
    )
    normalize = rank == "normalized"
    torch.testing.assert_close(conv(graph.x, graph.edge_index, graph.edge_weight), expected)
    torch.testing.assert_close(conv(graph.x, adj_t), expected)
    torch.testing.assert_close(conv(graph.x, adj_t.to_sparse_csr()), expected)
    csr = graph.adjacency(normalize=normalize, self_loops=True)
    torch.testing.assert_close(conv(graph.x, csr), expected)


def test_bipartite_graph() -> None:
    torch.manual_seed(0)
    source, own = torch.randn(6, 5), torch.randn(3, 5)
    edge_index = torch.tensor([[5, 0, 1, 4, 2], [0, 0, 0, 2, 2]])
    conv = LGConv(5, 2, k=2)
    grid = torch.zeros(3, 3, 5)
    grid[:, 0] = own
    for target, sources in ((0, [5, 0, 1]), (2, [4, 2])):
        grid[target, 1:] = source[sources].sort(dim=0, descending=True).values[:2]
    torch.testing.assert_close(conv((source, own), edge_index), conv.convolve(grid))
    adj_t = torch.sparse_coo_tensor(
        edge_index.flip(0), torch.ones(5), (3, 6), check_invariants=True
    )
    torch.testing.assert_close(conv((source, own), adj_t), conv.convolve(grid))
    grid[:, 0] = 0
    torch.testing.assert_close(conv((source, None), edge_index), conv.convolve(grid))
    torch.testing.assert_close(conv((source, None), adj_t), conv.convolve(grid))


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("zeros", ["pad", "compete"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_selection_equals_dense_products(
    random_graph: RandomGraph, rank: str, zeros: str, self_loops: bool, weighted: bool
) -> None:
    graph = random_graph(weighted=weighted)
    conv = LGConv(5, 3, k=4, rank=rank, zeros=zeros, self_loops=self_loops)
    expected = dense_grid(graph.x, dense_adjacency(graph, rank, self_loops), 4, zeros)
    adjacency = graph.adjacency(normalize=rank == "normalized", self_loops=self_loops)
    torch.testing.assert_close(conv.select(graph.x, graph.x, adjacency), expected)
    torch.testing.assert_close(conv(graph.x, graph), conv.convolve(expected))


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_all_neighbours_ends_the_grid(
    random_graph: RandomGraph, rank: str, self_loops: bool, weighted: bool
) -> None:
    graph = random_graph(weighted=weighted)
    matrix = dense_adjacency(graph, rank, self_loops)
    conv = LGConv(5, 3, k=4, rank=rank, self_loops=self_loops, mean=True)
    adjacency = graph.adjacency(normalize=rank == "normalized", self_loops=self_loops)
    grid = conv.select(graph.x, graph.x, adjacency)
    assert grid.shape == (12, 6, 5)
    torch.testing.assert_close(grid[:, :5], dense_grid(graph.x, matrix, 4, "pad"))
    total = matrix @ graph.x
    degree = matrix.sum(1, keepdim=True)
    torch.testing.assert_close(grid[:, 5], total / degree if rank == "raw" else total)


def test_the_mean_of_no_neighbours_is_zero() -> None:
    graph = Graph.as_given(torch.tensor([[0], [1]]), 2)
    grid = LGConv(1, 1, k=1, mean=True).select(*[torch.full((2, 1), 3.0)] * 2, graph.adjacency())
    assert grid[:, 2].tolist() == [[0.0], [3.0]]


@pytest.mark.parametrize("cnn", ["double", "single", "shared", "depthwise"])
def test_every_cnn_covers_the_mean(random_graph: RandomGraph, cnn: str) -> None:
    graph, conv = random_graph(), LGConv(5, 5, k=4, cnn=cnn, mean=True)
    grid = conv.select(graph.x, graph.x, graph.adjacency())
    out = conv.convolve(grid)
    assert out.shape == (12, 5)
    grid[:, 5] += 1
    assert not torch.isclose(conv.convolve(grid), out).any()


def test_gradients_flow_through_the_mean(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    conv = LGConv(5, 2, k=1, cnn="single", mean=True).double()
    x, weight = (t.double().requires_grad_() for t in (graph.x, graph.edge_weight))

    def layer(x: Tensor, weight: Tensor) -> Tensor:
        return conv(x, graph.edge_index, weight)

    assert torch.autograd.gradcheck(layer, (x, weight))


@settings(max_examples=20)
@given(
    seed=st.integers(0, 999), rank=st.sampled_from(("raw", "normalized")), weighted=st.booleans()
)
def test_renumbering_the_nodes_renumbers_the_output(
    random_graph: RandomGraph, seed: int, rank: str, weighted: bool
) -> None:
    graph = random_graph(seed=seed, weighted=weighted)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(seed))
    conv = LGConv(5, 3, k=3, rank=rank, self_loops=True)
    torch.testing.assert_close(
        conv(graph.x[order], graph.subgraph(order)), conv(graph.x, graph)[order]
    )


@pytest.mark.parametrize("option", ["dropout", "adj_dropout"])
def test_dropout_in_training_only(random_graph: RandomGraph, option: str) -> None:
    graph = random_graph()
    conv, plain = LGConv(5, 3, k=4, **{option: 0.5}), LGConv(5, 3, k=4)
    plain.load_state_dict(conv.state_dict())
    torch.manual_seed(0)
    assert not torch.allclose(conv(graph.x, graph), conv(graph.x, graph))
    torch.testing.assert_close(conv.eval()(graph.x, graph), plain(graph.x, graph))


@pytest.mark.parametrize("zeros", ["pad", "compete"])
def test_adjacency_dropout_is_that_of_removed_edges(random_graph: RandomGraph, zeros: str) -> None:
    graph = random_graph(30, 0.3)
    conv = LGConv(5, 3, k=4, zeros=zeros, adj_dropout=0.4)
    torch.manual_seed(0)
    actual = conv.select(graph.x, graph.x, graph.adjacency())
    torch.manual_seed(0)
    removed = graph.adjacency().drop_edges(0.4)
    torch.testing.assert_close(actual, conv.eval().select(graph.x, graph.x, removed))


def test_adjacency_dropout_among_competing_zeros_keeps_the_structure(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lgcn.graph.csr.CSR.drop_edges", None)
    graph, conv = random_graph(), LGConv(5, 3, k=4, zeros="compete", adj_dropout=0.5)
    assert not torch.allclose(conv(graph.x, graph), conv(graph.x, graph))


def test_gradients_reach_everything(random_graph: RandomGraph) -> None:
    graph, conv = random_graph(weighted=True), LGConv(5, 3, k=4)
    x, weight = graph.x.clone().requires_grad_(), graph.edge_weight.clone().requires_grad_()
    conv(x, graph.edge_index, weight).square().sum().backward()
    for tensor in (x, weight, *conv.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.abs().sum() > 0


@pytest.mark.parametrize(
    "options", [{}, {"mean": True}, {"rank": "normalized", "self_loops": True, "mean": True}]
)
def test_compiles_without_a_break(random_graph: RandomGraph, options: dict[str, object]) -> None:
    graph, conv = random_graph(), LGConv(5, 3, k=4, **options)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    results = []
    for call in (conv, compiled):
        conv.zero_grad()
        out = call(graph.x, graph)
        out.square().sum().backward()
        results.append([out, *(p.grad.clone() for p in conv.parameters())])
    for eager, actual in zip(*results, strict=True):
        torch.testing.assert_close(actual, eager)


def test_reset_parameters_is_glorot() -> None:
    conv = LGConv(20, 10, k=8)
    with torch.no_grad():
        for parameter in conv.parameters():
            parameter.fill_(100.0)
    conv.reset_parameters()
    for layer in (conv.cnn[0], conv.cnn[-1]):
        positions = layer.kernel_size[0]
        bound = (6 / ((layer.in_channels + layer.out_channels) * positions)) ** 0.5
        assert 0.9 * bound < layer.weight.abs().max() <= bound
    assert conv.cnn[0].bias.abs().max() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"rank": "up"}, "rank must be 'raw' or 'normalized', got 'up'"),
        ({"zeros": "no"}, "zeros must be 'pad' or 'compete', got 'no'"),
        (
            {"cnn": "triple"},
            "cnn must be 'double', 'single', 'shared', 'depthwise' or a module, got 'triple'",
        ),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LGConv(5, 3, **options)


def test_wrong_inputs_are_named(random_graph: RandomGraph) -> None:
    graph = random_graph()
    pair = (graph.x, torch.zeros(3, 2))
    with pytest.raises(ValueError, match=r"x must have in_channels = 4 .*, got shape \[12, 5\]"):
        LGConv(4, 3)(graph.x, graph)
    with pytest.raises(ValueError, match=r"target features .* = 5 .*, got shape \[3, 2\]"):
        LGConv(5, 3)(pair, graph.edge_index)
    with pytest.raises(ValueError, match="edge_weight must be None with a Graph"):
        LGConv(5, 3)(graph.x, graph, torch.ones(graph.num_edges))
    with pytest.raises(ValueError, match="need one set of nodes, got a bipartite pair"):
        LGConv(5, 3, self_loops=True)((graph.x, None), graph.edge_index)


# Learned edge weights, and gradients of gradients.


def dense_layer(conv: LGConv, x: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:
    """The layer with sums, degrees and sorting on dense matrices, one node after the other."""
    n = x.size(0)
    source, target = edge_index
    matrix = x.new_zeros(n, n).index_put((target, source), weight)
    entries = torch.zeros(n, n).index_put((target, source), torch.ones(source.numel())) > 0
    if conv.self_loops:
        matrix = matrix + torch.diag((~entries.diagonal()).to(x.dtype))
        entries = entries | torch.eye(n).bool()
    if conv.rank == "normalized":
        root = matrix.sum(1).sqrt()
        matrix = matrix / (root[:, None] * root)
    rows = []
    for i in range(n):
        among = entries[i].nonzero().squeeze(1)
        values = matrix[i, among][:, None] * x[among]
        values = torch.cat([values, x.new_zeros(conv.k, x.size(1))])
        if conv.zeros == "compete":
            values = values.sort(dim=0, descending=True).values
        else:
            values[: len(among)] = values[: len(among)].sort(dim=0, descending=True).values
        row = [x[i : i + 1], values[: conv.k]]
        if conv.mean:
            total = matrix[i] @ x
            if conv.rank == "raw":
                total = total / (matrix[i].sum() if len(among) else 1)
            row.append(total[None])
        rows.append(torch.cat(row))
    return conv.cnn(torch.stack(rows).transpose(1, 2)).squeeze(2)


EDGES = torch.tensor([[1, 2, 3, 0, 2, 3, 4, 0], [0, 0, 0, 1, 1, 2, 3, 4]])


def learned(**options: Any) -> tuple[LGConv, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    conv = LGConv(2, 3, 2, **options).double()
    x = torch.randn(5, 2, dtype=torch.float64, generator=generator, requires_grad=True)
    weight = torch.rand(8, dtype=torch.float64, generator=generator) + 0.5
    return conv, x, weight.requires_grad_()


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("zeros", ["pad", "compete"])
@pytest.mark.parametrize("mean", [False, True])
def test_gradients_of_edge_weights_are_those_of_dense_matrices(
    rank: str, self_loops: bool, zeros: str, mean: bool
) -> None:
    conv, x, weight = learned(rank=rank, self_loops=self_loops, zeros=zeros, mean=mean)
    results = []
    for layer in (conv, lambda *args: dense_layer(conv, *args)):
        out = layer(x, EDGES, weight)
        results.append((out, *torch.autograd.grad(out.square().sum(), (x, weight))))
    torch.testing.assert_close(results[0], results[1])


@pytest.mark.parametrize("rank", ["raw", "normalized"])
def test_gradcheck_and_double_backward(rank: str) -> None:
    conv, x, weight = learned(rank=rank, self_loops=True, mean=True)

    def layer(x: Tensor, weight: Tensor) -> Tensor:
        return conv(x, EDGES, weight)

    assert torch.autograd.gradcheck(layer, (x, weight))
    assert torch.autograd.gradgradcheck(layer, (x, weight))


@pytest.mark.parametrize("rank", ["raw", "normalized"])
def test_a_graph_with_learned_weights_serves_for_several_steps(rank: str) -> None:
    conv, x, weight = learned(rank=rank)
    graph = Graph.as_given(EDGES, 5, edge_weight=weight)
    sums = []
    for _ in range(2):
        weight.grad = None
        conv(x, graph).sum().backward(retain_graph=True)
        sums.append(weight.grad.clone())
    assert sums[0].abs().sum() > 0
    assert torch.equal(*sums)
