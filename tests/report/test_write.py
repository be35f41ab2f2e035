"""Reports of all kinds of runs: what they hold, and what they say where something is absent."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

from lgcn.errors import UsageError, WriteError
from lgcn.inference import load_run
from lgcn.report import compare_facts, facts, importance, write_comparison, write_report
from lgcn.report.importance import Importance
from lgcn.report.write import WrittenReport
from lgcn.store.generate import generate_store
from tests.report.conftest import EXPLAINED
from tests.report.runs import HOSTILE, SIZE, train_run
from tests.report.test_html import Reader

Written = Callable[..., WrittenReport]


def data_of(path: Path) -> dict[str, Any]:
    """The data inside a page."""
    text = path.read_text("utf-8")
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    read: dict[str, Any] = json.loads(found)
    return read


def text_of(path: Path) -> str:
    """What a person reads on a page, without its scripts."""
    page = re.sub(r"(?s)<(script|style).*?</\1>", "", path.read_text("utf-8"))
    return " ".join("".join(Reader(page).texts).split())


def test_the_scores_are_those_of_the_training(written: Written) -> None:
    found = written()
    stored = load_run(found.facts.run.folder).metrics()
    assert stored is not None
    for split in ("val", "test"):
        assert found.facts.reports[split]["scores"] == pytest.approx(
            stored["splits"][split]["scores"]
        )
    assert found.facts.summary == stored["summary"]
    text = text_of(found.path)
    assert stored["summary"] in text
    assert f"{100 * stored['splits']['test']['scores']['accuracy']:.1f} %" in text
    graph = found.facts.graph
    ends = {
        frozenset((node, int(other)))
        for node in range(SIZE)
        for other in graph.col[graph.rowptr[node] : graph.rowptr[node + 1]]
    }
    assert f"150 nodes and {len(ends)} edges." in text
    for baseline in ("majority", "features"):
        assert f"{100 * stored['baselines'][baseline]['test']['accuracy']:.1f} %" in text


def test_a_page_is_one_file_that_allows_no_other(written: Written) -> None:
    found = written()
    page = found.path.read_text("utf-8")
    assert found.size == len(page.encode()) < 1_500_000
    read = Reader(re.sub(r"(?s)<script>.*?</script>", "<script></script>", page))
    for name, attributes in read.tags:
        assert "src" not in attributes
        assert name not in ("iframe", "object", "embed", "base")
        assert not any(key.startswith("on") for key in attributes)
        if name in ("a", "link"):
            assert str(attributes["href"]).startswith(("#", "data:,"))
    [policy] = [a["content"] for _, a in read.tags if a.get("http-equiv")]
    assert "default-src 'none'" in str(policy)
    assert "unsafe-eval" not in str(policy)
    assert "script-src 'sha256-" in str(policy)


def test_hostile_names_are_only_text(written: Written) -> None:
    found = written()
    page = found.path.read_text("utf-8")
    assert page.count("</script>") == 3  # the data, the library and the page's own
    for text in ("<img src=x", "<b>blue</b>", "\u202e", "alert(1)</script>"):
        assert text not in page
    data = data_of(found.path)
    assert HOSTILE[0] in data["nodes"]["id"]
    assert "<b>blue</b>" in data["classes"]
    assert any("\\u202e" in name for name in data["classes"])


def test_the_data_of_the_nodes_are_their_predictions_and_neighbours(written: Written) -> None:
    found = written()
    data, run = data_of(found.path), found.facts.run
    table = run.predictions()
    assert data["sampled"] == data["total"] == SIZE
    names = [None if place < 0 else data["classes"][place] for place in data["nodes"]["true"]]
    expected = [
        None if text is None else text.replace("\u202e", "\\u202e")
        for text in table["true"].to_pylist()
    ]
    assert names == expected
    graph, near = run.graph(), data["near"]
    assert near["layers"] == [f"LGCL {n}" for n in range(1, len(near["layers"]) + 1)] != []
    selected = {}
    for layer in run.explainer().selected_neighbours(range(SIZE)):
        for node, other, count in zip(layer.node, layer.neighbour, layer.count, strict=True):
            share = int(count) / (layer.k * layer.features)
            selected[layer.layer - 1, int(node), int(other)] = share
    for node in range(SIZE):
        own, *others = near["node"][near["ptr"][node] : near["ptr"][node + 1]]
        assert own == node
        expected_near = set(graph.col[graph.rowptr[node] : graph.rowptr[node + 1]].tolist())
        assert set(others) == expected_near
        assert near["degree"][node] == len(expected_near)
        for place, other in enumerate(others, near["ptr"][node] + 1):
            for layer_number, shares in enumerate(near["shares"]):
                share = selected.get((layer_number, node, other), 0.0)
                assert shares[place] == pytest.approx(1000 * share, abs=0.51)


def test_columns_are_ranked_by_the_explanations(written: Written) -> None:
    found = written().facts.importance
    assert isinstance(found, Importance)
    assert {name for name, _ in found.columns} == {"height </title>", "noise"}
    assert found.columns[0][1] >= found.columns[1][1] > 0


def test_the_columns_of_a_node_are_those_of_its_explanation(trained: Callable[..., Path]) -> None:
    for kind in ("classes", "numbers"):
        explainer = load_run(trained(kind)).explainer()
        [expected] = explainer.explain([explainer.ids[7]])
        found, read = explainer.column_contributions(7)
        assert found == {one["column"]: one["contribution"] for one in expected.by_column}
        assert read == expected.nodes_read


def test_fewer_nodes_are_explained_if_their_neighbourhoods_are_large(
    trained: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importance, "READ_NODES", 10)
    found = write_report(trained(), tmp_path / "page.html", sample=20).facts.importance
    assert isinstance(found, Importance)
    assert found.nodes == importance.LEAST_EXPLAINED < EXPLAINED


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_other_tasks_have_their_own_sections(kind: str, written: Written) -> None:
    found = written(kind)
    text, charts = text_of(found.path), set(data_of(found.path)["charts"])
    common = {"curve-score", "curve-loss", "degrees", "agreements", "importance"}
    if kind == "labels":
        assert charts == common | {"reliability"}
        assert "which of 3 labels" in text
        assert "wrong labels" in text
    else:
        assert charts == common | {"scatter", "residuals"}
        assert "lie in their interval" in text
        assert "predicting the mean (R²)" in text
        assert "largest errors" in text


def changed(run: Path, folder: Path, *removed: str) -> Path:
    """A copy of a run without some of its files."""
    shutil.copytree(run, folder)
    for name in (*removed, "report.html"):
        (folder / name).unlink(missing_ok=True)
    return folder


def test_a_run_of_an_earlier_version_has_a_report_without_baselines(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    run = changed(trained(), tmp_path / "old", "metrics.json", "split.npz")
    result = json.loads((run / "result.json").read_text())
    del result["history"]
    (run / "result.json").write_text(json.dumps(result))
    text = text_of(write_report(run).path)
    assert "no metrics.json" in text
    assert "no history of epochs" in text
    assert f"{100 * result['test_score']:.1f} %" in text


def test_new_tables_are_scored_as_test_nodes(trained: Callable[..., Path], tmp_path: Path) -> None:
    run = trained()
    found = write_report(
        run,
        tmp_path / "new.html",
        edges=run.parent / "edges.csv",
        nodes=run.parent / "nodes.csv",
        label_column="colour",
    )
    assert list(found.facts.reports) == ["test"]
    assert found.facts.reports["test"]["nodes"] == found.facts.results.known.sum() > 100
    assert "another one" in text_of(found.path)


@pytest.mark.parametrize("case", ["no edges", "two nodes", "no labels", "one class"])
def test_unusual_graphs_have_a_report(
    case: str, trained: Callable[..., Path], tmp_path: Path
) -> None:
    run = trained()
    nodes = csv.read_csv(run.parent / "nodes.csv")
    edges: Any = run.parent / "edges.csv"
    data: dict[str, Any] = {"label_column": "colour"}
    if case in ("no edges", "two nodes"):
        edges = None
    if case == "two nodes":
        nodes = nodes.slice(20, 2)
    if case == "no labels":
        nodes, data = nodes.drop_columns(["colour"]), {}
    if case == "one class":
        kept = [text if text == "red" else None for text in nodes["colour"].to_pylist()]
        nodes = nodes.set_column(nodes.column_names.index("colour"), "colour", pa.array(kept))
    csv.write_csv(nodes, tmp_path / "nodes.csv")
    found = write_report(
        run, tmp_path / "page.html", edges=edges, nodes=tmp_path / "nodes.csv", **data
    )
    text = text_of(found.path)
    if case == "no labels":
        assert found.facts.main is None
        assert "no labelled nodes" in text
    else:
        assert found.facts.main == "test"
    if case == "two nodes":
        assert "too few" in text
    if case == "one class":
        assert "only nodes of class 'red'" in text or "no nodes of class" in text


def test_a_large_graph_is_shown_by_a_sample_that_the_page_names(tmp_path: Path) -> None:
    from lgcn.datasets.graph_source import choose_source
    from lgcn.training.prepare import prepare_training, read_settings

    generate_store(
        tmp_path / "store", num_nodes=3000, num_edges=20_000, num_features=4, num_classes=3
    )
    source = choose_source(None, store=tmp_path / "store")
    given = ["max_epochs=2", "max_steps=4", "hidden_channels=4", "baselines=false"]
    prepare_training(read_settings(None, given), source=source, out=tmp_path / "run").train()
    found = write_report(tmp_path / "run", sample=100, memory="200MB")
    data = data_of(found.path)
    assert (data["sampled"], data["total"]) == (100, 3000)
    assert "A sample of 100 of 3,000 nodes" in text_of(found.path)
    assert len(data["maps"][0]["x"]) == len(data["near"]["degree"]) == 100
    assert found.facts.reports["test"]["nodes"] == found.facts.results.scored.sum() > 100
    assert max(np.diff(data["near"]["ptr"])) <= 21
    assert max(data["near"]["degree"]) > 20  # some are cut
    assert len(data["nodes"]["id"]) == len({*data["nodes"]["id"]}) > 100


def test_a_graph_without_features_and_ids_has_a_report(tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    options = {"ignore_columns": ["tags", "weight", "noise", "height </title>"]}
    run = train_run(folder, "classes", "positions=none", **options)
    text = text_of(write_report(run).path)
    assert "Which columns matter?" in text
    assert "degree" in text


def test_an_ensemble_and_trees_have_a_report(tmp_path: Path) -> None:
    run = train_run(tmp_path / "ensemble", "classes", "max_trials=2", "time_limit=20s")
    text = text_of(write_report(run).path)
    assert "Members of the ensemble" in text
    file = run / "ensemble.json"
    stored = json.loads(file.read_text())
    used = [one["name"] for one in stored["entries"] if one["weight"] > 0]
    for name in used:
        assert f"The model is the member {name} alone" in text or f"{name} (" in text
    assert "not explained" not in text
    trees = train_run(tmp_path / "trees", "classes", "model=boosting")
    text = text_of(write_report(trees).path)
    assert "no embeddings" in text
    assert "cannot be explained" in text
    # An ensemble of one network and the trees, which count most.
    shutil.copytree(trees, run / "members" / "boosting")
    for one in stored["entries"]:
        one["weight"] = 0.09 if one["name"] == used[0] else 0.0
    boosting = {"name": "boosting", "family": "boosting", "model": "boosting", "weight": 0.91}
    stored["entries"].append({**stored["entries"][0], **boosting})
    file.write_text(json.dumps(stored))
    text = text_of(write_report(run).path)
    assert f"boosting (91 %) and {used[0]} (9 %)" in text
    assert "boosting, 91 % of the ensemble, is not explained" in text
    # A comparison shows the settings of what is used.
    text = text_of(write_comparison([trees, run], tmp_path / "page.html").path)
    assert f"an ensemble of boosting (91 %) and {used[0]} (9 %)" in text
    assert "model.k" not in text


def test_a_failed_write_leaves_the_old_report(trained: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.html"):
        write_report(trained(), tmp_path / "report.pdf")
    with pytest.raises(UsageError, match="sample"):
        write_report(trained(), tmp_path / "a.html", sample=1)
    (tmp_path / "b.html").mkdir()
    with pytest.raises(UsageError, match="folder"):
        write_report(trained(), tmp_path / "b.html")
    assert list(tmp_path.iterdir()) == [tmp_path / "b.html"]


def test_a_path_that_cannot_be_written_is_refused_before_work(
    trained: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def computes(*_: Any, **__: Any) -> None:
        raise AssertionError("it computed something")

    monkeypatch.setattr(facts, "collect", computes)
    monkeypatch.setattr(compare_facts, "compare", computes)
    (tmp_path / "file").write_text("mine")
    paths = [tmp_path / "file" / "a.html", tmp_path / "file" / "new" / "a.html"]
    if Path("/proc/self").exists():
        paths.append(Path("/proc/a.html"))
    for path in paths:
        with pytest.raises(WriteError, match=f"cannot write {path}: "):
            write_report(trained(), path)
        with pytest.raises(WriteError, match=f"cannot write {path}: "):
            write_comparison([trained(), trained()], path)
    with pytest.raises(AssertionError, match="computed"):
        write_report(trained(), tmp_path / "new" / "folder" / "a.html")
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_link_in_a_run_folder_is_not_followed(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    run = changed(trained(), tmp_path / "run")
    mine = tmp_path / "mine.txt"
    mine.write_text("important")
    (run / "report.html").symlink_to(mine)
    write_report(run, sample=20)
    assert mine.read_text() == "important"
    assert not (run / "report.html").is_symlink()


@pytest.mark.parametrize(
    "found",
    [
        {
            "history": ["x", {"epoch": "one"}, {"epoch": 1, "val_score": "high"}, {"epoch": 2}],
            "leaderboard": [7, {"name": ["<b>"], "val_score": "x", "seconds": {}}],
        },
        {"history": {"epoch": 1}, "leaderboard": "none"},
    ],
)
def test_a_run_folder_that_somebody_changed_is_no_failure(
    found: dict[str, Any], trained: Callable[..., Path], tmp_path: Path
) -> None:
    run = changed(trained(), tmp_path / "run")
    result = json.loads((run / "result.json").read_text()) | found
    (run / "result.json").write_text(json.dumps(result))
    page = write_report(run, sample=20).path.read_text("utf-8")
    assert "<b>" not in page
