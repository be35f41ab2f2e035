"""Explanations of nodes: names, lists, determinism, wrong arguments."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

import lgcn
from lgcn.errors import UsageError
from lgcn.explain import Explanation, NodeExplainer
from lgcn.nn.boosted_trees import BoostedTrees
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Ensemble, Part
from lgcn.training.structure import Structure

from .networks import CLASSES, FEATURES, build, random_graph


def total(entries: list[dict[str, Any]]) -> float:
    return sum(one["contribution"] for one in entries)


@pytest.fixture(scope="module")
def found() -> Explanation:
    return lgcn.explain_nodes(build("lgcn", {"activation": "relu"}), random_graph(), [5])[0]


def test_the_lists_add_up_and_are_sorted(found: Explanation):
    rise = found.score - found.baseline
    assert total(found.by_node) == pytest.approx(rise, abs=1e-8)
    assert total(found.by_column) == pytest.approx(rise, abs=1e-8)
    assert total(found.by_edge) == pytest.approx(found.score - found.without_edges, abs=1e-8)
    for entries in (found.by_node, found.by_edge, found.by_column):
        sizes = [abs(one["contribution"]) for one in entries]
        assert sizes == sorted(sizes, reverse=True)
    assert found.confidence == pytest.approx(float(torch.tensor(found.score).sigmoid()), abs=1e-6)


def test_an_edge_is_one_entry_that_points_to_the_node(found: Explanation):
    pairs = [frozenset((one["source"], one["target"])) for one in found.by_edge]
    assert len(pairs) == len(set(pairs))
    assert all(one["target"] == 5 for one in found.by_edge if one["hops"] == 0)


def test_a_node_is_explained_alike_again_in_any_order_and_company():
    explainer = NodeExplainer(build("lgcn", {"activation": "gelu"}), random_graph())
    alone = [explainer.explain([node])[0] for node in (3, 8, 1)]
    again = NodeExplainer(explainer.model, explainer.graph).explain([1, 8, 3])[::-1]
    assert alone == [again[0], again[1], again[2]]


def test_it_is_a_json_object_and_a_table(found: Explanation):
    record = json.loads(json.dumps(found.to_dict(top=2)))
    assert len(record["by_node"]) == len(record["by_column"]) == 2
    assert record["score"] == found.score
    table = found.table()
    kinds = table["kind"].to_pylist()
    assert kinds.count("node") == len(found.by_node)
    assert kinds.count("edge") == len(found.by_edge)
    of_columns = [
        value
        for kind, value in zip(kinds, table["contribution"].to_pylist(), strict=True)
        if kind == "column"
    ]
    assert sum(of_columns) == pytest.approx(found.score - found.baseline, abs=1e-8)


def test_only_the_neighbourhood_is_read():
    ring = torch.stack([torch.arange(500), (torch.arange(500) + 1) % 500])
    x = torch.full((500, FEATURES), torch.nan, dtype=torch.double)
    x[:7] = torch.randn(7, FEATURES, dtype=torch.double)
    graph = lgcn.Graph.from_edge_index(ring, 500, x=x)
    (one,) = lgcn.explain_nodes(build("lgcn", {"num_layers": 1}), graph, [3])
    assert one.nodes_read == 7
    assert all(torch.isfinite(torch.tensor(e["contribution"])) for e in one.by_node)


def test_a_target_and_a_class_to_compare_with_are_explained():
    model, graph = build("lgcn", {}), random_graph()
    scores = model(graph.features(), graph)[5]
    (one,) = lgcn.explain_nodes(model, graph, [5], target="2", against="0")
    assert (one.explained, one.against) == ("2", "0")
    assert one.score == pytest.approx(float(scores[2] - scores[0]))


def test_names_of_classes_nodes_and_features_are_used():
    import numpy as np

    graph = random_graph()
    graph = replace(
        graph,
        label_names=("a", "b", "c"),
        node_ids=np.array([f"n{i}" for i in range(20)]),
        y=torch.zeros(20, dtype=torch.long),
    )
    names = [f"word {i}" for i in range(FEATURES)]
    (one,) = lgcn.explain_nodes(build("lgcn", {}), graph, [5], feature_names=names)
    assert one.node == "n5"
    assert one.predicted in "abc"
    assert {entry["column"] for entry in one.by_column} <= set(names)
    with pytest.raises(UsageError, match=r"feature_names .*5.*got 1"):
        lgcn.explain_nodes(build("lgcn", {}), graph, [5], feature_names=["x"])


def test_labels_and_numbers_are_explained_in_their_units():
    model, graph = build("residual", {"aggregate": "lgcl"}), random_graph()
    several = replace(graph, y=torch.ones(20, CLASSES, dtype=torch.long))
    scores = model(graph.features(), graph)[5]
    (one,) = lgcn.explain_nodes(model, several, [5], target="1")
    assert one.score == pytest.approx(float(scores[1]))
    spec = ModelSpec(FEATURES, 1, "regression", target_mean=10.0, target_scale=3.0)
    number = lgcn.LGCN(FEATURES, 1, hidden_channels=4).double().eval()
    (one,) = NodeExplainer(number, graph, spec=spec).explain([5])
    value = float(number(graph.features(), graph)[5, 0]) * 3 + 10
    assert one.predicted == pytest.approx(value, abs=1e-6)
    assert (one.explained, one.confidence) == ("value", None)
    assert total(one.by_column) == pytest.approx(one.score - one.baseline, abs=1e-6)


def test_features_from_the_edges_are_named_so():
    from lgcn.explain.columns import Columns

    structure = Structure(("log_degree",), (0.0,), (1.0,), "learnt", 2)
    columns = Columns.of(6, structure=structure)
    assert columns.names[-2:] == ("log_degree (from the edges)", "position in the graph")
    assert columns.column.tolist() == [0, 1, 2, 3, 4, 4]


def trees() -> BoostedTrees:
    return BoostedTrees(FEATURES, CLASSES, trees=1, leaves=2).eval()


def test_trees_of_an_ensemble_are_held_and_named():
    spec = ModelSpec(FEATURES, CLASSES)
    network = build("lgcn", {"num_layers": 1}).float()
    graph = random_graph()
    graph = replace(graph, x=graph.features().float())
    model = Ensemble([Part("net", network, spec, 3.0), Part("trees", trees(), spec, 1.0)])
    (one,) = NodeExplainer(model, graph, spec=spec).explain([2])
    assert any("trees" in note and "25%" in note for note in one.notes)
    assert total(one.by_node) == pytest.approx(one.score - one.baseline, abs=1e-5)
    alone = Ensemble([Part("trees", trees(), spec, 1.0)])
    with pytest.raises(UsageError, match="trees"):
        NodeExplainer(alone, graph, spec=spec)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"nodes": [20]}, "between 0 and 19, got 20"),
        ({"nodes": [-1]}, "between 0 and 19, got -1"),
        ({"nodes": [1], "target": "x"}, "target .*'x'"),
        ({"nodes": [1], "against": 7}, "against .*'7'"),
        ({"nodes": [1], "target": 1, "against": 1}, "target and against"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], words: str):
    with pytest.raises(UsageError, match=words):
        lgcn.explain_nodes(build("lgcn", {}), random_graph(), **arguments)


def test_other_models_are_refused():
    with pytest.raises(UsageError, match="Linear cannot be explained"):
        lgcn.explain_nodes(torch.nn.Linear(5, 3), random_graph(), [0])
    with pytest.raises(UsageError, match="BoostedTrees cannot be explained"):
        lgcn.explain_nodes(trees(), random_graph(), [0])
    bare = replace(random_graph(), x=None)
    with pytest.raises(UsageError, match="no features"):
        lgcn.explain_nodes(build("lgcn", {}), bare, [0])
