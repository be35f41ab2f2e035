"""Prediction equals the model's forward in evaluation mode."""

from collections.abc import Callable

import pytest
import torch

from lgcn import LGCN, Graph
from lgcn.errors import UsageError
from lgcn.inference import embed, predict

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
