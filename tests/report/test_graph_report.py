"""Reports of runs on whole graphs, beside tables of predictions and scikit-learn's numbers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyarrow import csv
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

import lgcn
from lgcn.errors import LGCNError, UsageError
from lgcn.inference import load_run
from lgcn.report import write_comparison, write_report
from lgcn.report.drawings import MOST_NODES
from lgcn.report.write import WrittenReport
from tests.report.runs import GRAPHS, HOSTILE, write_graph_tables
from tests.report.test_write import data_of, text_of

Written = Callable[..., WrittenReport]
Trained = Callable[..., Path]
LARGE = 7  # the number of the graph with 200 nodes
# One graph has no nodes, and one no edges, which reading them tells.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def tables_of(found: WrittenReport) -> dict[str, Any]:
    """The tables that the run was trained on, and its predictions, as columns."""
    folder = found.facts.run.folder.parent
    tables: dict[str, Any] = {
        name: csv.read_csv(folder / f"{name}.csv").to_pydict()
        for name in ("graphs", "edges", "nodes")
    }
    predicted = found.facts.run.predictions().to_pydict()
    return tables | {"predicted": {key: np.array(part) for key, part in predicted.items()}}


def test_the_scores_are_those_of_the_training_and_of_scikit_learn(written: Written) -> None:
    found = written("graphs")
    run = found.facts.run
    stored = run.metrics()
    assert stored is not None
    for split in ("val", "test"):
        expected = pytest.approx(stored["splits"][split]["scores"])
        assert found.facts.reports[split]["scores"] == expected
    assert found.facts.summary == stored["summary"]
    table = tables_of(found)["predicted"]
    inside = table["split"] == "test"
    true, guess = table["true"][inside], table["predicted"][inside]
    names = list(run.class_names)
    report = found.facts.reports["test"]
    assert report["confusion_matrix"] == confusion_matrix(true, guess, labels=names).tolist()
    options: dict[str, Any] = {"labels": names, "zero_division": 0}
    _, recall, _, support = precision_recall_fscore_support(true, guess, **options)
    assert [row["support"] for row in report["per_class"]] == support.tolist()
    assert [row["recall"] for row in report["per_class"]] == pytest.approx(recall)
    sure = table["confidence"][inside]
    error = found.facts.results.calibration.error  # type: ignore[union-attr]
    place = np.ceil(sure * 15)
    gaps = [
        abs((true == guess)[place == bin_].mean() - sure[place == bin_].mean())
        * (place == bin_).mean()
        for bin_ in np.unique(place)
    ]
    assert error == pytest.approx(sum(gaps), abs=1e-6)


def test_the_page_speaks_of_graphs(written: Written) -> None:
    for kind in ("graphs", "graph_numbers"):
        found = written(kind)
        text = text_of(found.path)
        rows = tables_of(found)
        sizes = [rows["nodes"]["graph"].count(one) for one in rows["graphs"]["graph"]]
        for part in (
            f"The set has 60 graphs of {np.mean(sizes):.1f} nodes on average, 200 at most",
            f"and {len(rows['edges']['source'])} edges in all.",
            "for each graph of",
            "sizes and mean features",
            "Which graphs are easy?",
            "Map of the graphs",
            "Search a graph by its id",
            "Graphs to look at",
            "All 60 graphs are on this page.",
            "near graphs have similar embeddings",
            "lgcn train --graphs",
        ):
            assert part in text
        for part in (
            " nodes and their",
            "labelled nodes",
            "test nodes",
            "neighbourhood",
            "columns",
        ):
            assert part not in text.replace("rows are true classes, columns predicted ones", "")
        script = found.path.read_text("utf-8").rpartition("<script>")[2]
        assert "{{" not in script
        assert '"graph"' in script


def test_the_data_are_the_graphs_of_the_tables(written: Written) -> None:
    found = written("graphs")
    data, rows = data_of(found.path), tables_of(found)
    pictures, graphs = data["pictures"], rows["graphs"]["graph"]
    shown = [text.replace("\u202e", "\\u202e").replace("\u2066", "\\u2066") for text in graphs]
    assert data["nodes"]["id"] == shown
    assert data["sampled"] == data["total"] == GRAPHS
    assert pictures["size"] == [rows["nodes"]["graph"].count(one) for one in graphs]
    assert pictures["edges"] == [rows["edges"]["graph"].count(one) for one in graphs]
    assert pictures["column"] == "letter"
    assert sorted(pictures["names"]) == ["<i>N</i>", "C", "O"]
    letters = dict(
        zip(zip(rows["nodes"]["graph"], rows["nodes"]["id"], strict=True),
            rows["nodes"]["letter"], strict=True)
    )  # fmt: skip
    edges = {
        (one, *sorted(pair))
        for one, *pair in zip(
            *(rows["edges"][k] for k in ("graph", "source", "target")), strict=True
        )
    }
    drawn = set()
    for place, one in enumerate(graphs):
        start, stop = pictures["ptr"][place : place + 2]
        ids = [int(number) for number in pictures["node"][start:stop]]
        for number, label in zip(ids, pictures["label"][start:stop], strict=True):
            assert pictures["names"][label] == letters[one, number]
        first, last = pictures["edgePtr"][place : place + 2]
        for a, b in np.array(pictures["ends"][2 * first : 2 * last]).reshape(-1, 2).tolist():
            drawn.add((one, *sorted((ids[a], ids[b]))))
        assert stop - start == min(MOST_NODES, pictures["size"][place])
    assert drawn < edges
    assert {one for one, *_ in edges - drawn} == {graphs[LARGE]}


def test_wrong_and_uncertain_graphs_are_listed_with_their_sizes(written: Written) -> None:
    found = written("graphs")
    table = tables_of(found)["predicted"]
    known = table["true"] != None  # noqa: E711
    wrong = np.flatnonzero(
        known & (table["split"] == "test") & (table["true"] != table["predicted"])
    )
    order = wrong[np.argsort(-table["confidence"][wrong], kind="stable")]
    assert found.facts.listed.wrong.tolist() == order[:25].tolist()
    text = text_of(found.path)
    assert "graphnodestruepredictedconfidencesplit" in text
    [size] = [part for number, part in enumerate(found.facts.drawings.sizes) if number == order[0]]  # type: ignore[union-attr]
    shown = [
        str(table[key][order[0]]).replace("\u202e", "\\u202e") for key in ("true", "predicted")
    ]
    assert f"{table['graph'][order[0]]}{size}{''.join(shown)}" in text


def test_hostile_names_of_graphs_are_only_text(written: Written) -> None:
    page = written("graphs").path.read_text("utf-8")
    assert page.count("</script>") == 3
    for text in ("<img src=x", "<b>blue</b>", "<i>N</i>", "\u202e", "alert(1)</script>"):
        assert text not in page
    assert HOSTILE[0] in data_of(written("graphs").path)["nodes"]["id"]


def test_a_set_of_many_graphs_is_shown_by_a_sample(trained: Trained, tmp_path: Path) -> None:
    found = write_report(trained("graphs"), tmp_path / "page.html", sample=30)
    data = data_of(found.path)
    assert (data["sampled"], data["total"]) == (30, GRAPHS)
    assert "A sample of 30 of 60 graphs is on this page" in text_of(found.path)
    assert set(found.facts.sample.nodes) >= set(found.facts.listed.wrong)
    assert len(data["maps"][0]["x"]) == len(data["pictures"]["size"]) == 30
    assert found.facts.reports["test"]["nodes"] == found.facts.results.scored.sum()


def test_other_graphs_are_all_test_graphs(trained: Trained, tmp_path: Path) -> None:
    write_graph_tables(tmp_path, 20, seed=5)
    tables = {name: tmp_path / f"{name}.csv" for name in ("graphs", "edges", "nodes")}
    found = write_report(trained("graphs"), tmp_path / "page.html", **tables)
    assert list(found.facts.reports) == ["test"]
    assert found.facts.sample.total == 20
    assert "this is another one" in text_of(found.path)


def test_a_saved_estimator_has_a_report_of_given_graphs(tmp_path: Path) -> None:
    import networkx as nx

    graphs = [made(size) for size in range(5, 20) for made in (nx.cycle_graph, nx.star_graph)]
    y = ["ring", "star"] * 15
    model = lgcn.GraphClassifier(max_epochs=3, hidden_channels=8, num_layers=1, random_state=0)
    model.fit(graphs, y).save(tmp_path / "model")
    assert model.graphs_ is not None
    found = write_report(tmp_path / "model", tmp_path / "page.html", graph=model.graphs_)
    text = text_of(found.path)
    assert "trained in Python, on graphs that it does not name" in text
    assert found.facts.drawings is not None
    assert found.facts.drawings.labels is None
    with pytest.raises(UsageError, match="does not name its graphs; give graphs="):
        write_report(tmp_path / "model", tmp_path / "other.html")


def test_data_that_changed_or_are_gone_are_refused(trained: Trained, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(trained("graphs").parent, moved)
    record = json.loads((moved / "run" / "run.json").read_text())
    options = record["settings"]["dataset_options"]
    options |= {name: str(moved / f"{name}.csv") for name in ("graphs", "edges", "nodes")}
    (moved / "run" / "run.json").write_text(json.dumps(record))
    assert write_report(moved / "run", sample=20).facts.is_own
    write_graph_tables(moved, GRAPHS + 2)
    with pytest.raises(UsageError, match="60 graphs in training, and has 62 now"):
        write_report(moved / "run")
    (moved / "graphs.csv").unlink()
    with pytest.raises(LGCNError, match=r"graphs\.csv") as caught:
        write_report(moved / "run")
    assert "\n" not in str(caught.value)


def test_runs_on_graphs_are_compared_as_graphs(trained: Trained, tmp_path: Path) -> None:
    folders = [trained("graphs"), trained("graphs", "k=2", "seed=1")]
    found = write_comparison(folders, tmp_path / "page.html")
    assert found.facts.same_graph
    assert found.facts.same_split
    tables = [load_run(folder).predictions() for folder in folders]
    a, b = (np.array(table["predicted"].to_pylist()) for table in tables)
    assert found.facts.num_differing == (a != b).sum()
    text = text_of(found.path)
    assert "All runs were scored on the same test graphs of the same set." in text
    assert "Scores on test graphs" in text
    assert "nodes" not in text.partition("Settings that differ")[0]
    with pytest.raises(UsageError, match="graphs, nodes"):
        write_comparison([folders[0], trained()], tmp_path / "page.html")


def test_sets_with_other_edges_are_not_the_same(trained: Trained, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(trained("graphs").parent, other)
    lines = (other / "edges.csv").read_text().splitlines()
    (other / "edges.csv").write_text("\n".join(lines[:-1]) + "\n")
    record = (other / "run" / "run.json").read_text()
    record = record.replace(str(trained("graphs").parent), str(other))
    (other / "run" / "run.json").write_text(record)
    found = write_comparison([trained("graphs"), other / "run"], tmp_path / "page.html")
    assert not found.facts.same_graph
    assert "The runs do not share a set" in text_of(found.path)
