"""What is said to change a prediction changes it, and nothing of it is superfluous."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor

import lgcn
from lgcn.explain import NodeExplainer
from lgcn.graph import Graph
from lgcn.tables.from_tables import from_tables

from .networks import FEATURES, build, random_graph


def without(graph: Graph, pairs: list[dict[str, Any]]) -> Graph:
    """The graph made anew from the other edges, so that degrees are counted anew."""
    gone = {frozenset((pair["source"], pair["target"])) for pair in pairs}
    edges = [edge for edge in graph.edge_index.t().tolist() if frozenset(edge) not in gone]
    index = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    return Graph.from_edge_index(index, graph.num_nodes, x=graph.x, directed=True)


def predicted(model: Any, graph: Graph, node: int) -> str:
    scores: Tensor = model(graph.features(), graph)
    return str(int(scores[node].argmax()))


@pytest.mark.parametrize(
    "options",
    [
        {"num_layers": 1, "activation": "relu"},
        {"num_layers": 1, "rank": "raw", "mean": True, "classifier": "sum"},
        {"num_layers": 2, "batch_norm": "running", "classifier": "diffusion", "hops": 2},
    ],
)
def test_removed_edges_change_the_class_and_none_of_them_is_superfluous(options: dict[str, Any]):
    sizes = []
    for seed in range(4):
        model = build("lgcn", options, seed)
        graph = random_graph(16, 30, seed=seed)
        explainer = NodeExplainer(model, graph)
        for node in range(0, 16, 4):
            (found,) = explainer.explain([node], counterfactual=True)
            assert found.predicted == predicted(model, graph, node)
            assert found.counterfactual is not None
            edges = found.counterfactual["edges"]
            if edges["remove"] is None:
                assert "not enough" in edges["reason"]
                continue
            sizes.append(len(edges["remove"]))
            changed = predicted(model, without(graph, edges["remove"]), node)
            assert changed == edges["predicted"] != found.predicted
            for fewer in combinations(edges["remove"], len(edges["remove"]) - 1):
                assert predicted(model, without(graph, list(fewer)), node) == found.predicted
    assert sizes, "no example changes its class"


def test_changed_features_change_the_class_and_half_of_the_change_does_not():
    changes = 0
    for seed in range(4):
        model = build("lgcn", {"num_layers": 1, "activation": "elu"}, seed)
        graph = random_graph(16, 30, seed=seed)
        (found,) = NodeExplainer(model, graph).explain([2], counterfactual=True)
        assert found.counterfactual is not None
        features = found.counterfactual["features"]
        if features["changes"] is None:
            continue
        changes += 1
        for share, expected in ((1.0, features["predicted"]), (0.5, found.predicted)):
            x = graph.features().clone()
            for one in features["changes"]:
                place = int(one["column"].removeprefix("feature "))
                assert one["from"] == float(x[2, place])
                x[2, place] += share * (one["to"] - one["from"])
            assert predicted(model, replace(graph, x=x), 2) == expected
        assert features["predicted"] != found.predicted
    assert changes > 0


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> lgcn.LGCNClassifier:
    """Nodes whose class is that of one column, a number."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [f"n{i},{'high' if i % 2 else 'low'},{100 * (i % 2) + i},x" for i in range(40)]
    edges = [f"n{i},n{(i + 2) % 40}" for i in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["id,kind,price,note", *rows]))
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    graph = from_tables(folder / "edges.csv", folder / "nodes.csv", label_column="kind")
    model = lgcn.LGCNClassifier(
        random_state=0, max_epochs=60, hidden_channels=8, num_layers=1, lr=0.05, dropout=0.0
    )
    return model.fit(graph)


def test_a_column_changes_in_the_users_unit(fitted: lgcn.LGCNClassifier):
    (found,) = fitted.explain("n3", counterfactual=True)
    assert found.predicted == "high"
    assert [entry["column"] for entry in found.by_column] == ["price"]
    assert found.counterfactual is not None
    features = found.counterfactual["features"]
    (change,) = features["changes"]
    assert change["column"] == "price"
    assert change["from"] == pytest.approx(103, abs=0.01)
    assert change["to"] < change["from"]
    assert features["predicted"] == "low"


def test_a_number_has_no_other_class():
    model = lgcn.LGCN(FEATURES, 1, hidden_channels=4).double()
    graph = random_graph()
    graph = replace(graph, y=torch.rand(graph.num_nodes))
    (found,) = lgcn.explain_nodes(model, graph, [1], counterfactual=True)
    assert found.counterfactual is not None
    for change in found.counterfactual.values():
        assert "no other class" in change["reason"]


def test_a_node_without_neighbours_has_no_edges_to_remove():
    graph = Graph.from_edge_index(
        torch.tensor([[0], [1]]), 3, x=torch.randn(3, 5, dtype=torch.double)
    )
    model = build("lgcn", {"num_layers": 1})
    (found,) = lgcn.explain_nodes(model, graph, [2], counterfactual=True)
    assert found.counterfactual is not None
    assert found.counterfactual["edges"] == {"remove": None, "reason": "the node has no neighbours"}
    assert "the node has no neighbours" in found.notes
    assert found.by_edge == []
    assert "svg" in found.svg()
