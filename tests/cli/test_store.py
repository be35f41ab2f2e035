"""The command line on graph stores: generate, import, train, predict, evaluate, embed, info."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from lgcn.nn import whole_graph as inference
from lgcn.store.open_store import open_store
from lgcn.tables.from_tables import import_tables
from lgcn.training import Run

SIZE = ("--nodes", "400", "--edges", "1500", "--features", "6", "--classes", "3")
SHORT = ("--max-steps", "20", "--set", "k=4", "--set", "hidden_channels=8")

pytestmark = pytest.mark.filterwarnings("always::UserWarning")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def store(lgcn_: Callable[..., Any], place: Path) -> Path:
    assert lgcn_("generate", "store", *SIZE).code == 0
    return place / "store"


@pytest.fixture
def run(lgcn_: Callable[..., Any], store: Path, place: Path) -> Path:
    output = lgcn_("train", "--graph", "store", *SHORT, "--out", "run")
    assert output.code == 0, output.err
    return place / "run"


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def write_tables(folder: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [f"n{a},n{b}" for a, b in rng.integers(0, 40, (150, 2))]
    (folder / "a.csv").write_text("\n".join(["source,target", *lines[:70]]))
    (folder / "b.csv").write_text("\n".join(["source,target", *lines[70:]]))
    (folder / "all.csv").write_text("\n".join(["source,target", *lines]))
    rows = [f"n{i},{rng.normal():.3f},{'xyz'[i % 3] if i % 4 else ''}" for i in range(40)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,kind", *rows]))


def test_generate_is_fixed_by_its_seed(lgcn_: Callable[..., Any], store: Path) -> None:
    record = lgcn_("generate", "again", *SIZE, "--json").json
    assert record["nodes"] == 400
    assert 1400 < record["edges"] <= 1500
    assert bytes_of(store) == bytes_of(store.parent / "again")
    lgcn_("generate", "other", *SIZE, "--seed", "1")
    assert bytes_of(store) != bytes_of(store.parent / "other")


def test_a_store_is_replaced_only_on_request(lgcn_: Callable[..., Any], store: Path) -> None:
    before = bytes_of(store)
    assert "--overwrite" in lgcn_("generate", "store", *SIZE, "--seed", "1").message
    assert bytes_of(store) == before
    assert lgcn_("generate", "store", *SIZE, "--seed", "1", "--overwrite").code == 0
    assert bytes_of(store) != before


def test_info_of_a_store(lgcn_: Callable[..., Any], store: Path) -> None:
    record = lgcn_("data", "info", "store", "--json").json
    graph = open_store(store).graph
    assert record["nodes"] == 400
    assert record["undirected_edges"] == graph.num_edges // 2
    assert record["train_nodes"] == int(graph.train_mask.sum())


def test_import_equals_the_tables_in_memory(lgcn_: Callable[..., Any], place: Path) -> None:
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    counts = lgcn_("import", "s", "--edges", "a.csv", "b.csv", *options, "--json").json
    expected = import_tables("all.csv", "nodes.csv", label_column="kind").graph
    found = open_store("s")
    assert counts["nodes"] == 40
    assert found.graph.num_edges == counts["entries"] == expected.num_edges
    np.testing.assert_array_equal(found.graph.rowptr, expected.rowptr)
    np.testing.assert_array_equal(found.graph.col, expected.col)
    np.testing.assert_array_equal(found.graph.x, expected.x)
    np.testing.assert_array_equal(found.graph.y, expected.y)
    assert found.node_ids(0, 40).to_pylist() == expected.node_ids.tolist()


def test_import_of_directed_edges(lgcn_: Callable[..., Any], place: Path) -> None:
    write_tables(place)
    both, one = (
        lgcn_("import", name, "--edges", "all.csv", *flags, "--json").json["entries"]
        for name, flags in (("both", ()), ("one", ("--directed",)))
    )
    assert one < both
    assert open_store("one").header["directed"]
    assert not open_store("both").header["directed"]


def test_predictions_are_those_of_the_graph_in_memory(
    lgcn_: Callable[..., Any], run: Path, store: Path
) -> None:
    model, _, _ = Run(run).load_model()
    classes = inference.predict(model, open_store(store).graph).argmax(dim=1).tolist()
    for flags in (("--graph", "store"), (), ("--graph", "store", "--memory", "500MB")):
        assert lgcn_("predict", run, *flags, "--output", "p.parquet").code == 0
        table = pyarrow.parquet.read_table("p.parquet")
        assert table["node"].to_pylist() == list(range(400))
        assert [int(name) for name in table["predicted"].to_pylist()] == classes


def test_predictions_have_the_ids_of_the_store(lgcn_: Callable[..., Any], place: Path) -> None:
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    lgcn_("import", "s", "--edges", "all.csv", *options)
    assert lgcn_("train", "--graph", "s", "--out", "r", *SHORT).code == 0
    lgcn_("predict", "r", "--output", "p.parquet", "--unlabelled-only")
    table = pyarrow.parquet.read_table("p.parquet")
    assert table["node"].to_pylist() == [f"n{i}" for i in range(0, 40, 4)]
    assert set(table["predicted"].to_pylist()) <= set("xyz")


def test_evaluate_gives_the_scores_of_the_training(
    lgcn_: Callable[..., Any], run: Path, store: Path
) -> None:
    found = lgcn_("evaluate", run, "--graph", "store", "--json").json["splits"]["test"]
    assert found["score"] == pytest.approx(Run(run).result()["test_score"])


@pytest.mark.parametrize("layer", [0, 1, -1])
def test_embeddings_of_a_layer(
    lgcn_: Callable[..., Any], run: Path, store: Path, layer: int
) -> None:
    record = lgcn_("embed", run, "--layer", layer, "--output", "e.npy", "--json").json
    model, _, _ = Run(run).load_model()
    expected = inference.embed(model, open_store(store).graph, layer).numpy()
    assert record == {"output": "e.npy", "nodes": 400, "width": expected.shape[1]}
    np.testing.assert_allclose(np.load("e.npy"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--graph", "nowhere"), "nowhere"),
        (("train", "--graph", "store", "--dataset", "digits"), "not both"),
        (("train", "--graph", "store", "--memory", "much"), "memory"),
        (("train", "--graph", "store", "--max-steps", "0"), "max_steps"),
        (("generate", "g", "--nodes", "0", "--edges", "1"), "--nodes"),
        (("generate", "g", *SIZE, "--feature-type", "float8"), "float8"),
        (("import", "g", "--edges", "missing.csv"), "missing.csv"),
        (("data", "info", "store"), "rowptr"),
    ],
)
def test_mistakes_end_in_a_message(
    lgcn_: Callable[..., Any], store: Path, arguments: tuple[str, ...], message: str
) -> None:
    if arguments[0] == "data":  # an altered store
        file = next(path for path in store.iterdir() if path.name.startswith("rowptr"))
        file.write_bytes(file.read_bytes()[:-8])
    assert message in lgcn_(*arguments).message
    assert not (store.parent / "g").exists()


def test_a_run_on_a_store_predicts_new_tables(lgcn_: Callable[..., Any], place: Path) -> None:
    write_tables(place)
    options = ("--nodes", "nodes.csv", "--label-column", "kind")
    lgcn_("import", "s", "--edges", "all.csv", *options)
    assert lgcn_("train", "--graph", "s", "--out", "r", *SHORT).code == 0
    new = ("--edges", "a.csv", "--nodes", "nodes.csv", "--output", "p.parquet")
    assert lgcn_("predict", "r", *new, "--json").json["nodes"] == 40
    assert "no labelled nodes" in lgcn_("evaluate", "r", *new[:4]).message


def test_a_run_of_a_stranger_cannot_switch_the_checks_of_a_store_off(
    lgcn_: Callable[..., Any], store: Path, run: Path
) -> None:
    (run / "result.json").unlink()  # so that there is something to go on with
    col = np.fromfile(store / "col.bin", np.int32)
    col[:] = 2**31 - 1
    (store / "col.bin").write_bytes(col.tobytes())
    record = json.loads((run / "run.json").read_text())
    record["settings"]["dataset_options"]["verify"] = False
    (run / "run.json").write_text(json.dumps(record))
    output = lgcn_("train", "--resume", "--out", run)
    assert output.code == 1
    assert "run.json is damaged" in output.message
    assert "verify" in output.message
    del record["settings"]["dataset_options"]["verify"]
    (run / "run.json").write_text(json.dumps(record))
    output = lgcn_("train", "--resume", "--out", run)
    assert output.code == 1
    assert "col.bin is damaged" in output.message


def test_a_store_by_its_path_has_its_ids(lgcn_: Callable[..., Any], place: Path) -> None:
    write_tables(place)
    import_ = ("import", "store", "--edges", "all.csv", "--nodes", "nodes.csv")
    assert lgcn_(*import_, "--label-column", "kind").code == 0
    assert lgcn_("train", "--dataset", "./store", *SHORT, "--out", "run").code == 0
    assert lgcn_("predict", "run", "--output", "own.csv").code == 0
    assert lgcn_("predict", "run", "--dataset", "./store", "--output", "named.csv").code == 0
    assert Path("own.csv").read_text().splitlines()[1].startswith('"n0",')
    assert Path("own.csv").read_bytes() == Path("named.csv").read_bytes()


def test_predictions_and_json_are_not_mixed(lgcn_: Callable[..., Any], run: Path) -> None:
    output = lgcn_("predict", run, "--output", "/dev/stdout", "--json")
    assert output.code == 2
    assert "--json" in output.message
