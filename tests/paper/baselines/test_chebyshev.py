"""The Chebyshev network against PyG's layers and against polynomials of the Laplacian."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import ChebConv

from lgcn import Graph
from lgcn.paper.baselines.chebyshev.network import ChebNet

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)

RandomGraph = Callable[..., Graph]


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
@pytest.mark.parametrize("options", [{}, {"weighted": True}, {"self_loops": True}])
def test_equals_pyg(random_graph: RandomGraph, order: int, options: dict[str, bool]) -> None:
    """In double precision: the recursion of a high order amplifies rounding."""
    graph = random_graph(**options)
    x = graph.x.double()
    model = ChebNet(5, 3, order=order, hidden_channels=4, num_layers=2).eval().double()
    layers = [ChebConv(5, 4, order + 1).double(), ChebConv(4, 3, order + 1).double()]
    for ours, theirs in zip(model.layers, layers, strict=True):
        torch.nn.init.normal_(ours.bias)
        with torch.no_grad():
            theirs.bias.copy_(ours.bias)
            for mine, other in zip(ours.lins, theirs.lins, strict=True):
                other.weight.copy_(mine.linear.weight)
    edges = graph.edge_index, graph.edge_weight
    expected = layers[1](F.relu(layers[0](x, *edges)), *edges)
    torch.testing.assert_close(model(x, graph), expected)


def test_equals_polynomials_of_the_laplacian(random_graph: RandomGraph) -> None:
    """The eigenvalues of the scaled Laplacian through NumPy's Chebyshev series."""
    graph = random_graph(density=0.4, undirected=True)
    model = ChebNet(5, 3, order=4, num_layers=1).eval().double()
    adjacency = np.zeros((12, 12))
    source, target = graph.edge_index.numpy()
    adjacency[target, source] = 1
    root = 1 / np.sqrt(adjacency.sum(1))
    values, vectors = np.linalg.eigh(-root[:, None] * adjacency * root[None, :])
    x = graph.x.double().numpy()
    expected = np.zeros((12, 3))
    for degree, lin in enumerate(model.layers[0].lins):
        polynomial = np.polynomial.chebyshev.chebval(values, [0] * degree + [1])
        filtered = vectors @ np.diag(polynomial) @ vectors.T @ x
        expected += filtered @ lin.linear.weight.detach().numpy().T
    out = model(graph.x.double(), graph).detach().numpy()
    np.testing.assert_allclose(out, expected, atol=1e-6)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = ChebNet(5, 3, order=2)
    assert model(graph.x, graph).shape == (12, 3)
    assert parameters(model) == (3 * 5 * 16 + 16) + (3 * 16 * 3 + 3)
    assert parameters(model.first_layer) == 3 * 5 * 16 + 16
    assert "K=3" in repr(model.layers[0])


def test_sparse_features(random_graph: RandomGraph) -> None:
    sparse_features_equal_dense_ones(ChebNet(5, 3, order=3), random_graph())


def test_reset() -> None:
    assert a_reset_draws_all_weights(ChebNet(5, 3))


def test_trains(tmp_path: Path) -> None:
    record = trained_and_loaded(tmp_path, model="chebyshev", order=2)
    assert record["test_score"] > 0.75  # chance is 1/3


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        ChebNet(5, 3, num_layers=0)
