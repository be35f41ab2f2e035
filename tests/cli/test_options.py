"""A graph store in place of a data set, for the commands that take one."""

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from lgcn.nn import whole_graph as inference
from lgcn.store.open_store import open_store
from lgcn.training import Run

from .small import SIZE

pytestmark = pytest.mark.filterwarnings("always::UserWarning")


def test_predictions_are_those_of_the_graph_in_memory(lgcn_, run_on_store: Path, store: Path):
    model, _, _ = Run(run_on_store).load_model()
    classes = inference.predict(model, open_store(store).graph).argmax(dim=1).tolist()
    for flags in (("--graph", "store"), (), ("--graph", "store", "--memory", "500MB")):
        assert lgcn_("predict", run_on_store, *flags, "--output", "p.parquet").code == 0
        table = pyarrow.parquet.read_table("p.parquet")
        assert table["node"].to_pylist() == list(range(400))
        assert [int(name) for name in table["predicted"].to_pylist()] == classes


def test_evaluate_gives_the_scores_of_the_training(lgcn_, run_on_store: Path, store: Path):
    found = lgcn_("evaluate", run_on_store, "--graph", "store", "--json").json["splits"]["test"]
    assert found["score"] == pytest.approx(Run(run_on_store).result()["test_score"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "--graph", "nowhere"), "nowhere"),
        (("train", "--graph", "store", "--dataset", "digits"), "not both"),
        (("train", "--graph", "store", "--memory", "much"), "memory"),
        (("train", "--graph", "store", "--max-steps", "0"), "--max-steps"),
        (("generate", "g", "--nodes", "0", "--edges", "1"), "--nodes"),
        (("generate", "g", *SIZE, "--feature-type", "float8"), "float8"),
        (("generate", "g", *SIZE, "--label-noise", "2"), "--label-noise must be"),
        (("generate", "g", *SIZE, "--noise", "-1"), "--noise must be"),
        (("generate", "g", *SIZE, "--homophily", "1.5"), "--homophily must be"),
        (("generate", "g", *SIZE, "--imbalance", "-1"), "--imbalance must be"),
        (("import", "g", "--edges", "missing.csv"), "missing.csv"),
        (("data", "info", "store"), "rowptr"),
    ],
)
def test_mistakes_on_stores_end_in_a_message(
    lgcn_, store: Path, arguments: tuple[str, ...], message: str
):
    if arguments[0] == "data":  # an altered store
        file = next(path for path in store.iterdir() if path.name.startswith("rowptr"))
        file.write_bytes(file.read_bytes()[:-8])
    assert message in lgcn_(*arguments).message
    assert not (store.parent / "g").exists()


def test_a_run_of_a_stranger_cannot_switch_the_checks_of_a_store_off(
    lgcn_, store: Path, run_on_store: Path
):
    (run_on_store / "result.json").unlink()  # so that there is something to resume
    col = np.fromfile(store / "col.bin", np.int32)
    col[:] = 2**31 - 1
    (store / "col.bin").write_bytes(col.tobytes())
    record = json.loads((run_on_store / "run.json").read_text())
    record["settings"]["dataset_options"]["verify"] = False
    (run_on_store / "run.json").write_text(json.dumps(record))
    output = lgcn_("train", "--resume", "--out", run_on_store)
    assert output.code == 1
    assert "run.json is damaged" in output.message
    assert "verify" in output.message
    del record["settings"]["dataset_options"]["verify"]
    (run_on_store / "run.json").write_text(json.dumps(record))
    output = lgcn_("train", "--resume", "--out", run_on_store)
    assert output.code == 1
    assert "col.bin is damaged" in output.message


@pytest.mark.parametrize("layer", [0, 1, -1])
def test_embeddings_of_a_layer(lgcn_, run_on_store: Path, store: Path, layer: int):
    record = lgcn_("embed", run_on_store, "--layer", layer, "--output", "e.npy", "--json").json
    model, _, _ = Run(run_on_store).load_model()
    expected = inference.embed(model, open_store(store).graph, layer).numpy()
    assert record == {"output": "e.npy", "nodes": 400, "width": expected.shape[1]}
    np.testing.assert_allclose(np.load("e.npy"), expected, atol=1e-6)
