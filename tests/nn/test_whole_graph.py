"""Prediction equals the model's forward in evaluation mode."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from lgcn import LGCN, Graph
from lgcn.errors import UsageError
from lgcn.nn import whole_graph as inference
from lgcn.nn.whole_graph import embed, forward, predict

RandomGraph = Callable[..., Graph]


def test_equals_forward_in_evaluation_mode(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    model.train()
    scores = predict(model, graph)
    assert not model.training
    assert torch.equal(scores, model(graph.x, graph))
    assert scores.shape == (12, 3)


def test_leaves_no_gradient(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    assert not predict(model, graph).requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())


def test_several_graphs_one_after_the_other(random_graph: RandomGraph) -> None:
    parts = [random_graph(size, seed=size) for size in (4, 9, 6)]
    model = LGCN(5, 3, batch_norm="batch").eval()  # tells whether graphs were mixed
    scores = predict(model, Graph.concat(parts))
    expected = torch.cat([model(part.x, part) for part in parts])
    torch.testing.assert_close(scores, expected)


def test_embeddings_of_several_graphs(random_graph: RandomGraph) -> None:
    parts = [random_graph(size, seed=size) for size in (4, 9)]
    model = LGCN(5, 3)
    model.train()
    found = embed(model, Graph.concat(parts))
    assert not model.training
    assert not found.requires_grad
    expected = torch.cat([model.embed(part.x, part) for part in parts])
    torch.testing.assert_close(found, expected)


@pytest.mark.gpu
def test_the_models_device_computes(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    expected = predict(model, graph)
    scores = predict(model.cuda(), graph)
    assert scores.device == graph.rowptr.device
    torch.testing.assert_close(scores, expected, rtol=1e-4, atol=1e-5)


def test_sparse_features(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    sparse = Graph(graph.rowptr, graph.col, x=graph.x.to_sparse_csr())
    torch.testing.assert_close(predict(model, sparse), predict(model, graph))


def test_features_are_needed(random_graph: RandomGraph) -> None:
    with pytest.raises(UsageError, match=r"toy has no features \(x\)"):
        predict(LGCN(5, 3), random_graph(x=None, name="toy"))


def refuse(*_: object) -> None:
    raise AssertionError("the whole graph was computed at once")


def test_large_graphs_go_layer_by_layer_by_themselves(
    random_graph: RandomGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    both = Graph.concat([graph, random_graph(9, seed=1)])
    whole = [predict(model, both), embed(model, both), embed(model, both, 1)]
    one = [forward(model, graph), forward(model, graph, embed=True)]
    monkeypatch.setattr(LGCN, "forward", refuse)
    monkeypatch.setattr(LGCN, "embed", refuse)
    with pytest.raises(AssertionError, match="at once"):
        predict(model, graph)
    monkeypatch.setattr(inference, "MAX_FORWARD_BYTES", 1000)
    by_layers = [predict(model, both), embed(model, both), embed(model, both, 1)]
    torch.testing.assert_close(by_layers, whole)
    torch.testing.assert_close([forward(model, graph), forward(model, graph, embed=True)], one)


def test_what_a_forward_needs(random_graph: RandomGraph) -> None:
    def need(graph: Graph, **options: object) -> int:
        return inference._forward_bytes(LGCN(5, 3, **options), graph)

    graph, denser, larger = (random_graph(n, p) for n, p in ((40, 0.1), (40, 0.2), (80, 0.1)))
    # The grid [N, k + 1, C] of the last LGCL, and what its convolution makes of it.
    assert need(graph) > 2 * 4 * 40 * 9 * 40
    assert need(graph, layer="gcn") < need(graph) < need(graph, k=20)
    assert need(graph) < need(denser)
    assert need(larger) > 1.9 * need(graph)
    stored = replace(graph, x=torch.zeros(40, 5000, dtype=torch.uint8))
    assert need(stored) > 4 * 40 * 5000


def test_features_of_other_types_are_decoded(random_graph: RandomGraph) -> None:
    graph, model = random_graph(), LGCN(5, 3)
    stored = replace(graph, x=graph.x.half())
    torch.testing.assert_close(predict(model, stored), predict(model, graph), rtol=0.01, atol=0.01)
