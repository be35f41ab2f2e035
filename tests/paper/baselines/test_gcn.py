"""GCN against dense matrices."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch_geometric.nn import GCNConv

from lgcn import Graph
from lgcn.paper.baselines.gcn.network import GCN

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)

RandomGraph = Callable[..., Graph]


def normalized(graph: Graph) -> torch.Tensor:
    """The adjacency with self-loops, each entry over the root of both degrees."""
    matrix = torch.eye(graph.num_nodes)
    for source, target in graph.edge_index.t().tolist():
        matrix[target, source] = 1
    degree = matrix.sum(1)
    return matrix / (degree[:, None] * degree[None, :]).sqrt()


def test_equals_dense_matrices(random_graph: RandomGraph) -> None:
    graph = random_graph(undirected=True)
    model = GCN(5, 3, hidden_channels=4, num_layers=3).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p)
    matrix, h = normalized(graph), graph.x
    for number, layer in enumerate(model.layers):
        weight = layer.lin.linear.weight if number == 0 else layer.lin.weight
        h = matrix @ (h @ weight.t()) + layer.bias
        h = h.relu() if number < 2 else h
    torch.testing.assert_close(model(graph.x, graph), h)


def test_equals_pyg_with_weighted_edges(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True, self_loops=True)
    model, conv = GCN(5, 3, num_layers=1).eval(), GCNConv(5, 3)
    with torch.no_grad():
        conv.lin.weight.copy_(model.layers[0].lin.linear.weight)
    expected = conv(graph.x, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(model(graph.x, graph), expected)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GCN(5, 3)
    assert model(graph.x, graph).shape == (12, 3)
    assert parameters(model) == (5 * 16 + 16) + (16 * 3 + 3)
    assert parameters(model.first_layer) == 5 * 16 + 16
    assert repr(model.layers[1]) == "GCNConv(16, 3)"


def test_sparse_features(random_graph: RandomGraph) -> None:
    sparse_features_equal_dense_ones(GCN(5, 3), random_graph())


def test_reset() -> None:
    assert a_reset_draws_all_weights(GCN(5, 3, num_layers=3))


@pytest.mark.parametrize("rate", [0.0, 0.9])
def test_dropout_is_of_every_layers_input(random_graph: RandomGraph, rate: float) -> None:
    graph = random_graph()
    model = GCN(5, 3, dropout=rate)
    torch.manual_seed(0)
    same = torch.equal(model(graph.x, graph), model(graph.x, graph))
    assert same == (rate == 0)
    model.eval()
    assert torch.equal(model(graph.x, graph), model(graph.x, graph))


def test_trains(tmp_path: Path) -> None:
    record = trained_and_loaded(tmp_path, model="gcn")
    assert record["steps"] == record["epochs"] == 40
    assert record["test_score"] > 0.75  # chance is 1/3


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        GCN(5, 3, num_layers=0)
