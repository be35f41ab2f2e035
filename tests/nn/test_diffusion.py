"""The mean over steps of propagation, against powers of a dense matrix."""

from collections.abc import Callable

import pytest
import torch

from lgcn import Graph
from lgcn.nn import Diffusion

RandomGraph = Callable[..., Graph]


def dense_adjacency(graph: Graph) -> torch.Tensor:
    """D^-1/2 (A + I) D^-1/2."""
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes)
    source, target = graph.edge_index
    matrix[target, source] = 1 if graph.edge_weight is None else graph.edge_weight
    matrix = torch.where(matrix.diag().diag() == 0, matrix + torch.eye(len(matrix)), matrix)
    scale = matrix.sum(1).rsqrt()
    return scale[:, None] * matrix * scale


@pytest.mark.parametrize("hops", [0, 1, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_mean_of_powers(random_graph: RandomGraph, hops: int, weighted: bool) -> None:
    graph, layer = random_graph(weighted=weighted), Diffusion(5, 3, hops)
    torch.nn.init.normal_(layer.bias)
    adjacency = dense_adjacency(graph)
    powers = [torch.linalg.matrix_power(adjacency, i) @ graph.x for i in range(hops + 1)]
    mean = torch.stack(powers).mean(0)
    torch.testing.assert_close(layer(graph.x, graph), mean @ layer.weight + layer.bias)


def test_gradients(random_graph: RandomGraph) -> None:
    graph, layer = random_graph(), Diffusion(5, 3, 2).double()
    x = graph.x.double().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, graph), x)


def test_dropout_is_of_the_propagated_features(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = Diffusion(5, 5, 3, dropout=0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(5))
    torch.manual_seed(0)
    dropped = layer(graph.x, graph)
    layer.eval()
    propagated = layer(graph.x, graph)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * propagated[kept])
    assert 0.2 < kept.double().mean() < 0.8


def test_repr_and_errors(random_graph: RandomGraph) -> None:
    assert repr(Diffusion(5, 3, 4)) == "Diffusion(5, 3, hops=4)"
    with pytest.raises(ValueError, match="hops must be at least 0, got -1"):
        Diffusion(5, 3, -1)
    with pytest.raises(ValueError, match=r"x must have shape .* = \[12, 4\], got \[12, 5\]"):
        Diffusion(4, 3)(random_graph().x, random_graph())
