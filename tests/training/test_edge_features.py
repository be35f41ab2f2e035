"""Training on graphs whose labels depend on features, signs or directions of edges."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lgcn import Graph, LGCNClassifier
from lgcn.errors import UsageError
from lgcn.explain.explainer import NodeExplainer
from lgcn.graph import GraphSet
from lgcn.inference import TrainedRun
from lgcn.inference.run_on_parts import RunOnParts
from lgcn.partition import open_partition, write_partition
from lgcn.store.write_store import write_store
from lgcn.training import ModelSpec, Settings, train

SIZE, DEGREE = 400, 6
LGCL = {"aggregate": "lgcl", "cnn": "depthwise", "k": 6, "hidden_channels": 8, "max_epochs": 120}


def masks(size: int) -> dict[str, Tensor]:
    part = torch.arange(size) % 10
    return {"train_mask": part < 6, "val_mask": (part == 6) | (part == 7), "test_mask": part > 7}


def random_edges(seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    target = torch.arange(SIZE).repeat_interleave(DEGREE)
    source = torch.randint(SIZE, (SIZE * DEGREE,), generator=generator)
    return torch.stack([source, target])


def planted(kind: str, seed: int = 0) -> Graph:
    """A graph whose labels are signs of sums over neighbours.

    A neighbour's own feature counts with a sign that an edge feature, the sign of a weight, or the
    direction of the edge decides; that of one column of the edge features says nothing.
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(SIZE, 2, generator=generator)
    edges = random_edges(seed)
    sign = torch.randint(2, (edges.size(1),), generator=generator).float() * 2 - 1
    graph = Graph.from_edge_index(edges, SIZE, directed=True, x=x, edge_attr=sign)
    assert graph.edge_attr is not None
    source, target = graph.edge_index
    noise = torch.randn(graph.num_edges, generator=generator)
    sign = graph.edge_attr[:, 0]
    if kind == "features":
        graph = replace(graph, edge_attr=torch.stack([noise, 5 + 3 * sign], dim=1))
    else:
        graph = replace(graph, edge_attr=None)
        if kind == "signs":
            graph = replace(graph, edge_weight=sign)
    if kind == "directions":
        total = torch.zeros(SIZE).index_add(0, source, x[target, 0])
    else:
        total = torch.zeros(SIZE).index_add(0, target, sign * x[source, 0])
    return replace(graph, y=(total > 0).long(), **masks(SIZE))


def small(**given: Any) -> Settings:
    usual: dict[str, Any] = {
        "model": "residual",
        "dataset": "tables",
        "num_layers": 1,
        "hidden_channels": 16,
        "aggregate": "sum",
        "max_epochs": 80,
        "lr": 0.02,
        "dropout": 0.0,
        "training": "whole",
        "num_workers": 0,
        "baselines": False,
    }
    return Settings.create(**{**usual, **given})


def score_of(graph: Graph, **given: Any) -> float:
    score: float = train(graph, small(**given)).record["test_score"]
    return score


@pytest.mark.parametrize(
    ("kind", "without", "options"),
    [
        ("features", {"edge_features": "none"}, {}),
        ("features", {"edge_features": "none"}, {"aggregate": "mean"}),
        ("features", {"edge_features": "none"}, {"aggregate": "gcn"}),
        ("features", {"edge_features": "none"}, {**LGCL, "adj_dropout": 0.1}),
        ("features", {"edge_features": "none"}, {**LGCL, "cnn": "single", "lr": 0.05}),
        ("directions", {"directions": "in"}, {"directions": "both"}),
        (
            "directions",
            {"directions": "in"},
            {"directions": "both", "aggregate": "lgcl"},
        ),
    ],
    ids=str,
)
def test_labels_that_depend_on_edges_are_learnt_with_them_and_not_without(
    kind: str, without: dict[str, Any], options: dict[str, Any]
) -> None:
    graph = planted(kind)
    assert score_of(graph, **options) > 0.8
    assert score_of(graph, **(options | without)) < 0.68


@pytest.mark.parametrize("aggregate", ["sum", "mean", "lgcl"])
def test_signs_of_edge_weights_are_read(aggregate: str) -> None:
    graph = planted("signs")
    assert score_of(graph, aggregate=aggregate) > 0.8
    assert graph.edge_weight is not None
    unsigned = replace(graph, edge_weight=graph.edge_weight.abs())
    assert score_of(unsigned, aggregate=aggregate) < 0.68


def test_sub_graphs_carry_edge_features_and_directions() -> None:
    for kind, options in (("features", {}), ("directions", {"directions": "both"})):
        graph = planted(kind)
        sampled = {"training": "subgraph", "max_nodes": 300, "max_epochs": 40}
        for sampler in ("bfs", "clusters"):
            assert score_of(graph, sampler=sampler, **sampled, **options) > 0.75


def test_features_are_standardised_by_the_training_and_stored(tmp_path: Path) -> None:
    graph = planted("features")
    assert graph.edge_attr is not None
    attr = torch.cat([graph.edge_attr, torch.full((graph.num_edges, 1), 0.1)], dim=1)
    graph = replace(graph, edge_attr=attr)
    result = train(graph, small(max_epochs=5), out=tmp_path / "run")
    spec = result.spec
    assert spec.edge_channels == 3
    prepared = spec.prepare(graph).edge_attr
    assert prepared is not None
    torch.testing.assert_close(prepared.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(prepared.std(0), torch.tensor([1.0, 1, 0]), atol=1e-3, rtol=0)
    run = TrainedRun(tmp_path / "run")
    assert run.spec == spec
    stored = json.loads((tmp_path / "run/run.json").read_text())["model"]
    assert ModelSpec.from_dict(stored) == spec
    other = replace(planted("features", seed=1), edge_attr=attr[: planted("features", 1).num_edges])
    scores = run.scores(run.spec.prepare(other))
    torch.testing.assert_close(scores, run.scores(spec.prepare(other), memory="1MB"))
    for wrong in (None, other.edge_attr[:, :2]):  # type: ignore[index]
        with pytest.raises(UsageError, match=r"the model wants 3 features per edge, .* has"):
            spec.prepare(replace(other, edge_attr=wrong))
    for key, value in {
        "edge_mean": [float("nan")] * 3,
        "edge_deviation": [1.0, 0.0, 1.0],
        "edge_mean ": None,
    }.items():
        with pytest.raises((ValueError, TypeError)):
            ModelSpec.from_dict({**stored, key.strip(): value})
    with pytest.raises(ValueError, match="edge_deviation must have a number"):
        ModelSpec.from_dict({**stored, "edge_deviation": [1.0]})


def test_edges_of_other_graphs_do_not_scale_the_features() -> None:
    parts = []
    for number, split in enumerate(("train", "val", "test")):
        part = planted("features", seed=number)
        assert part.edge_attr is not None
        only = {f"{s}_mask": torch.full((SIZE,), s == split) for s in ("train", "val", "test")}
        parts.append(replace(part, edge_attr=part.edge_attr * 10**number, **only))
    spec = ModelSpec.of(Graph.concat(parts), small())
    assert spec.edge_mean == pytest.approx(ModelSpec.of(parts[0], small()).edge_mean)


def test_a_graph_without_edge_features_gives_the_same_network() -> None:
    graph = replace(planted("features"), edge_attr=None)
    spec = ModelSpec.of(graph, small())
    assert spec.edge_channels == 0
    assert spec.prepare(graph) is graph
    network = spec.build(small().resolve(graph))
    assert not [name for name in network.state_dict() if "factor" in name]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "lgcn"}, r"model=lgcn does not read .*edge_attr.*: use model=residual, or"),
        ({"model": "boosting"}, r"model=boosting does not read .*edge_attr.*: use model=residual"),
        ({"aggregate": "attention"}, r"aggregate=attention does not read .*edge_features=none"),
        ({"aggregate": "none"}, r"aggregate=none does not read .*edge_features=none"),
    ],
)
def test_models_without_edge_features_refuse_them(given: dict[str, Any], message: str) -> None:
    plain = {"model": "residual", "dataset": "tables", "num_layers": 1, "max_epochs": 1}
    chosen = Settings.create(**{**plain, **given})
    with pytest.raises(UsageError, match=message):
        train(planted("features"), chosen)
    if "aggregate" in given:
        train(planted("features"), chosen.replace(edge_features="none"))


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("features", {}, "edge features"),
        ("signs", {}, "negative edge weights"),
        ("directions", {"directions": "both"}, "directions=both"),
    ],
)
def test_a_portfolio_refuses_what_few_of_its_networks_read(
    kind: str, given: dict[str, Any], message: str
) -> None:
    from lgcn.training.portfolio import train_portfolio

    settings = Settings.create(dataset="tables", model="residual", max_trials=2, **given)
    with pytest.raises(UsageError, match=rf"time_limit and max_trials .*{message}.*model=residual"):
        train_portfolio(planted(kind), settings)


def test_networks_of_whole_graphs_refuse_edge_features() -> None:
    graph = replace(planted("features"), y=None, train_mask=None, val_mask=None, test_mask=None)
    part = graph.subgraph(torch.arange(20))
    y = torch.arange(10) % 2
    graphs = GraphSet.create(Graph.concat([part] * 10), y=y, **masks(10))
    with pytest.raises(UsageError, match=r"model=graph_lgcn does not read .*: omit edge_columns"):
        train(graphs, Settings.create(model="graph_lgcn", dataset="graphs", max_epochs=1))


def test_negative_weights_are_refused_where_weights_are_normalised() -> None:
    graph = planted("signs")
    for given in ({"model": "lgcn"}, {"model": "residual", "aggregate": "gcn"}):
        chosen = Settings.create(dataset="tables", **given)
        with pytest.raises(UsageError, match=r"must not be negative.*-1.*model=residual"):
            train(graph, chosen)


def test_features_of_edges_must_be_finite() -> None:
    graph = planted("features")
    assert graph.edge_attr is not None
    wrong = graph.edge_attr.clone()
    wrong[3, 1] = float("inf")
    with pytest.raises(UsageError, match=r"edge features .* must be finite"):
        train(replace(graph, edge_attr=wrong), small())
    with pytest.raises(UsageError, match="at least one column"):
        train(replace(graph, edge_attr=wrong[:, :0]), small())


def test_both_directions_need_a_directed_graph() -> None:
    graph = planted("directions")
    both = small(directions="both", max_epochs=1)
    undirected = Graph.from_edge_index(graph.edge_index, SIZE, x=graph.x)
    labelled = replace(undirected, y=graph.y, **masks(SIZE))
    with pytest.raises(UsageError, match=r"directions=both needs a directed graph.*directed=True"):
        train(labelled, both)
    # Weights or features of each direction make it a directed one.
    train(replace(labelled, edge_weight=torch.rand(labelled.num_edges)), both)
    train(replace(labelled, edge_attr=torch.rand(labelled.num_edges, 1)), both)
    with pytest.raises(UsageError, match=r"directions=both cannot go with sampler=neighbors"):
        train(graph, both.replace(sampler="neighbors", training="subgraph"))
    with pytest.raises(UsageError, match=r"directions=both cannot go with evaluate_on=neighbors"):
        train(graph, both.replace(evaluate_on="neighbors"))
    with pytest.raises(UsageError, match=r"directions=both cannot go with keep_degree"):
        train(graph, both.replace(keep_degree=True, aggregate="gcn", training="subgraph"))


def test_a_graph_in_parts_has_one_direction_and_no_edge_features(tmp_path: Path) -> None:
    graph = planted("directions")
    train(graph, small(directions="both", max_epochs=1), out=tmp_path / "both")
    train(planted("features"), small(max_epochs=1), out=tmp_path / "features")
    write_store(tmp_path / "store", graph)
    write_partition(tmp_path / "store", tmp_path / "parts", 2, method="hash")
    parts = open_partition(tmp_path / "parts")
    with pytest.raises(UsageError, match=r"directions=both needs the graph in one piece"):
        train(parts, small(directions="both", training="subgraph"))
    with pytest.raises(UsageError, match=r"directions=both needs the graph in one piece"):
        RunOnParts(TrainedRun(tmp_path / "both"), parts)
    with pytest.raises(UsageError, match=r"edge features, which a graph in parts does not have"):
        RunOnParts(TrainedRun(tmp_path / "features"), parts)


def test_explanations_refuse_such_networks(tmp_path: Path) -> None:
    for kind, options, message in (
        ("features", {}, "edge features cannot be explained.*edge_features=none"),
        ("directions", {"directions": "both"}, "directions=both cannot be explained"),
    ):
        result = train(planted(kind), small(max_epochs=1, **options), out=tmp_path / kind)
        graph = result.spec.prepare(planted(kind))
        with pytest.raises(UsageError, match=message):
            NodeExplainer(result.model, graph)


def test_the_classifier_takes_edge_features_of_pyg() -> None:
    graph = planted("features")
    data = graph.to_pyg()
    model = LGCNClassifier(
        num_layers=1,
        max_epochs=80,
        lr=0.02,
        hidden_channels=16,
        dropout=0.0,
        training="whole",
        settings={"model": "residual", "aggregate": "sum", "baselines": False},
        random_state=0,
    )
    model.fit(data, directed=True)
    assert graph.y is not None
    right = torch.from_numpy(model.predict(data)) == graph.y
    assert float(right[graph.test_mask].float().mean()) > 0.7
    data.edge_attr = None
    with pytest.raises(UsageError, match=r"model wants 2 features per edge, .* has 0"):
        model.predict(data)
