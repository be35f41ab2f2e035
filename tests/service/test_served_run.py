"""The service answers as `lgcn predict` does, also for new nodes in longer tables."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lgcn import load_run
from lgcn.datasets.graph_source import choose_source
from lgcn.errors import LGCNError
from lgcn.graph import Graph
from lgcn.inference.trained_run import TrainedRun
from lgcn.service.explanations import explain
from lgcn.service.field import hops, reached
from lgcn.service.limits import Limits
from lgcn.service.problems import RequestError
from lgcn.service.schemas import Edge, ExplainRequest, NewNode, PredictRequest
from lgcn.service.served_run import ServedRun, model_name
from lgcn.store.import_store import import_store
from lgcn.training.prepare import prepare_training

from .runs import CASES, NODES, edge_table, node_table, tables_of, write

ServedRuns = Callable[..., ServedRun]


def flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the service with the columns of the table of predictions."""
    found = []
    for row in rows:
        row = dict(row)
        chances = row.pop("probabilities", {})
        found.append(row | {f"probability_{name}": value for name, value in chances.items()})
    return found


def predictions(run: TrainedRun, **data: Any) -> list[dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return run.predictions(**data).to_pylist()


@pytest.mark.parametrize("name", CASES)
def test_known_nodes_are_answered_as_lgcn_predict_does(
    name: str, served_run: ServedRuns, run_of: Callable[[str], Path]
) -> None:
    served = served_run(name)
    expected = predictions(load_run(run_of(name)))
    assert len(expected) == NODES
    order = np.random.default_rng(0).permutation(NODES).tolist()
    asked = [PredictRequest(nodes=[expected[i]["node"] for i in order])]
    [answer] = served.predict(asked)
    # Rows in another order are other products of matrices, whose last digit can differ.
    assert_rows_equal(flat(answer.rows), [expected[i] for i in order], 1e-6)


def assert_rows_equal(
    found: list[dict[str, Any]], expected: list[dict[str, Any]], tolerance: float
) -> None:
    for row, wanted in zip(found, expected, strict=True):
        assert row.keys() == wanted.keys()
        for key, value in row.items():
            if isinstance(value, float):
                assert value == pytest.approx(wanted[key], abs=tolerance, rel=tolerance), key
            else:
                assert value == wanted[key], key


def more_nodes(name: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Three new nodes and their edges: one without neighbours, with a duplicate and a self-loop."""
    case = CASES[name]
    nodes = node_table(3, numbers=case.numbers, first=NODES)
    nodes = nodes[list(tables_of(case)[0].columns)]
    a, b, _ = nodes["id"].tolist()
    known = edge_table(numbers=case.numbers)["source"].tolist()
    pairs = [(a, known[0]), (known[1], a), (a, b), (b, known[2]), (known[3], b), (a, known[0])]
    edges = pd.DataFrame([*pairs, (b, b)], columns=["source", "target"])
    edges["weight"] = np.arange(1, len(edges) + 1) / 4
    return nodes, edges


def request_of(name: str, nodes: pd.DataFrame, edges: pd.DataFrame) -> PredictRequest:
    labels = ["kind", "one", "two", "price"]
    features = [column for column in nodes.columns if column not in ["id", *labels]]
    cells = nodes[features].astype(object).where(nodes[features].notna(), None)
    new = [
        NewNode(id=one, columns=columns)
        for one, columns in zip(nodes["id"].tolist(), cells.to_dict("records"), strict=True)
    ]
    weighted = CASES[name].weighted
    added = [
        Edge(source=s, target=t, weight=w if weighted else None)
        for s, t, w in edges.itertuples(index=False)
    ]
    return PredictRequest(new_nodes=new, edges=added)


def check_new_nodes(name: str, served: ServedRun, run: TrainedRun, folder: Path) -> None:
    nodes, edges = more_nodes(name)
    old_nodes, old_edges = tables_of(CASES[name])
    paths = write(folder, pd.concat([old_nodes, nodes]), pd.concat([old_edges, edges]))
    expected = predictions(run, **paths)[NODES:]
    [answer] = served.predict([request_of(name, nodes, edges)])
    assert not isinstance(answer, RequestError), answer
    found = flat(answer.rows)
    assert [str(row["node"]) for row in found] == [str(row["node"]) for row in expected]
    for row, wanted in zip(found, expected, strict=True):
        assert set(row) | {"true", "split"} == set(wanted) | {"true", "split"}
        for key, value in row.items():
            if isinstance(value, float):
                assert value == pytest.approx(wanted[key], abs=1e-5, rel=1e-5), key
            elif key != "node":
                assert value == wanted[key]


@pytest.mark.parametrize("name", CASES)
def test_new_nodes_are_answered_as_lgcn_predict_does_on_longer_tables(
    name: str, served_run: ServedRuns, run_of: Callable[[str], Path], tmp_path: Path
) -> None:
    check_new_nodes(name, served_run(name), load_run(run_of(name)), tmp_path)


def test_neighbours_make_a_difference(served_run: ServedRuns) -> None:
    """Else the tests above could pass with edges that are ignored."""
    nodes, edges = more_nodes("classes")
    asked = request_of("classes", nodes, edges)
    with_edges, without = served_run().predict([asked, asked.model_copy(update={"edges": []})])
    chances = [row["probabilities"]["art"] for row in with_edges.rows + without.rows]
    assert abs(chances[0] - chances[3]) > 1e-4
    assert chances[2] == pytest.approx(chances[5], abs=1e-6)  # which has no neighbours


def test_requests_together_get_the_answers_that_they_get_alone(served_run: ServedRuns) -> None:
    served = served_run("two layers")
    nodes, edges = more_nodes("two layers")
    new = request_of("two layers", nodes, edges)
    asked = [
        PredictRequest(nodes=["p1", "p2"]),
        new,
        PredictRequest(nodes=["nobody"]),
        new.model_copy(update={"nodes": ["p5"]}),
        PredictRequest(new_nodes=[NewNode(id="x", columns={"sise": 1})]),
    ]
    together = served.predict(asked)
    for one, request in zip(together, asked, strict=True):
        [alone] = served.predict([request])
        if isinstance(alone, RequestError):
            assert isinstance(one, RequestError)
            assert (one.message, one.field) == (alone.message, alone.field)
            continue
        for left, right in zip(flat(one.rows), flat(alone.rows), strict=True):
            assert left["node"] == right["node"]
            assert left["confidence"] == pytest.approx(right["confidence"], abs=1e-6)
    assert "did you mean 'size'" in together[4].message


def test_only_the_neighbourhood_is_computed(
    served_run: ServedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forward pass has the nodes of the receptive field, found by another search."""
    from lgcn.service import served_run as module

    served = served_run("two layers")
    assert served.hops == 4
    sizes = []

    def counted(model: Any, graph: Graph) -> Any:
        sizes.append(graph.num_nodes)
        return predict(model, graph)

    predict = module.predict
    monkeypatch.setattr(module, "predict", counted)
    monkeypatch.setattr(served, "hops", 2)
    edges = [Edge(source="x", target="p3")]
    served.predict([PredictRequest(new_nodes=[NewNode(id="x")], edges=edges)])
    pairs = edge_table()[["source", "target"]].to_numpy()
    near = {"p3"} | {b for ends in (pairs, pairs[:, ::-1]) for a, b in ends if a == "p3"}
    assert sizes == [len(near) + 1]
    assert len(near) < NODES


def test_the_receptive_field_is_the_one_that_gradients_show(served_run: ServedRuns) -> None:
    for name in ("classes", "two layers", "residual"):
        served = served_run(name)
        steps = hops(served.model)
        assert steps is not None
        node = torch.tensor([7])
        x = served.graph.features().clone().requires_grad_()
        served.model(x, served.graph)[node].sum().backward()
        touched = x.grad.abs().sum(1).nonzero().squeeze(1).numpy()  # type: ignore[union-attr]
        field = reached(served.graph, node.numpy(), steps, NODES)
        assert set(touched) <= set(field.tolist())
        assert len(touched) > 5


def test_too_large_neighbourhoods_are_refused(served_run: ServedRuns) -> None:
    served = served_run("classes", max_neighbours=10)
    edges = [Edge(source="x", target="p3")]
    [answer] = served.predict([PredictRequest(new_nodes=[NewNode(id="x")], edges=edges)])
    assert isinstance(answer, RequestError)
    assert answer.status == 413
    assert "10 nodes" in answer.message
    [alone] = served.predict([PredictRequest(new_nodes=[NewNode(id="x")])])
    assert not isinstance(alone, RequestError)


def test_a_store_with_its_ids(tmp_path: Path) -> None:
    nodes, edges = tables_of(CASES["classes"])
    paths = write(tmp_path / "data", nodes, edges)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_store(tmp_path / "store", **paths, label_column="kind", list_columns="tags")
        source = choose_source(store=tmp_path / "store")
        settings = {"max_epochs": 2, "k": 3, "hidden_channels": 8, "device": "cpu"}
        prepare_training(settings, source=source, out=tmp_path / "run").train()
    run = load_run(tmp_path / "run")
    expected = predictions(run)
    served = ServedRun(run, memory="1GB")
    served.warm_up()
    [answer] = served.predict([PredictRequest(nodes=["p3", "p59"])])
    for row, wanted in zip(flat(answer.rows), (expected[3], expected[59]), strict=True):
        assert row == pytest.approx(wanted, abs=1e-6)
    check_new_nodes("classes", served, run, tmp_path / "longer")


def test_nodes_without_ids_and_features_without_columns(tmp_path: Path) -> None:
    from lgcn.datasets import synthetic
    from lgcn.training import Settings, train

    options = {"num_nodes": 50, "num_classes": 3, "num_features": 4, "labels_per_class": 5}
    options |= {"num_val": 12}
    chosen = {"hidden_channels": 8, "k": 3, "max_epochs": 2}
    settings = Settings.create(**chosen, dataset="synthetic", dataset_options=options)
    graph = synthetic(**options)
    train(graph, settings, out=tmp_path / "run")
    run = load_run(tmp_path / "run")
    served = ServedRun(run)
    served.warm_up()
    [answer] = served.predict([PredictRequest(nodes=[4, "7"])])
    expected = run.predictions().to_pylist()
    assert flat(answer.rows) == [expected[4], expected[7]]
    new = NewNode(id="x", features=[0.5, -1, 0, 2])
    edges = [Edge(source="x", target=3), Edge(source=9, target="x")]
    [answer] = served.predict([PredictRequest(new_nodes=[new], edges=edges)])
    added = torch.tensor([[50, 9], [3, 50]])
    longer = Graph.from_edge_index(
        torch.cat([graph.edge_index, added], dim=1),
        x=torch.cat([graph.x, torch.tensor([[0.5, -1, 0, 2]])]),
        y=torch.cat([graph.y, torch.tensor([-1])]),
    )
    scores = run.predict(graph=longer)[-1]
    chances = torch.softmax(scores / run.temperature, 0).tolist()
    assert list(answer.rows[0]["probabilities"].values()) == pytest.approx(chances, abs=1e-5)
    for nodes, field in (
        ([NewNode(id="x", features=[1, 2])], "features"),
        ([NewNode(id="x", columns={"a": 1})], "columns"),
        ([NewNode(id="x", features=[1, 2, 3, 1e39])], "features"),
    ):
        [answer] = served.predict([PredictRequest(new_nodes=nodes)])
        assert answer.field == f"new_nodes[0].{field}"
    [answer] = served.predict([PredictRequest(nodes=[50])])
    assert answer.status == 404
    assert "0 to 49" in answer.message


def test_a_model_with_positions_answers_for_known_nodes_alone(tmp_path: Path) -> None:
    nodes, edges = tables_of(CASES["no features"])
    paths = write(tmp_path / "data", nodes, edges.drop(columns="weight"))
    source = choose_source(**paths, label_column="kind")
    settings = {"max_epochs": 2, "positions": "spectral", "k": 3, "device": "cpu"}
    prepare_training(settings, source=source, out=tmp_path / "run").train()
    served = ServedRun(load_run(tmp_path / "run"))
    served.warm_up()
    known, new = served.predict(
        [PredictRequest(nodes=["p1"]), PredictRequest(new_nodes=[NewNode(id="x")])]
    )
    assert known.rows[0]["node"] == "p1"
    assert new.field == "new_nodes"
    assert "positions=none" in new.message


@pytest.mark.parametrize(
    ("new", "edges", "field", "reason"),
    [
        ([{"id": "p3"}], [], "new_nodes[0].id", "'p3' already"),
        ([{"id": "x"}, {"id": "x"}], [], "new_nodes[1].id", "twice"),
        ([{"id": "x"}], [{"source": "x", "target": "q"}], "edges[0].target", "'q'"),
        ([{"id": "x"}], [{"source": "p1", "target": "p2"}], "edges[0]", "new node"),
        ([{"id": "x"}], [{"source": "x", "target": "p2", "weight": 2}], "edges[0].weight", "Omit"),
        ([{"id": "x", "columns": {"colour": "red"}}], [], "new_nodes[0].columns", "'color'"),
        ([{"id": "x", "columns": {"width": "1e300"}}], [], "new_nodes", "width"),
        ([{"id": "x", "columns": {"color": [1]}}], [], "new_nodes", "color"),
        ([{"id": "x", "features": [1]}], [], "new_nodes[0].features", "columns"),
        (
            [{"id": "x", "columns": {"tags": ["x"]}}, {"id": "y", "columns": {"tags": "y"}}],
            [],
            "new_nodes[1].columns.tags",
            "lists",
        ),
        ([], [{"source": "x", "target": "p2"}], "nodes", "at least one"),
    ],
)
def test_mistakes_name_the_field_and_the_reason(
    served_run: ServedRuns, new: list[Any], edges: list[Any], field: str, reason: str
) -> None:
    [answer] = served_run().predict([PredictRequest(new_nodes=new, edges=edges)])
    assert isinstance(answer, RequestError)
    assert answer.field == field
    assert reason in answer.message
    assert 400 <= answer.status < 500


def test_weights_are_needed_where_the_graph_has_them(served_run: ServedRuns) -> None:
    served = served_run("directed with weights")
    for weight, reason in ((None, "needed"), (-1, "at least 0"), (1e39, "float32")):
        edges = [Edge(source=1, target=1003, weight=weight)]
        [answer] = served.predict([PredictRequest(new_nodes=[NewNode(id=1)], edges=edges)])
        assert answer.field == "edges[0].weight"
        assert reason in answer.message


def test_notes_about_cells_come_with_the_answer(served_run: ServedRuns) -> None:
    new = [NewNode(id="x", columns={"color": "pink", "width": "wide"})]
    [answer] = served_run().predict([PredictRequest(new_nodes=new)])
    assert len(answer.notes) == 2
    assert any("'color'" in note and "pink" in note for note in answer.notes)
    assert any("'width'" in note and "wide" in note for note in answer.notes)


def test_numbers_in_strings_are_read_as_in_the_table(served_run: ServedRuns) -> None:
    """The table has decimal commas, and JSON numbers are what they are."""
    cells = ["1.234,5", 1234.5, "1234,5", " 1234,5 "]
    nodes = [NewNode(id=f"x{i}", columns={"size": cell}) for i, cell in enumerate(cells)]
    requests = [PredictRequest(new_nodes=[node]) for node in nodes]
    rows = [answer.rows[0] for answer in served_run().predict(requests)]
    assert len({round(row["confidence"], 6) for row in rows}) == 1
    [other] = served_run().predict([PredictRequest(new_nodes=[NewNode(id="x")])])
    assert other.rows[0]["confidence"] != pytest.approx(rows[0]["confidence"], abs=1e-4)


def test_the_warm_up_tells_what_is_wrong(
    served_run: ServedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_run()
    monkeypatch.setattr(served, "predict", lambda requests: [RequestError("no")] * len(requests))
    with pytest.raises(LGCNError, match="no"):
        served.warm_up()


def test_names_and_limits(tmp_path: Path) -> None:
    assert model_name(tmp_path / "my run (2)") == "my-run-2"
    assert model_name(Path("/")) == "model"
    assert Limits(max_body="2MB").body_bytes == 2_000_000
    for wrong in ({"max_body": "much"}, {"timeout": 0}, {"queue": 0}, {"max_nodes": 1.5}):
        with pytest.raises(LGCNError, match=next(iter(wrong))):
            Limits(**wrong)


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        ({"edge_columns": "weight"}, {}, "reads edge features.*edge_features=none"),
        ({}, {"directions": "both"}, "reads edges in both directions.*directions=in"),
    ],
    ids=str,
)
def test_networks_of_edge_features_or_both_directions_know_no_new_nodes(
    tmp_path: Path, options: dict[str, Any], settings: dict[str, Any], message: str
) -> None:
    paths = write(tmp_path / "data", node_table()[["id", "width", "kind"]], edge_table())
    source = choose_source(**paths, label_column="kind", directed=True, **options)
    small = {"model": "residual", "num_layers": 1, "max_epochs": 2, "baselines": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare_training(small | settings, source=source, out=tmp_path / "run").train()
        served = ServedRun(load_run(tmp_path / "run"))
        served.warm_up()
    new = PredictRequest(new_nodes=[NewNode(id="new", columns={"width": 1.0})])
    known = PredictRequest(nodes=["p3"])
    found, refused = served.predict([known, new])
    assert not isinstance(found, RequestError)
    assert found.rows[0]["node"] == "p3"
    assert isinstance(refused, RequestError)
    with pytest.raises(RequestError, match=f"new nodes cannot be predicted: .*{message}"):
        raise refused
    with pytest.raises(RequestError, match="cannot be explained"):
        explain(served, ExplainRequest(node="p3"))
