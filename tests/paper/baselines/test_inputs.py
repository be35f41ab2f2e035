"""Dense and sparse features through the same dropout and the same linear map."""

import pytest
import torch
from torch_geometric.nn.dense import Linear

from lgcn import Graph
from lgcn.paper.baselines.inputs import SparseLinear, dense, drop, scale
from lgcn.training.models import find_model, model_names, network_class


@pytest.fixture
def x() -> torch.Tensor:
    values = torch.randn(40, 30, generator=torch.Generator().manual_seed(0))
    return values * (values > 0)


def test_dense_gives_the_same_numbers(x: torch.Tensor) -> None:
    assert dense(x) is x
    assert torch.equal(dense(x.to_sparse_csr()), x)


@pytest.mark.parametrize("training", [True, False])
def test_drop_of_dense_features(x: torch.Tensor, training: bool) -> None:
    dropped = drop(x, 0.5, training)
    if not training:
        assert torch.equal(dropped, x)
        return
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * x[kept])
    assert 0.4 < kept.sum() / (x != 0).sum() < 0.6


def test_drop_of_sparse_features_drops_stored_values(x: torch.Tensor) -> None:
    sparse = x.to_sparse_csr()
    assert torch.equal(drop(sparse, 0.5, training=False).to_dense(), x)
    assert torch.equal(drop(sparse, 0.0, training=True).to_dense(), x)
    dropped = drop(sparse, 0.5, training=True).to_dense()
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], 2 * x[kept])
    assert 0.4 < kept.sum() / (x != 0).sum() < 0.6


def test_scale_multiplies_dense_and_stored_values(x: torch.Tensor) -> None:
    assert scale(x, 1.0) is x
    torch.testing.assert_close(scale(x, 3.0), 3 * x)
    torch.testing.assert_close(scale(x.to_sparse_csr(), 3.0).to_dense(), 3 * x)


# Networks of the package whose new weights give scores; benchmarks may have added theirs.
NETWORKS = [
    name
    for name in model_names()
    if name not in ("lgcn", "boosting") and find_model(name).network.startswith("lgcn.")
]


@pytest.mark.parametrize("name", NETWORKS)
def test_every_baseline_scales_its_input(name: str, x: torch.Tensor) -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 2], [1, 2, 3]]), 40)
    model = network_class(name)(30, 4, input_scale=2.5).eval()
    plain = network_class(name)(30, 4).eval()
    plain.load_state_dict(model.state_dict())
    for features in (x, x.to_sparse_csr()):
        torch.testing.assert_close(model(features, graph), plain(2.5 * x, graph))
    assert not torch.allclose(model(x, graph), plain(x, graph))


@pytest.mark.parametrize("bias", [True, False])
def test_sparse_linear_equals_its_linear_map(x: torch.Tensor, bias: bool) -> None:
    linear = Linear(30, 4, bias=bias)
    layer = SparseLinear(linear)
    grads = []
    for out in (linear(x), layer(x), layer(x.to_sparse_csr())):
        layer.zero_grad()
        out.square().sum().backward()
        grads.append((out, *[p.grad.clone() for p in layer.parameters()]))
    for other in grads[1:]:
        for found, expected in zip(other, grads[0], strict=True):
            torch.testing.assert_close(found, expected)


def test_sparse_linear_draws_new_weights() -> None:
    layer = SparseLinear(Linear(30, 4))
    before = layer.linear.weight.clone()
    layer.reset_parameters()
    assert not torch.equal(before, layer.linear.weight)
