"""Explanations of a trained run: ids, files, new data, stores."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import lgcn
from lgcn.datasets import synthetic
from lgcn.datasets.graph_source import choose_source
from lgcn.errors import DataError, UsageError
from lgcn.inference import TrainedRun
from lgcn.inference.explanations import NodeIds, write_explanations
from lgcn.store.write_store import write_store
from lgcn.training import Settings, train
from lgcn.training.prepare import prepare_training
from tests.training.whole_graphs import some_graphs

from .test_trained_run import GRAPH, SMALL, write_tables


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    folder = tmp_path_factory.mktemp("trained")
    source = choose_source(**write_tables(folder / "data", "p", 40), label_column="kind")
    prepare_training(SMALL, source=source, out=folder / "run").train()
    return lgcn.load_run(folder / "run")


def test_it_explains_what_the_run_predicts(run: TrainedRun):
    table = run.predictions().to_pylist()
    found = run.explain(["p7", "p0", "p31"])
    for one in found:
        row = next(row for row in table if row["node"] == one.node)
        assert one.predicted == one.explained == row["predicted"]
        assert one.confidence == pytest.approx(row["confidence"], abs=1e-5)
        assert one.score == pytest.approx(
            np.log(row["confidence"] / (1 - row["confidence"])), abs=1e-3
        )
        added = sum(entry["contribution"] for entry in one.by_column)
        assert added == pytest.approx(one.score - one.baseline, abs=1e-4)
        assert [entry["column"] for entry in one.by_column] == ["size"]


def test_one_id_is_enough_and_an_explainer_serves_many_calls(run: TrainedRun):
    explainer = run.explainer()
    assert explainer.explain("p3") == run.explain("p3") == explainer.explain(["p3"])
    (number,) = explainer.ids.numbers(["p3"])
    assert explainer.ids[number] == "p3"
    (layer,) = explainer.selected_neighbours([number])
    assert set(layer.node.tolist()) == {number}


def test_new_tables_are_explained(run: TrainedRun, tmp_path: Path):
    new = write_tables(tmp_path / "new", "q", 20, labels=False)
    table = run.predictions(**new).to_pylist()
    (one,) = run.explain("q5", **new)
    assert one.node == "q5"
    assert one.predicted == next(row["predicted"] for row in table if row["node"] == "q5")


def test_unknown_ids_are_named_with_those_that_are_close(run: TrainedRun):
    with pytest.raises(UsageError, match=r"no node 'p41'; did you mean 'p4'"):
        run.explain(["p1", "p41"])
    with pytest.raises(UsageError, match=r"no node '\?'; ids look like 'p0'"):
        run.explain("?")
    with pytest.raises(UsageError, match="at least one node"):
        run.explain([])
    with pytest.raises(UsageError, match=r"target .*'music'"):
        run.explain("p1", target="music")


def test_data_that_moved_are_an_error(tmp_path: Path):
    tables = write_tables(tmp_path / "data", "p", 40)
    source = choose_source(**tables, label_column="kind")
    prepare_training({**SMALL, "max_epochs": 1}, source=source, out=tmp_path / "run").train()
    Path(tables["edges"]).unlink()
    with pytest.raises(DataError, match="if it has moved"):
        lgcn.load_run(tmp_path / "run").explain("p1")


def test_ids_may_be_numbers_strings_or_missing():
    numbers = NodeIds(3, lambda start, stop: np.array([10, 20, 30])[start:stop])
    assert numbers.numbers(["20", 30, np.int64(10)]) == [1, 2, 0]
    assert numbers[1] == 20
    mixed = NodeIds(3, lambda start, stop: np.array(["a", 2.5, 7], dtype=object)[start:stop])
    assert mixed.numbers([7, "2.5", "a"]) == [2, 1, 0]
    none = NodeIds(3)
    assert none.numbers(["2", 0]) == [2, 0]
    for wrong in ("3", "-1", "x"):
        with pytest.raises(UsageError, match=f"no node '{wrong}'.*from 0 to 2"):
            none.numbers([wrong])


def test_a_store_is_explained_as_the_graph_is(tmp_path: Path):
    graph = synthetic(**GRAPH)
    settings = Settings.create(**SMALL, dataset="synthetic", dataset_options=GRAPH)
    train(graph, settings, out=tmp_path / "run")
    ids = np.array([f"s{i}" for i in range(graph.num_nodes)])
    write_store(tmp_path / "store", graph, node_ids=ids)
    run = lgcn.load_run(tmp_path / "run")
    (stored,) = run.explain("s17", store=tmp_path / "store")
    (given,) = run.explain(17)
    assert stored.node == "s17"
    assert stored.score == pytest.approx(given.score, abs=1e-5)
    assert [one["node"] for one in stored.by_node[:5]] == [
        f"s{one['node']}" for one in given.by_node[:5]
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json", "svg", "html"])
def test_files_hold_the_explanation(run: TrainedRun, tmp_path: Path, ending: str):
    path = tmp_path / f"why.{ending}"
    found = run.explain("p3")
    write_explanations(found, path)
    if ending == "parquet":
        assert pq.read_table(path).equals(found[0].table())
    elif ending == "json":
        assert json.loads(path.read_text())["explanations"] == [
            json.loads(json.dumps(found[0].to_dict()))
        ]
    else:
        assert ("<svg" if ending in ("svg", "html") else '"p3"') in path.read_text()


def test_a_picture_shows_one_node(run: TrainedRun, tmp_path: Path):
    with pytest.raises(UsageError, match=r"2 nodes, got .*why\.svg"):
        write_explanations(run.explain(["p1", "p2"]), tmp_path / "why.svg")


def test_runs_of_whole_graphs_explain_graphs_by_id(tmp_path: Path):
    graphs = some_graphs().with_targets(node_ids=np.array([f"g{i}" for i in range(60)]))
    small = Settings.create(model="graph_lgcn", hidden_channels=4, num_layers=1, max_epochs=2)
    train(graphs, small, out=tmp_path / "run")
    run = lgcn.load_run(tmp_path / "run")
    table = run.predictions(graph=graphs).to_pylist()
    found = run.explain(["g7", "g0"], graph=graphs)
    for one, row in zip(found, (table[7], table[0]), strict=True):
        assert (one.node, one.unit) == (row["graph"], "graph")
        assert one.predicted == row["predicted"]
        assert one.confidence == pytest.approx(row["confidence"], abs=1e-5)
        added = sum(entry["contribution"] for entry in one.by_edge)
        assert added == pytest.approx(one.score - one.without_edges, abs=1e-4)
    explainer = run.explainer(graph=graphs.select([3, 9]))
    assert explainer.explain("g9")[0].by_node == run.explain("g9", graph=graphs)[0].by_node
    with pytest.raises(UsageError, match=r"no graph 'g60'; did you mean 'g6"):
        run.explain("g60", graph=graphs)
    with pytest.raises(UsageError, match="GraphLGCN predicts whole graphs"):
        explainer.selected_neighbours([0])
