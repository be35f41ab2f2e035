"""The ranking of edges finds those that a prediction needs."""

from typing import Any

import pytest
import torch
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

import lgcn
from lgcn.errors import UsageError
from lgcn.explain import NodeExplainer, worlds
from lgcn.explain.edge_importance import CANDIDATES, LEVELS
from lgcn.explain.neighbourhood import num_hops
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


@pytest.mark.parametrize("fused_from", [0, 10**9])
@pytest.mark.parametrize(
    "options", [{"rank": "raw", "mean": True}, {"cnn": "shared", "classifier": "diffusion"}]
)
def test_the_importance_is_the_mean_size_of_gradients_by_pyg_masks_times_a_walk(
    monkeypatch: pytest.MonkeyPatch, fused_from: int, options: dict[str, Any]
):
    monkeypatch.setattr(worlds, "FUSED_FROM", fused_from)
    graph = random_graph(30, 50)
    model = build("lgcn", {"num_layers": 2, "k": 3, "activation": "relu", "hops": 2, **options})
    places, importance = NodeExplainer(model, graph).important_edges(5)
    chosen = int(model(graph.features(), graph)[5].argmax())
    sizes = []
    for level in LEVELS:
        mask = torch.full((graph.num_edges,), level, dtype=torch.double, requires_grad=True)
        set_masks(model, mask, graph.edge_index, apply_sigmoid=False)
        chances = model(graph.features(), graph)[5].softmax(0)
        clear_masks(model)
        log_odds = chances[chosen].logit()
        sizes.append(torch.autograd.grad(log_odds, mask)[0].abs())
    expected = torch.stack(sizes).mean(0) * _flow(graph, 5, steps=num_hops(model))
    torch.testing.assert_close(importance, expected[places])
    expected[places] = 0
    assert not expected.any()  # other edges change nothing


def _flow(graph: Graph, node: int, steps: int) -> torch.Tensor:
    """How often a random walk takes each edge, from powers of the matrix of transitions."""
    source, target = graph.edge_index
    moves = torch.zeros(graph.num_nodes, graph.num_nodes).index_put((target, source), torch.ones(1))
    moves = moves / moves.sum(1, keepdim=True).clamp(min=1)
    visits = sum(torch.linalg.matrix_power(moves, step)[node] for step in range(steps))
    return visits[target] * moves[target, source]


def test_the_thorough_ranking_removes_what_is_needed_least():
    explainer = NodeExplainer(build("lgcn", {"activation": "relu"}), random_graph(30, 50))
    _, ranked = explainer.important_edges(5, thorough=True)
    _, importance = explainer.important_edges(5)
    strongest = set(importance.argsort(descending=True, stable=True)[:CANDIDATES].tolist())
    assert set(ranked.argsort(descending=True, stable=True)[: len(strongest)].tolist()) == strongest


def test_thorough_is_for_classes():
    graph = Graph.from_edge_index(torch.tensor([[0], [1]]), 2, x=torch.randn(2, 5), y=torch.rand(2))
    explainer = NodeExplainer(lgcn.LGCN(5, 1), graph)
    assert len(explainer.important_edges(0)[1]) == 2
    with pytest.raises(UsageError, match=r"thorough .*regression"):
        explainer.important_edges(0, thorough=True)


def test_a_node_without_neighbours_has_no_edges_to_rank():
    graph = Graph.from_edge_index(
        torch.tensor([[0], [1]]), 3, x=torch.randn(3, 5), y=torch.arange(3)
    )
    for thorough in (False, True):
        places, importance = NodeExplainer(lgcn.LGCN(5, 3), graph).important_edges(
            2, thorough=thorough
        )
        assert len(places) == len(importance) == 0
