"""Comparisons of runs, against their tables of predictions."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lgcn.errors import UsageError
from lgcn.inference import load_run
from lgcn.report import write_comparison
from lgcn.report.compare_facts import compare
from tests.report.runs import train_run
from tests.report.test_write import text_of


def second(trained: Callable[..., Path]) -> Path:
    return trained("classes", "k=2", "seed=1")


def test_differences_are_counted_on_the_same_nodes(trained: Callable[..., Path]) -> None:
    folders = [trained(), second(trained)]
    found = compare([load_run(folder) for folder in folders])
    assert found.same_graph
    assert found.same_split
    ours, theirs = (load_run(folder).predictions() for folder in folders)
    true, split = np.array(ours["true"].to_pylist()), np.array(ours["split"].to_pylist())
    a, b = (np.array(part["predicted"].to_pylist()) for part in (ours, theirs))
    inside = (split == "test") & (true != None)  # noqa: E711
    difference = found.differences[1]
    assert difference is not None
    assert difference.only_first == (inside & (a == true) & (b != true)).sum()
    assert difference.only_other == (inside & (b == true) & (a != true)).sum()
    paired = ((a == true).astype(float) - (b == true))[inside]
    assert difference.error == pytest.approx(paired.std() / np.sqrt(inside.sum()))
    assert found.num_differing == (a != b).sum() > 0
    assert found.pairs[0, 1] == pytest.approx((a == b).mean())
    assert all(a[node] != b[node] for node in found.differing)
    assert inside[found.differing[0]]


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_other_tasks_can_be_compared(
    kind: str, trained: Callable[..., Path], tmp_path: Path
) -> None:
    folders = [trained(kind), trained(kind, "seed=1")]
    written = write_comparison(folders, tmp_path / "page.html")
    assert written.facts.num_differing > 0
    assert "nodes get different predictions" in text_of(written.path)
    if kind == "labels":
        a, b = (load_run(folder).predictions()["predicted"].to_pylist() for folder in folders)
        assert written.facts.num_differing == sum(x != y for x, y in zip(a, b, strict=True))


def test_a_run_whose_graph_is_gone_has_the_scores_of_its_training(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    shutil.copytree(trained(), folder)
    record = json.loads((folder / "run.json").read_text())
    record["settings"]["dataset_options"]["edges"] = str(tmp_path / "nowhere.csv")
    (folder / "run.json").write_text(json.dumps(record))
    found = write_comparison([trained(), folder], tmp_path / "page.html")
    gone = found.facts.runs[1]
    stored = load_run(folder).metrics()
    assert stored is not None
    assert gone.reports["test"]["scores"] == stored["splits"]["test"]["scores"]
    assert not found.facts.same_graph
    text = text_of(found.path)
    assert "nowhere.csv" in text
    assert "The data of gone could not be read, so it is not known" in text
    assert "share a graph" not in text
    assert "edges=" not in text  # a comparison takes no other data


def test_another_split_of_the_same_graph_is_said(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    other = train_run(tmp_path / "other", split_seed=5)
    found = write_comparison([trained(), other], tmp_path / "page.html")
    assert found.facts.same_graph
    assert not found.facts.same_split
    assert found.facts.differences == (None, None)
    assert "test nodes differ" in text_of(found.path)


def test_runs_that_cannot_be_compared_are_refused(
    trained: Callable[..., Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="2 to 8 runs, got 1"):
        write_comparison([trained()], tmp_path / "page.html")
    with pytest.raises(UsageError, match="classification, regression"):
        write_comparison([trained(), trained("numbers")], tmp_path / "page.html")
    with pytest.raises(UsageError, match="html"):
        write_comparison([trained(), trained()], tmp_path / "page.txt")
