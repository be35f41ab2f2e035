"""The ranking of edges finds those that a prediction needs."""

import pytest
import torch

import lgcn
from lgcn.errors import UsageError
from lgcn.explain import NodeExplainer
from lgcn.graph import Graph

from .networks import build, random_graph


def test_the_edges_that_decide_come_first():
    # Only messages count: the sum over neighbours, of which node 3 alone has a feature.
    model = lgcn.LGCN(
        1,
        2,
        num_layers=0,
        hidden_channels=1,
        embedding="linear",
        classifier="sum",
        self_loops=False,
    ).double()
    with torch.no_grad():
        model.embedding.weight.fill_(1)
        model.classifier.weight.copy_(torch.tensor([[1.0, -1.0]]))
    star = torch.tensor([[1, 2, 3, 4], [0, 0, 0, 0]])
    x = torch.tensor([[0.0], [0.0], [0.0], [5.0], [0.0]], dtype=torch.double)
    graph = Graph.as_given(star, 5, x=x)
    for thorough in (False, True):
        places, importance = NodeExplainer(model, graph).important_edges(0, thorough=thorough)
        assert int(graph.col[places[importance.argmax()]]) == 3


def test_both_rankings_cover_the_neighbourhood_and_are_repeatable():
    explainer = NodeExplainer(build("lgcn", {"activation": "relu"}), random_graph())
    for thorough in (False, True):
        places, importance = explainer.important_edges(5, thorough=thorough)
        assert len(places) == len(importance) == len(set(places.tolist()))
        assert bool((importance >= 0).all())
        again = explainer.important_edges(5, thorough=thorough)
        assert torch.equal(importance, again[1])
    (share,) = explainer.contributions(5).shares
    assert bool((share.importance >= share.by_edge.abs() - 1e-12).all())


def test_thorough_is_for_classes():
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]), 2, x=torch.randn(2, 5), y=torch.rand(2))
    explainer = NodeExplainer(lgcn.LGCN(5, 1), graph)
    assert len(explainer.important_edges(0)[1]) == 2
    with pytest.raises(UsageError, match=r"thorough .*regression"):
        explainer.important_edges(0, thorough=True)
