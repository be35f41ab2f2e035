"""GCNII against dense matrices."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from lgcn import Graph
from lgcn.paper.baselines.gcnii.network import GCNII

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)
from .test_gcn import normalized

RandomGraph = Callable[..., Graph]


@pytest.mark.parametrize(("alpha", "theta"), [(0.5, 1.0), (0.1, 0.5), (0.0, 0.0)])
def test_equals_dense_matrices(random_graph: RandomGraph, alpha: float, theta: float) -> None:
    """The formula of the paper, with the skip of its inductive network."""
    graph = random_graph(undirected=True)
    options = {"hidden_channels": 4, "num_layers": 3, "alpha": alpha, "theta": theta}
    model = GCNII(5, 3, **options).eval().double()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    first, *between, last = model.layers
    matrix, x = normalized(graph).double(), graph.x.double()
    start = h = (x @ first.linear.weight.t() + first.linear.bias).relu()
    for number, layer in enumerate(between, start=1):
        beta = math.log(theta / number + 1)
        eye = (1 - beta) * torch.eye(4, dtype=torch.float64)
        around = (1 - alpha) * (matrix @ h) @ (eye + beta * layer.weight1)
        beginning = alpha * start @ (eye + beta * layer.weight2)
        h = (around + beginning + h).relu()
    expected = h @ last.weight.t() + last.bias
    torch.testing.assert_close(model(x, graph), expected, rtol=1e-5, atol=1e-5)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GCNII(5, 3, hidden_channels=8, num_layers=2)
    assert model(graph.x, graph).shape == (12, 3)
    assert parameters(model) == (5 * 8 + 8) + 2 * (2 * 8 * 8) + (8 * 3 + 3)
    assert parameters(model.first_layer) == 5 * 8 + 8


def test_sparse_features(random_graph: RandomGraph) -> None:
    sparse_features_equal_dense_ones(GCNII(5, 3, hidden_channels=8), random_graph())


def test_reset() -> None:
    assert a_reset_draws_all_weights(GCNII(5, 3, num_layers=2))


def test_dropout_is_of_training_alone(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GCNII(5, 3, dropout=0.9)
    assert not torch.equal(model(graph.x, graph), model(graph.x, graph))
    model.eval()
    assert torch.equal(model(graph.x, graph), model(graph.x, graph))


def test_trains(tmp_path: Path) -> None:
    record = trained_and_loaded(tmp_path, model="gcnii", num_layers=3, alpha=0.2)
    assert record["test_score"] > 0.75  # chance is 1/3


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        GCNII(5, 3, num_layers=0)
