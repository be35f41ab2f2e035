"""The embedding of propagated features, against a dense matrix and torch's own layers."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import LGCN, Graph
from lgcn.nn import PropagatedEmbedding
from lgcn.nn.layerwise import layerwise
from tests.nn.test_diffusion import dense_adjacency

RandomGraph = Callable[..., Graph]


def with_statistics(layer: PropagatedEmbedding) -> PropagatedEmbedding:
    """Norms that have seen some data."""
    with torch.no_grad():
        layer.bias.normal_()
        for norm in (layer.input_norm, layer.norm):
            if norm is None:
                continue
            for values in (norm.weight, norm.bias, norm.running_mean):
                values.normal_()
            norm.running_var.uniform_(0.5, 2)
    return layer


def by_definition(layer: PropagatedEmbedding, graph: Graph) -> torch.Tensor:
    """Powers of the dense adjacency, batch norm, linear map, activation, batch norm."""
    adjacency, x = dense_adjacency(graph), graph.x.to_dense()
    powers = [torch.linalg.matrix_power(adjacency, i) @ x for i in range(layer.hops + 1)]
    h = layer.scale * torch.stack(powers).mean(0)

    def normed(norm: torch.nn.BatchNorm1d | None, h: torch.Tensor) -> torch.Tensor:
        if norm is None:
            return h
        statistics = [value.clone() for value in (norm.running_mean, norm.running_var)]
        return F.batch_norm(h, *statistics, norm.weight, norm.bias, layer.training)

    h = F.relu(normed(layer.input_norm, h) @ layer.weight + layer.bias)
    return normed(layer.norm, h)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("hops", [0, 1, 4])
def test_equals_the_definition(
    random_graph: RandomGraph, hops: int, norm: bool, sparse: bool, training: bool
) -> None:
    graph = random_graph(weighted=True)
    layer = PropagatedEmbedding(5, 3, hops, scale=0.7, norm=norm, activation=F.relu)
    with_statistics(layer)
    layer.train(training)
    x = graph.x.to_sparse_csr() if sparse else graph.x
    expected = by_definition(layer, graph)
    torch.testing.assert_close(layer(x, graph), expected, atol=1e-5, rtol=1e-5)


def test_gradients(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = with_statistics(PropagatedEmbedding(5, 3, 2)).double()
    x = graph.x.double().requires_grad_()
    for training in (True, False):
        layer.train(training)
        assert torch.autograd.gradcheck(lambda x: layer(x, graph), x)


def test_whole_nodes_are_dropped_from_the_input(random_graph: RandomGraph) -> None:
    """Without propagation, a dropped node equals a node without features."""
    graph = random_graph()
    layer = PropagatedEmbedding(5, 5, 0, node_dropout=0.5)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(5))
    seen: list[torch.Tensor] = []
    layer.input_norm.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    torch.manual_seed(0)
    layer(graph.x, graph)
    dropped = (seen[0] == 0).all(1)
    assert 0 < dropped.sum() < graph.num_nodes
    torch.testing.assert_close(seen[0][~dropped], 2 * graph.x[~dropped])


def test_evaluation_drops_nothing_and_counts_nothing(random_graph: RandomGraph) -> None:
    graph = random_graph()
    layer = PropagatedEmbedding(5, 3, node_dropout=0.9, dropout=0.9).eval()
    before = {key: value.clone() for key, value in layer.state_dict().items()}
    assert torch.equal(layer(graph.x, graph), layer(graph.x, graph))
    torch.testing.assert_close(layer.state_dict(), before, rtol=0, atol=0)


@settings(max_examples=20)
@given(
    hops=st.integers(0, 3),
    num_layers=st.integers(0, 2),
    classifier=st.sampled_from(["none", "normalized", "diffusion"]),
    sparse=st.booleans(),
    norm=st.sampled_from(["batch", "none"]),
    memory=st.sampled_from([1, 10**6]),
)
def test_layer_by_layer_equals_forward(
    hops: int, num_layers: int, classifier: str, sparse: bool, norm: str, memory: int
) -> None:
    edges = torch.randint(0, 30, (2, 60), generator=torch.Generator().manual_seed(0))
    x = torch.randn(30, 5, generator=torch.Generator().manual_seed(1))
    graph = Graph.from_edge_index(edges, 30, x=x.to_sparse_csr() if sparse else x)
    torch.manual_seed(2)
    model = LGCN(
        *(5, 3),
        hidden_channels=4,
        num_layers=num_layers,
        embedding="propagated",
        input_hops=hops,
        input_norm=norm,
        classifier=classifier,
        hops=2,
        activation="relu",
    )
    with_statistics(model.embedding)
    model.eval()
    expected = model(graph.x, graph)
    found = layerwise(model, graph, memory=memory)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    embedded = layerwise(model, graph, layer=0, memory=memory)
    torch.testing.assert_close(embedded, model.embed(graph.x, graph, layer=0))


def test_one_node_is_normalised_by_running_statistics() -> None:
    layer = PropagatedEmbedding(2, 3)
    graph = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 1, x=torch.ones(1, 2))
    assert layer(graph.x, graph).isfinite().all()


def test_new_weights_reset_the_norms(random_graph: RandomGraph) -> None:
    layer = PropagatedEmbedding(5, 3)
    layer(random_graph().x, random_graph())
    assert layer.input_norm.num_batches_tracked == 1
    layer.reset_parameters()
    assert layer.input_norm.num_batches_tracked == layer.norm.num_batches_tracked == 0


def test_the_network_leaves_activation_and_node_dropout_to_it(random_graph: RandomGraph) -> None:
    """Negative values remain after the norm, and no node is dropped after it."""
    graph = random_graph()
    options = {"num_layers": 0, "hidden_channels": 6, "classifier": "none", "dropout": 0.0}
    model = LGCN(5, 3, embedding="propagated", node_dropout=0.5, activation="relu", **options)
    h = model.embed(graph.x, graph)
    assert (h < 0).any()
    assert not (h == 0).all(1).any()


def test_repr_and_errors(random_graph: RandomGraph) -> None:
    assert repr(PropagatedEmbedding(5, 3, 4)) == "PropagatedEmbedding(5, 3, hops=4)"
    with pytest.raises(ValueError, match="hops must be at least 0, got -1"):
        PropagatedEmbedding(5, 3, -1)
    with pytest.raises(ValueError, match=r"embedding must be one of .*propagated, got 'other'"):
        LGCN(5, 3, embedding="other")
    graph = replace(random_graph(), x=None)
    with pytest.raises(ValueError, match=r"\[12, 4\], got \[12, 5\]"):
        PropagatedEmbedding(4, 3)(torch.ones(12, 5), graph)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_computes_the_same(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, hidden_channels=8, k=2, embedding="propagated", activation="relu").eval()
    with_statistics(model.embedding)
    expected = model(graph.x, graph)
    on_gpu = graph.to("cuda")
    found = model.cuda()(on_gpu.x, on_gpu)
    torch.testing.assert_close(found.cpu(), expected, atol=1e-5, rtol=1e-4)
