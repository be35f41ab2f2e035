"""From plans to files: all of them, what is left out and named, and what a second call does."""

from pathlib import Path
from typing import Any

import pytest

from lgcn import datasets as data
from lgcn.errors import DataError, LGCNError
from lgcn.paper import reproduce as module
from lgcn.paper import systems
from lgcn.paper.plan import Plan
from lgcn.paper.plans import make_plans
from lgcn.paper.reproduce import Reproduction, reproduce
from lgcn.paper.timing import Timing, times_path

from .fakes import fake_times, fill, run_fake, run_without_citeseer


@pytest.fixture(autouse=True)
def data_sets(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Those that are on this machine."""
    here = {"cora", "citeseer", "pubmed", "ppi-rederived"}

    def files(name: str, root: Any = None) -> list[Path]:
        if name not in here:
            raise DataError(f"the files of {name} are not on this machine. Looked for x, y")
        return []

    monkeypatch.setattr(data, "dataset_files", files)
    return here


def planetoid(**options: Any) -> list[Plan]:
    """Runs whose records need no torch."""
    return make_plans("table2", models=["planetoid"], **options)


def made(plans: list[Plan], folder: Path, **options: Any) -> Reproduction:
    return reproduce(plans, folder, run=options.pop("run", run_fake), **options)


def test_everything_is_written_and_nothing_run_twice(tmp_path: Path) -> None:
    first = made(planetoid(seeds=2), tmp_path, options="--seeds 2", processes=2)
    assert (first.run, first.reused, first.failed) == (6, 0, [])
    names = ["README.md", *(f"table2.{kind}" for kind in ("csv", "svg"))]
    assert sorted(path.name for path in first.files) == names
    contents = {path: path.read_bytes() for path in first.files}
    assert b"lgcn reproduce table2 --seeds 2" in contents[tmp_path / "README.md"]
    second = made(planetoid(seeds=2), tmp_path, options="--seeds 2")
    assert (second.run, second.reused) == (0, 6)
    assert {path: path.read_bytes() for path in second.files} == contents
    third = made(planetoid(seeds=3), tmp_path)
    assert (third.run, third.reused) == (3, 6)


def test_quick_and_full_records_lie_side_by_side(tmp_path: Path) -> None:
    made(planetoid(quick=True), tmp_path)
    assert made(planetoid(seeds=1), tmp_path).reused == 0


def test_a_missing_data_set_is_left_out_and_named(data_sets: set[str], tmp_path: Path) -> None:
    data_sets.remove("pubmed")
    report = made(planetoid(seeds=1), tmp_path)
    assert report.run == 2
    assert report.tables[0].datasets == ("cora", "citeseer")
    said = "pubmed is left out: the files of pubmed are not on this machine"
    assert report.left_out == [said]
    assert said in (tmp_path / "README.md").read_text()
    data_sets.add("pubmed")  # and then it is there
    again = made(planetoid(seeds=1), tmp_path)
    assert (again.run, again.reused, again.left_out) == (1, 2, [])


def test_nothing_to_make(data_sets: set[str], tmp_path: Path) -> None:
    data_sets.clear()
    with pytest.raises(LGCNError, match=r"nothing to reproduce.*cora .*pubmed"):
        made(planetoid(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    plans = make_plans("table2", models=["planetoid", "deepwalk"], datasets=["cora"], seeds=1)
    report = made(plans, tmp_path)
    assert report.tables[0].labels == ["Planetoid"]
    [said] = report.left_out
    assert "DeepWalk" in said
    assert "gensim" in said
    assert 'pip install "lgcn[reproduce]"' in said


def test_no_charts_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None)
    report = made(planetoid(datasets=["cora"], seeds=1), tmp_path)
    assert sorted(path.suffix for path in report.files) == [".csv", ".md"]
    assert ".svg" not in (tmp_path / "README.md").read_text()
    [said] = report.left_out
    assert "matplotlib" in said
    assert 'pip install "lgcn[reproduce]"' in said


def test_failures_are_reported_and_the_rest_is_made(tmp_path: Path) -> None:
    report = made(planetoid(seeds=1), tmp_path, run=run_without_citeseer)
    assert report.run == 2
    [(name, why, command)] = report.failed
    assert name.startswith("citeseer/planetoid-")
    assert why == "the loss became nan in epoch 3"
    assert "train_planetoid" in command
    entry = report.tables[0].entry("Planetoid", "citeseer")
    assert entry is not None
    assert entry["honest"] is None
    assert (tmp_path / "table2.csv").exists()


def test_what_is_left_out_of_one_table_is_not_said_of_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans = make_plans("all", datasets=["cora", "ppi", "ppi-rederived"], models=["gat"], seeds=1)
    fill(plans, tmp_path)
    report = made(plans, tmp_path)
    notes = {table.target: " ".join(table.notes) for table in report.tables}
    assert "ppi is left out" not in notes["table2"]
    assert "ppi is left out" in notes["table3"]


def test_times_are_measured_once_and_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plans = make_plans("table5", datasets=["cora"], seeds=1)
    fill(plans, tmp_path)
    told: list[list[str]] = []
    report = made(plans, tmp_path, on_timing=told.append)
    assert (report.run, told) == (0, [])  # all is there
    times_path(tmp_path).unlink()
    calls = []

    def run_here(tasks: list[Timing], function: Any, on_result: Any, **options: Any) -> None:
        for task in tasks:
            calls.append((task.dataset, task.epochs, options))
            on_result(task, fake_times(task, 4.0, machine={"gpu": "a fake"}))

    monkeypatch.setattr(module, "run_tasks", run_here)
    report = made(plans, tmp_path, on_timing=told.append)
    assert told == [["cora"]]
    assert calls == [("cora", 100, {"threads": None})]
    entry = report.tables[0].entry("GCN", "cora")
    assert entry is not None
    assert entry["train_seconds_cpu"] == 4.0
    assert "Our times: GPU a fake." in report.tables[0].notes
