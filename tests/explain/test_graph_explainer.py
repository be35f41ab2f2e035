"""Explanations of whole graphs: names, lists, planted patterns, pictures, what is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pytest
import torch

import lgcn
from lgcn.errors import UsageError
from lgcn.explain import Explanation, GraphExplainer
from lgcn.explain.layout import spring_layout
from lgcn.explain.picture import GRAPH_NODES
from lgcn.graph import Graph, GraphSet
from lgcn.training.model_spec import ModelSpec

from .networks import CLASSES, FEATURES, build, random_graphs
from .test_explainer import total

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def explainer() -> GraphExplainer:
    options = {"readout": "sum+max+k_largest", "readout_k": 3, "norm": "layer"}
    return GraphExplainer(build("graph", options), random_graphs())


@pytest.fixture(scope="module")
def found(explainer: GraphExplainer) -> Explanation:
    return explainer.explain([1])[0]


def test_the_lists_add_up_and_are_sorted(found: Explanation):
    rise = found.score - found.baseline
    assert total(found.by_node) == pytest.approx(rise, abs=1e-8)
    assert total(found.by_column) == pytest.approx(rise, abs=1e-8)
    assert total(found.by_edge) == pytest.approx(found.score - found.without_edges, abs=1e-8)
    for entries in (found.by_node, found.by_edge, found.by_column):
        sizes = [abs(one["contribution"]) for one in entries]
        assert sizes == sorted(sizes, reverse=True)
        assert not any("hops" in one for one in entries)
    assert [one["node"] for one in sorted(found.by_node, key=lambda one: one["node"])] == list(
        range(20)
    )


def test_what_lgcls_and_read_outs_selected_is_counted(found: Explanation, explainer: Any):
    graph = explainer.graph.subgraph(torch.arange(7, 27))
    convs = explainer.model.layers
    for layer, conv in zip(found.selected, convs, strict=True):
        degree = graph.rowptr.diff().clamp(max=conv.k)
        assert layer["filled"] == int(degree.sum()) * conv.in_channels
        assert sum(one["count"] for one in layer["neighbours"]) == layer["filled"]
        firsts = sum(one["first"] for one in layer["neighbours"])
        assert firsts == int((degree > 0).sum()) * conv.in_channels
    names = [(one["readout"], one["level"], one["k"]) for one in found.readouts]
    assert names == [(name, level, k) for level in range(4) for name, k in
                     (("max", 1), ("k_largest", 3))]  # fmt: skip
    for one in found.readouts:
        assert sum(entry["count"] for entry in one["neighbours"]) == one["k"] * one["features"]
    # The places name columns, also those of the read-outs.
    assert all(place["feature"] in found.units for entry in found.readouts[0]["neighbours"]
               for place in entry["places"])  # fmt: skip


def test_it_is_a_json_object_and_a_table(found: Explanation):
    record = json.loads(json.dumps(found.to_dict(top=2)))
    assert next(iter(record)) == "graph"
    assert "node" not in record
    assert "unit" not in record
    assert len(record["by_node"]) == len(record["readouts"][0]["neighbours"]) == 2
    table = found.table()
    assert set(table["graph"].to_pylist()) == {"1"}
    kinds = table["kind"].to_pylist()
    assert kinds.count("node") == 20
    assert kinds.count("readout k_largest") > 0
    assert found.table().equals(table)


def test_ids_of_graphs_nodes_and_columns_are_used():
    graphs = random_graphs()
    names = np.array([f"atom {i}" for i in range(graphs.num_nodes)])
    graphs = graphs.with_graph(node_ids=names).with_targets(
        node_ids=np.array(["a", "b", "c", "d"]),
        y=torch.zeros(4, dtype=torch.long),
        label_names=("x", "y", "z"),
    )
    (one,) = GraphExplainer(build("graph", {}), graphs).explain([1], target="y", against="z")
    assert (one.node, one.explained, one.against) == ("b", "y", "z")
    assert {entry["node"] for entry in one.by_node} == set(names[7:27])
    assert {entry["column"] for entry in one.by_column} == {f"feature {i}" for i in range(FEATURES)}
    with pytest.raises(UsageError, match="graphs must lie between 0 and 3, got 4"):
        GraphExplainer(build("graph", {}), graphs).explain([4])


def test_labels_and_numbers_are_explained_in_their_units():
    graphs = random_graphs()
    model = build("graph", {"readout": "mean"})
    scores = model(graphs.graph.features(), graphs.graph)[1]
    several = graphs.with_targets(y=torch.ones(4, CLASSES, dtype=torch.long))
    (one,) = GraphExplainer(model, several).explain([1], target="1")
    assert one.score == pytest.approx(float(scores[1]))
    spec = ModelSpec(FEATURES, 1, "regression", target_mean=10.0, target_scale=3.0, unit="graph")
    number = lgcn.GraphLGCN(FEATURES, 1, hidden_channels=4).double().eval()
    (one,) = GraphExplainer(number, graphs, spec=spec).explain([1])
    value = float(number(graphs.graph.features(), graphs.graph)[1, 0].detach()) * 3 + 10
    assert one.predicted == one.score == pytest.approx(value, abs=1e-6)
    assert total(one.by_edge) == pytest.approx(one.score - one.without_edges, abs=1e-6)


def test_graphs_without_edges_and_of_one_node_are_explained(explainer: GraphExplainer):
    for number, size in ((2, 1), (3, 5)):
        (one,) = explainer.explain([number], counterfactual=True)
        assert len(one.by_node) == size
        assert one.by_edge == []
        assert one.score == pytest.approx(one.without_edges)
        assert total(one.by_node) == pytest.approx(one.score - one.baseline, abs=1e-8)
        assert "the graph has no edges" in one.notes
        assert one.counterfactual is not None
        assert one.counterfactual["edges"]["reason"] == "the graph has no edges"
        ElementTree.fromstring(one.svg())


def test_what_cannot_be_explained_is_refused_by_name():
    graphs = random_graphs()
    with pytest.raises(UsageError, match=r"Linear cannot be explained.*GraphLGCN"):
        GraphExplainer(torch.nn.Linear(FEATURES, 2), graphs)
    model = build("graph", {})
    with pytest.raises(UsageError, match=r"GraphLGCN predicts whole graphs.*GraphExplainer"):
        lgcn.explain_nodes(model, graphs.graph, [0])
    with pytest.raises(UsageError, match="important_edges is for models of nodes"):
        GraphExplainer(model, graphs).important_edges(0)


def test_another_pooling_is_refused_with_those_that_can_be_explained():
    model: Any = build("graph", {"num_layers": 2})
    model.pools[0] = torch.nn.Tanh()
    with pytest.raises(UsageError, match="Tanh cannot be explained; pooling=none, topk, sag"):
        GraphExplainer(model, random_graphs()).explain([1])


def test_a_graph_that_memory_cannot_hold_is_refused_before_the_work(
    monkeypatch: pytest.MonkeyPatch,
):
    explainer = GraphExplainer(build("graph", {}), random_graphs())
    monkeypatch.setattr("lgcn.utils.memory.machine_memory", lambda: 50_000)
    with pytest.raises(UsageError, match=r"graph 1 would need .* of memory"):
        explainer.explain([1])
    assert explainer.explain([2])[0].node == 2


def planted_feature(count: int, seed: int) -> tuple[GraphSet, list[set[int]]]:
    """Rings with chords, of which every second has a node with feature 2."""
    rng = np.random.default_rng(seed)
    graphs, where = [], []
    for number in range(count):
        size = int(rng.integers(8, 16))
        ring = [(i, (i + 1) % size) for i in range(size)]
        edges = np.array(ring + rng.integers(0, size, (4, 2)).tolist()).T
        x = torch.from_numpy((rng.random((size, 4)) < 0.4).astype(np.float32))
        node = int(rng.integers(size))
        x[:, 2] = 0
        x[node, 2] = number % 2
        graphs.append(Graph.from_edge_index(torch.from_numpy(edges), size, x=x))
        where.append({node})
    ptr = torch.tensor([0, *(one.num_nodes for one in graphs)]).cumsum(0)
    y = torch.arange(count) % 2
    return GraphSet.create(replace(Graph.concat(graphs), ptr=ptr), y=y), where


@pytest.mark.parametrize("readout", ["sum+max", "k_largest", "mean"])
def test_a_planted_feature_and_its_node_come_first(readout: str):
    graphs, _ = planted_feature(120, 0)
    torch.manual_seed(0)
    model = lgcn.GraphLGCN(4, 2, hidden_channels=16, num_layers=2, k=4, readout=readout, dropout=0)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):
        optimizer.zero_grad()
        scores = model(graphs.graph.features(), graphs.graph)
        torch.nn.functional.cross_entropy(scores, graphs.y).backward()
        optimizer.step()
    new, where = planted_feature(60, 1)
    hits = 0
    for number in range(1, 60, 2):
        (one,) = GraphExplainer(model, new).explain([number], target="1")
        node, column = one.by_node[0], one.by_column[0]
        hits += node["node"] in where[number] and column["column"] == "feature 2"
    assert hits >= 27  # of 30


def planted_clique(count: int, seed: int) -> tuple[list[nx.Graph], list[str], list[set[int]]]:
    """Rings with a clique among four nodes, or with as many chords somewhere."""
    rng = np.random.default_rng(seed)
    graphs, where = [], []
    for number in range(count):
        graph = nx.cycle_graph(int(rng.integers(12, 20)))
        size = graph.number_of_nodes()
        nodes = rng.permutation(size)[:4].tolist()
        if number % 2:
            graph.add_edges_from((a, b) for a in nodes for b in nodes if a < b)
        else:
            steps = rng.integers(0, size - 3, (5, 2)).tolist()
            graph.add_edges_from((a, (a + 2 + b) % size) for a, b in steps)
        graphs.append(graph)
        where.append(set(nodes))
    return graphs, ["chords", "clique"] * (count // 2), where


def test_planted_edges_and_their_nodes_come_first():
    graphs, y, _ = planted_clique(160, 0)
    model = lgcn.GraphClassifier(
        max_epochs=15, hidden_channels=16, num_layers=2, random_state=0, device="cpu"
    ).fit(graphs, y)
    new, _, where = planted_clique(60, 1)
    found = model.explain(list(range(1, 60, 2)), target="clique", X=new)
    first = nodes = edges = 0.0
    for number, one in zip(range(1, 60, 2), found, strict=True):
        planted = where[number]
        first += one.by_node[0]["node"] in planted
        nodes += len({entry["node"] for entry in one.by_node[:4]} & planted) / 4
        ends = [{entry["source"], entry["target"]} for entry in one.by_edge[:6]]
        edges += sum(pair <= planted for pair in ends) / 6
    assert first >= 28  # of 30
    assert nodes >= 27
    assert edges >= 25


def test_edges_to_remove_change_the_prediction_with_all_that_depends_on_them():
    graphs, y, _ = planted_clique(80, 0)
    model = lgcn.GraphClassifier(
        max_epochs=15, hidden_channels=16, num_layers=1, random_state=0, device="cpu"
    ).fit(graphs, y)
    tried = 0
    for number in (1, 3, 5):
        (one,) = model.explain(number, counterfactual=True)
        changes: Any = one.counterfactual
        assert "models of nodes only" in changes["features"]["reason"]
        if changes["edges"]["remove"] is None:
            continue
        fewer = graphs[number].copy()
        fewer.remove_edges_from(
            (pair["source"], pair["target"]) for pair in changes["edges"]["remove"]
        )
        assert model.predict([fewer])[0] == changes["edges"]["predicted"] != one.predicted
        chance = model.predict_proba([fewer]).max()
        assert changes["edges"]["confidence"] == pytest.approx(chance, abs=1e-4)
        tried += 1
    assert tried > 0


def test_the_picture_shows_the_graph(found: Explanation):
    picture = ElementTree.fromstring(found.svg())
    assert "graph 1" in (picture.findtext(f"{SVG}title") or "")
    tips = [tip.text or "" for tip in picture.iter(f"{SVG}title")]
    assert sum(tip.startswith("edge ") for tip in tips) == len(found.by_edge)
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert {str(number) for number in range(20)} <= set(texts)
    assert any(text.startswith("LGCL 1: whose values") for text in texts)
    assert any(text.startswith("Read-out k_largest of LGCL 3") for text in texts)
    assert not any("Rings" in text or "of 20 nodes" in text for text in texts)
    assert not list(picture.iter(f"{SVG}ring"))


def test_a_large_graph_shows_its_most_important_nodes_and_says_so():
    model = build("graph", {"num_layers": 1})
    (one,) = GraphExplainer(model, random_graphs(((90, 150),))).explain([0])
    picture = one.svg()
    assert f"the {GRAPH_NODES} of 90 nodes that contribute most" in picture
    circles = ElementTree.fromstring(picture).iter(f"{SVG}g")
    assert len(list(circles)) == GRAPH_NODES
    (again,) = GraphExplainer(model, random_graphs(((90, 150),))).explain([0])
    assert again.svg() == picture


def test_the_layout_is_in_the_unit_square_and_keeps_nodes_apart():
    for count in (1, 2, 12):
        ring = [(i, (i + 1) % count) for i in range(count)] if count > 2 else []
        places = np.array(spring_layout(count, ring)).reshape(-1, 2)
        assert places.shape == (count, 2)
        assert ((places >= 0) & (places <= 1)).all()
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        assert (apart[~np.eye(count, dtype=bool)] > 0.1).all()
    # Neighbours are nearer than others.
    near = [apart[i, (i + 1) % 12] for i in range(12)]
    assert max(near) < apart[0, 6]


def test_a_saved_explanation_is_a_page(found: Explanation, tmp_path: Path):
    from lgcn.inference.explanations import write_explanations

    assert write_explanations([found], tmp_path / "why.html") == 0
    assert "Why graph 1" in (tmp_path / "why.html").read_text(encoding="utf-8")
