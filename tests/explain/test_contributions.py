"""Contributions add up to the score, for all networks, and mean what they say."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.explain import NodeExplainer
from lgcn.explain.contributions import NO_EDGES, NO_FEATURES
from lgcn.graph import Graph
from lgcn.nn.lgcn import LGCN
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Ensemble, Part

from .networks import CLASSES, FEATURES, build, networks, random_graph

EXACT = {"rtol": 0, "atol": 1e-8}


def odds(scores: torch.Tensor, target: int) -> torch.Tensor:
    chance = scores.softmax(-1)[..., target]
    return torch.logit(chance)


@given(network=networks, seed=st.integers(0, 9), weights=st.booleans(), loops=st.booleans())
@settings(max_examples=60)
def test_contributions_add_up_to_the_score_of_any_network(
    network: tuple[str, dict[str, Any]], seed: int, weights: bool, loops: bool
):
    model = build(*network, seed)
    graph = random_graph(weights=weights, loops=loops, sparse=seed % 2 == 1, seed=seed)
    node = seed
    found = NodeExplainer(model, graph).contributions(node, target=1)
    score = found.explained
    # The score is that of the network itself.
    whole = model(graph.features(), graph)[node]
    torch.testing.assert_close(score[0], odds(whole, 1).detach(), **EXACT)
    (share,) = found.shares
    for added in (share.by_node, share.by_feature()):
        torch.testing.assert_close(added.sum(), score[0] - score[NO_FEATURES], **EXACT)
    torch.testing.assert_close(share.by_edge.sum(), score[0] - score[NO_EDGES], **EXACT)


@pytest.mark.parametrize(
    "options", [{"aggregate": "mean"}, {"aggregate": "sum"}, {"k": 3}], ids=str
)
def test_contributions_add_up_with_signed_edge_weights(options: dict[str, Any]):
    model = build("residual", {"num_layers": 2, **options})
    graph = random_graph(weights=True)
    assert graph.edge_weight is not None
    sign = torch.where(torch.arange(graph.num_edges) % 3 == 0, -1, 1)
    graph = replace(graph, edge_weight=graph.edge_weight * sign)
    found = NodeExplainer(model, graph).contributions(4, target=1)
    whole = model(graph.features(), graph)[4]
    torch.testing.assert_close(found.explained[0], odds(whole, 1).detach(), **EXACT)
    (share,) = found.shares
    difference = found.explained[0] - found.explained[NO_EDGES]
    torch.testing.assert_close(share.by_edge.sum(), difference, **EXACT)


@given(seed=st.integers(0, 9))
@settings(max_examples=10)
def test_a_linear_network_has_gradient_times_input(seed: int):
    model = build("lgcn", {"layer": "gcn", "num_layers": 1, "classifier": "normalized"}, seed)
    graph = random_graph(seed=seed)
    x = graph.features().clone().requires_grad_()
    scores = model(x, graph)[3]
    (slope,) = torch.autograd.grad(scores[2] - scores[0], x)
    (share,) = NodeExplainer(model, graph).contributions(3, target=2, against=0).shares
    expected = torch.zeros(graph.num_nodes, dtype=torch.double)
    expected[share.field.nodes] = share.by_node
    torch.testing.assert_close(expected, (slope * x).sum(1).detach(), **EXACT)
    torch.testing.assert_close(share.by_feature(), (slope * x).sum(0).detach(), **EXACT)


def test_no_features_is_the_score_of_zeros_if_nothing_is_selected():
    model = build("residual", {"aggregate": "mean", "norm": "layer", "num_layers": 2})
    graph = random_graph()
    found = NodeExplainer(model, graph).contributions(4, target=0)
    zeros = model(torch.zeros_like(graph.features()), graph)[4]
    torch.testing.assert_close(found.explained[NO_FEATURES], odds(zeros, 0).detach(), **EXACT)


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum", "lgcl", "attention"])
def test_no_edges_is_the_score_of_the_node_alone(aggregate: str):
    # Without normalisation by degrees, no message is the same as no edge.
    model = build("residual", {"aggregate": aggregate, "num_layers": 2, "k": 3})
    graph = random_graph()
    found = NodeExplainer(model, graph).contributions(4, target=0)
    alone = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), graph.num_nodes, x=graph.x)
    scores = model(graph.features(), alone)[4]
    torch.testing.assert_close(found.explained[NO_EDGES], odds(scores, 0).detach(), **EXACT)


def test_some_nodes_features_add_up_to_their_contributions():
    model = build("lgcn", {"activation": "relu"})
    for sparse in (False, True):
        graph = random_graph(sparse=sparse)
        (share,) = NodeExplainer(model, graph).contributions(2).shares
        for place in range(len(share.field.nodes)):
            added = share.by_feature(torch.tensor([place])).sum()
            torch.testing.assert_close(added, share.by_node[place], **EXACT)


def ensemble(task: str = "classification") -> Ensemble:
    spec = ModelSpec(FEATURES, 1 if task == "regression" else CLASSES, task)  # type: ignore[arg-type]
    outputs = spec.num_classes
    torch.manual_seed(0)
    models = [
        LGCN(FEATURES, outputs, hidden_channels=4, num_layers=1, k=2, activation="elu"),
        LGCN(FEATURES, outputs, hidden_channels=4, num_layers=0, embedding="linear"),
    ]
    return Ensemble(
        [Part(f"m{i}", one.double().eval(), spec, 1.0 + i, 1.5) for i, one in enumerate(models)]
    )


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_contributions_add_up_for_an_ensemble(task: str):
    model, graph = ensemble(task), random_graph()
    target = 0 if task == "regression" else 1
    explainer = NodeExplainer(model, graph, spec=model.parts[0].spec)
    found = explainer.contributions(3, target=target)
    scores = model.of_graph(graph)[3].double()
    expected = odds(scores, 1) if task == "classification" else scores[target]
    assert float(found.explained[0]) == pytest.approx(float(expected), abs=1e-5)
    for kind, world in (("by_node", NO_FEATURES), ("by_edge", NO_EDGES)):
        total = sum(float(getattr(share, kind).sum()) for share in found.shares)
        rise = float(found.explained[0] - found.explained[world])
        assert total == pytest.approx(rise, abs=1e-7)


def test_an_edge_that_no_layer_reads_adds_nothing():
    model = build("lgcn", {"num_layers": 0, "embedding": "linear", "classifier": "normalized"})
    ring = torch.stack([torch.arange(9), (torch.arange(9) + 1) % 9])
    graph = Graph.from_edge_index(ring, 9, x=torch.randn(9, FEATURES, dtype=torch.double))
    (share,) = NodeExplainer(model, graph).contributions(0).shares
    assert share.field.nodes.tolist() == [0, 1, 8]
    assert share.by_edge.count_nonzero() == 2  # those of the node itself, one way
