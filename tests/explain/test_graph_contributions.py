"""Contributions to the scores of whole graphs add up, for all networks, and mean what they say."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import UsageError
from lgcn.explain import GraphExplainer
from lgcn.explain.contributions import NO_EDGES, NO_FEATURES
from lgcn.explain.neighbourhood import num_hops, whole_graph
from lgcn.explain.secant import ONE_WORLD, Differences
from lgcn.explain.worlds import Worlds, embed
from lgcn.graph import Graph

from .networks import build, graph_networks, random_graphs

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
@settings(max_examples=150)
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


@given(options=graph_networks, seed=st.integers(0, 9), weights=st.booleans())
@settings(max_examples=40)
def test_worlds_compute_what_the_network_computes(
    options: dict[str, Any], seed: int, weights: bool
):
    model: Any = build("graph", options, seed)
    graphs = random_graphs(weights=weights, seed=seed)
    expected = model(graphs.graph.features(), graphs.graph)
    for number in range(len(graphs)):
        field = whole_graph(graphs.graph, number, num_hops(model))
        made, _ = embed(model, field.graph.features())
        (scores,) = Worlds(field, ONE_WORLD).scores(model, made[None])
        torch.testing.assert_close(scores[0], expected[number], **EXACT)


def test_what_is_selected_stays_as_it_is_in_world_0():
    model: Any = build("graph", {"readout": "max+k_largest+sort", "readout_k": 2, "norm": "none"})
    field = whole_graph(random_graphs().graph, 1, num_hops(model))
    made, empty = embed(model, field.graph.features())
    worlds = Worlds(field, Differences(torch.tensor([0, 0])))
    worlds.scores(model, torch.stack([made, empty]))
    # All nodes are alike without features, so that others would be selected.
    assert len(worlds.read) == 3 * 4
    first, after = worlds.read_grids[0][:, 0, 0]
    torch.testing.assert_close(first, made.relu().amax(0))
    torch.testing.assert_close(after, empty.relu()[0])
    names = [type(one.layer).__name__ for one in worlds.read[:3]]
    assert names == ["SimpleReadout", "KLargestReadout", "SortPooling"]
    sort = worlds.read[2].node[0]
    assert (sort == sort[:, :1]).all()  # the same nodes for all features


def test_an_edge_without_weight_and_a_node_without_features_add_nothing():
    graphs = random_graphs(weights=True)
    weight, x = graphs.graph.edge_weight, graphs.graph.features().clone()
    assert weight is not None
    first, last = graphs.edge_ptr[1:3].tolist()
    weight[first + 2], x[10] = 0, 0
    graphs = graphs.with_graph(x=x, edge_weight=weight)
    for append in ("sum", "mean"):
        model = build("graph", {"append": append, "readout": "sum+k_largest"})
        (share,) = GraphExplainer(model, graphs).contributions(1).shares
        assert len(share.by_edge) == last - first
        assert share.by_edge[2] == 0
        assert share.by_node[10 - int(graphs.ptr[1])] == 0
        assert share.by_edge.count_nonzero() > 0
        assert share.by_node.count_nonzero() > 0


def test_the_worlds_are_those_without_features_and_without_messages():
    plain = {"num_layers": 0, "readout": "sum+mean"}  # which selects nothing
    graphs = random_graphs()
    model = build("graph", plain)
    found = GraphExplainer(model, graphs).contributions(1, target=0)
    zeros = model(torch.zeros_like(graphs.graph.features()), graphs.graph)[1]
    torch.testing.assert_close(found.explained[NO_FEATURES], odds(zeros, 0), **EXACT)

    model = build("graph", {"num_layers": 1, "append": "sum", "readout": "sum"})
    found = GraphExplainer(model, graphs).contributions(1, target=0)
    nothing = torch.empty(2, 0, dtype=torch.long)
    alone = graphs[1]
    alone = Graph.from_edge_index(nothing, alone.num_nodes, x=alone.features())
    torch.testing.assert_close(
        found.explained[NO_EDGES], odds(model(alone.features(), alone)[0], 0), **EXACT
    )


def test_the_other_graphs_of_the_set_change_nothing():
    model, graphs = build("graph", {"pooling": "topk"}), random_graphs()
    (together,) = GraphExplainer(model, graphs).explain([1])
    (alone,) = GraphExplainer(model, graphs.select([1])).explain([0])
    assert {**together.to_dict(), "graph": 0} == alone.to_dict()


@pytest.mark.parametrize("pooling", ["topk", "sag", "cluster"])
def test_an_edge_that_a_pooling_reads_adds_something(pooling: str):
    # Without LGCLs before it, an edge reaches the score through what the pooling keeps.
    model = build("graph", {"num_layers": 2, "pooling": pooling, "activation": "none"})
    (share,) = GraphExplainer(model, random_graphs()).contributions(1).shares
    assert share.by_edge.count_nonzero() == len(share.by_edge) > 0
    later = share.chosen[1].nodes
    assert len(later) == (10 if pooling != "cluster" else len(later)) < 20
    assert set(later.tolist()) < set(share.field.nodes.tolist())


def test_a_graph_without_nodes_is_refused_in_words():
    graphs = random_graphs(((3, 2), (0, 0), (4, 3)))
    explainer = GraphExplainer(build("graph", {}), graphs)
    for ask in (explainer.explain, explainer.contributions):
        with pytest.raises(UsageError, match="graph 1 has no nodes"):
            ask([1] if ask == explainer.explain else 1)
    (found,) = explainer.explain([2])
    assert len(found.by_node) == 4
