"""`lgcn report` and `lgcn compare` on the command line."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lgcn.inference import load_run
from lgcn.report.repeat_command import repeat_command
from lgcn.training.settings import Settings
from tests.conftest import Output
from tests.report.runs import KINDS, train_graph_run, train_run

Lgcn = Callable[..., Output]
pytestmark = pytest.mark.filterwarnings("ignore:.* of the nodes have no edge:UserWarning")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_run(tmp_path_factory.mktemp("report"))


def test_a_report_goes_into_the_run_folder(run: Path, lgcn_: Lgcn) -> None:
    printed = lgcn_("report", run, "--sample", "50")
    assert printed.code == 0
    assert f"wrote {run / 'report.html'}" in printed.out
    assert "50 sampled nodes" in printed.out
    assert (run / "report.html").read_text().startswith("<!doctype html>")


def test_json_has_the_scores(run: Path, lgcn_: Lgcn, tmp_path: Path) -> None:
    found = lgcn_("report", run, "--output", tmp_path / "page.html", "--json").json
    metrics = load_run(run).metrics()
    assert metrics is not None
    assert found["scores"]["test"] == pytest.approx(metrics["splits"]["test"]["scores"])
    assert found["nodes"] == found["sampled"] == 150
    assert found["bytes"] == (tmp_path / "page.html").stat().st_size
    assert found["split"] == "test"


def test_a_comparison_of_two_runs(run: Path, lgcn_: Lgcn, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "copy")
    found = lgcn_("compare", run, other, "--output", tmp_path / "page.html", "--json").json
    assert found["same_split"] is True
    assert found["disagreements"] == 0
    assert [one["name"] for one in found["runs"]] == ["run", "copy"]
    printed = lgcn_("compare", run, other, "--output", tmp_path / "page.html")
    assert f"wrote {tmp_path / 'page.html'}" in printed.out


def test_mistakes_are_named(run: Path, lgcn_: Lgcn, tmp_path: Path) -> None:
    assert "--sample must be" in lgcn_("report", run, "--sample", "1").message
    assert "--output must end in .html" in lgcn_("report", run, "--output", "page.pdf").message
    assert "no such run folder" in lgcn_("report", tmp_path / "nothing").message
    assert "2 to 8 runs" in lgcn_("compare", run).message
    moved = shutil.copytree(run.parent, tmp_path / "moved")
    record = (moved / "run" / "run.json").read_text().replace(str(run.parent), "/gone")
    (moved / "run" / "run.json").write_text(record)
    message = lgcn_("report", moved / "run").message
    assert "--edges" in message
    assert "/gone" in message


def test_training_ends_by_naming_the_command(lgcn_: Lgcn, run: Path, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    tables = ("--edges", run.parent / "edges.csv", "--nodes", run.parent / "nodes.csv")
    more = ("--label-column", "colour", "--set", "max_epochs=1", "--set", "labels=many")
    printed = lgcn_("train", *tables, *more, "--no-baselines", "--out", folder)
    assert f"lgcn report '{folder}'" in printed.out


@pytest.mark.parametrize("kind", KINDS)
def test_the_command_in_a_report_repeats_the_run(kind: str, lgcn_: Lgcn, tmp_path: Path) -> None:
    first = train_run(tmp_path, kind, "lr=0.02", "baselines=false")
    command = repeat_command(load_run(first).settings, str(tmp_path / "again"))
    assert command is not None
    assert command.startswith("lgcn train --edges ")
    assert "--set lr=0.02" in command
    assert lgcn_(*shlex.split(command)[1:], "--quiet").code == 0
    again = load_run(tmp_path / "again")
    ours, theirs = (one.settings.to_dict() for one in (load_run(first), again))
    assert ours.pop("dataset_options").keys() == theirs.pop("dataset_options").keys()
    assert ours == theirs
    weights = [(folder / "model.safetensors").read_bytes() for folder in (first, again.folder)]
    assert weights[0] == weights[1]


@pytest.mark.filterwarnings("ignore::UserWarning")  # some graphs have no nodes
def test_the_command_repeats_a_run_on_whole_graphs(lgcn_: Lgcn, tmp_path: Path) -> None:
    first = train_graph_run(tmp_path, "graphs", "lr=0.02", "baselines=false")
    command = repeat_command(load_run(first).settings, str(tmp_path / "again"))
    assert command is not None
    assert command.startswith("lgcn train --graphs ")
    assert "--preset" not in command
    assert lgcn_(*shlex.split(command)[1:], "--quiet").code == 0
    ours, theirs = (load_run(run).settings.to_dict() for run in (first, tmp_path / "again"))
    assert ours.pop("dataset_options").keys() == theirs.pop("dataset_options").keys()
    assert ours == theirs
    weights = [(run / "model.safetensors").read_bytes() for run in (first, tmp_path / "again")]
    assert weights[0] == weights[1]


def test_a_set_of_graphs_is_named_by_its_flags() -> None:
    options: dict[str, Any] = {"preset": "graphs", "model": "graph_lgcn", "positions": "none"}
    named = Settings.create(
        dataset="graphs", dataset_options={"path": "RINGS", "fold": 3}, **options
    )
    assert repeat_command(named) == "lgcn train --graphs RINGS --fold 3 --seed 0 --out runs/again"
    target = Settings.create(
        dataset="graphs", dataset_options={"path": "RINGS", "target": 1}, **options
    )
    assert (
        repeat_command(target) == "lgcn train --graphs RINGS --target 1 --seed 0 --out runs/again"
    )


def test_a_run_on_a_graph_in_memory_has_no_command() -> None:
    assert repeat_command(Settings.create(dataset="tables")) is None
    assert repeat_command(Settings.create(dataset="graphs", model="graph_lgcn")) is None
    assert repeat_command(Settings.create(dataset="cora", k=3)) == (
        "lgcn train --dataset cora --seed 0 --set k=3 --out runs/again"
    )
