"""Contributions to the scores of whole graphs add up, for all networks, and mean what they say."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.explain import GraphExplainer
from lgcn.explain.contributions import NO_EDGES, NO_FEATURES
from lgcn.explain.neighbourhood import num_hops, whole_graph
from lgcn.explain.secant import ONE_WORLD
from lgcn.explain.worlds import Worlds, embed
from lgcn.graph import Graph, GraphSet

from .networks import FEATURES, build, graph_networks, random_graphs

EXACT = {"rtol": 1e-12, "atol": 1e-8}


def odds(scores: torch.Tensor, target: int) -> torch.Tensor:
    """The log odds of a class, also where its probability is 1 in double precision."""
    others = torch.arange(scores.numel()) != target
    return (scores[target] - scores[others].logsumexp(0)).detach()


@given(
    options=graph_networks,
    number=st.integers(0, 3),
    seed=st.integers(0, 9),
    weights=st.booleans(),
    loops=st.booleans(),
)
@settings(max_examples=80)
def test_contributions_add_up_to_the_score_of_any_network(
    options: dict[str, Any], number: int, seed: int, weights: bool, loops: bool
):
    model = build("graph", options, seed)
    loops = loops and not weights
    graphs = random_graphs(weights=weights, loops=loops, sparse=seed % 2 == 1, seed=seed)
    found = GraphExplainer(model, graphs).contributions(number, target=1)
    score = found.explained
    # The score is that of the network itself, which computes all graphs at once.
    whole = model(graphs.graph.features(), graphs.graph)[number]
    torch.testing.assert_close(score[0], odds(whole, 1), **EXACT)
    (share,) = found.shares
    for added in (share.by_node, share.by_feature()):
        torch.testing.assert_close(added.sum(), score[0] - score[NO_FEATURES], **EXACT)
    torch.testing.assert_close(share.by_edge.sum(), score[0] - score[NO_EDGES], **EXACT)
