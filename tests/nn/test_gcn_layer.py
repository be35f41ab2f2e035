"""GCNLayer against PyG's GCNConv and dense products."""

import gc
import weakref
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GCNConv

from lgcn import Graph
from lgcn.nn import GCNLayer
from lgcn.ops import spmm

RandomGraph = Callable[..., Graph]


def dense_adjacency(graph: Graph) -> torch.Tensor:
    """The adjacency with the self-loops that are missing."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    source, target = graph.edge_index
    matrix[target, source] = 1 if graph.edge_weight is None else graph.edge_weight
    return torch.where(matrix.diag().diag() == 0, matrix + torch.eye(len(matrix)), matrix)


def test_repr_and_shape(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), GCNLayer(5, 3, "sum")
    assert repr(layer) == "GCNLayer(5, 3, aggregate='sum')"
    assert layer(graph.x, graph).shape == (12, 3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("self_loops", [False, True])
def test_equals_gcn_conv(random_graph: RandomGraph, weighted: bool, self_loops: bool) -> None:
    graph = random_graph(weighted=weighted)
    layer, conv = GCNLayer(5, 3, self_loops=self_loops), GCNConv(5, 3, add_self_loops=self_loops)
    with torch.no_grad():
        conv.lin.weight.copy_(layer.weight.t())
    expected = conv(graph.x, graph.edge_index, graph.edge_weight)  # both biases are zero
    torch.testing.assert_close(layer(graph.x, graph), expected)


def test_the_bias_is_summed_over_neighbours_too(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), GCNLayer(5, 3, "sum")
    torch.nn.init.normal_(layer.bias)
    looped = dense_adjacency(graph)
    torch.testing.assert_close(
        layer(graph.x, graph), looped @ (graph.x @ layer.weight + layer.bias)
    )


def test_without_aggregation_it_is_linear(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), GCNLayer(5, 3, "none")
    torch.nn.init.normal_(layer.bias)
    torch.testing.assert_close(layer(graph.x, graph), graph.x @ layer.weight + layer.bias)


@pytest.mark.parametrize("aggregate", ["normalized", "sum"])
def test_some_rows_alone(random_graph: RandomGraph, aggregate: str) -> None:
    graph, layer = random_graph(weighted=True), GCNLayer(5, 3, aggregate).eval()
    torch.nn.init.normal_(layer.bias)
    mapped = torch.cat([layer.transform(block) for block in graph.x.split(5)])
    rows = graph.adjacency(**layer.adjacency_options).rows(4, 9)
    torch.testing.assert_close(layer.propagate(mapped, rows), layer(graph.x, graph)[4:9])


@pytest.mark.parametrize("sparse", [False, True])
def test_scale_is_that_of_the_features(random_graph: RandomGraph, sparse: bool) -> None:
    graph = random_graph()
    x = graph.x.to_sparse_csr() if sparse else graph.x
    scaled, plain = GCNLayer(5, 3, scale=4.0), GCNLayer(5, 3)
    plain.load_state_dict(scaled.state_dict())
    out, expected = scaled(x, graph), plain(4 * graph.x, graph)
    torch.testing.assert_close(out, expected)
    out.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(scaled.weight.grad, plain.weight.grad, rtol=1e-5, atol=1e-5)


def test_sparse_features_equal_dense_features(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), GCNLayer(5, 3)
    x = graph.x * (graph.x > 0)
    results = []
    for features in (x, x.to_sparse_csr()):
        layer.zero_grad()
        out = layer(features, graph)
        out.square().sum().backward()
        results.append((out, layer.weight.grad.clone(), layer.bias.grad.clone()))
    for dense, sparse in zip(*results, strict=True):
        torch.testing.assert_close(sparse, dense)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_feature_dropout_zeroes_and_scales_in_training_only(
    random_graph: RandomGraph, is_sparse: bool
) -> None:
    graph = random_graph()
    layer = GCNLayer(12, 12, "none", dropout=0.5)
    torch.nn.init.eye_(layer.weight)
    x = torch.eye(12)
    features = x.to_sparse_csr() if is_sparse else x
    torch.manual_seed(0)
    out = layer(features, graph)
    assert set(out.diag().tolist()) == {0.0, 2.0}
    assert torch.equal(out, out.diag().diag())  # zeros stay zeros
    assert torch.equal(layer.eval()(features, graph), x)


def test_adjacency_dropout_in_training_only(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = GCNLayer(5, 3, adj_dropout=0.5)
    assert not torch.allclose(layer(graph.x, graph), layer(graph.x, graph))
    layer.eval()
    assert torch.equal(layer(graph.x, graph), layer(graph.x, graph))


def test_adjacency_dropout_keeps_the_structure(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = []

    def spy(rowptr: Tensor, col: Tensor, value: Tensor, dense: Tensor) -> Tensor:
        used.append((rowptr, col))
        return spmm(rowptr, col, value, dense)

    monkeypatch.setattr("lgcn.nn.gcn_layer.spmm", spy)
    graph = random_graph()
    GCNLayer(5, 3, adj_dropout=0.5)(graph.x, graph)
    adjacency = graph.adjacency(normalize=True, self_loops=True)
    assert used[0][0] is adjacency.rowptr
    assert used[0][1] is adjacency.col


def test_sparse_features_are_freed_after_use(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), GCNLayer(5, 3)
    x = graph.x.to_sparse_csr()
    alive = weakref.ref(x)
    layer(x, graph).sum().backward()
    del x
    gc.collect()
    assert alive() is None


def test_wrong_arguments_are_named(random_graph: RandomGraph) -> None:
    graph = random_graph()
    with pytest.raises(ValueError, match="aggregate must be normalized, sum or none, got 'mean'"):
        GCNLayer(5, 3, "mean")
    with pytest.raises(ValueError, match=r"in_channels\] = \[12, 4\], got \[12, 5\]"):
        GCNLayer(4, 3)(graph.x, graph)
