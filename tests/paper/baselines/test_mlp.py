"""The MLP: linear layers, and nothing of the graph."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lgcn import Graph
from lgcn.paper.baselines.mlp.network import MLP

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)

RandomGraph = Callable[..., Graph]


def test_equals_linear_maps_whatever_the_edges(random_graph: RandomGraph) -> None:
    model = MLP(5, 3, hidden_channels=7, num_layers=3).eval()
    graph = random_graph()
    h = graph.x
    for number, layer in enumerate(model.layers):
        h = h @ layer.linear.weight.t() + layer.linear.bias
        h = h.relu() if number < 2 else h
    for density in (0.0, 0.5):
        torch.testing.assert_close(model(graph.x, random_graph(density=density)), h)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = MLP(5, 3)
    assert model(graph.x, graph).shape == (12, 3)
    assert parameters(model) == (5 * 16 + 16) + (16 * 3 + 3)
    assert parameters(model.first_layer) == 5 * 16 + 16
    assert not model.first_layer.linear.bias.any()


def test_sparse_features(random_graph: RandomGraph) -> None:
    sparse_features_equal_dense_ones(MLP(5, 3), random_graph())


def test_reset() -> None:
    assert a_reset_draws_all_weights(MLP(5, 3))


def test_trains(tmp_path: Path) -> None:
    assert trained_and_loaded(tmp_path, model="mlp")["test_score"] > 0.6  # chance is 1/3


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        MLP(5, 3, num_layers=0)
