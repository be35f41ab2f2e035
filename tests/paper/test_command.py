"""`lgcn reproduce`: what it prints, its exit codes, its messages, and real runs where data are."""

import csv
import io
import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console

from lgcn import datasets as data
from lgcn.__main__ import command_line
from lgcn.errors import DataError
from lgcn.paper import command as cli_reproduce
from lgcn.paper import reproduce as module
from lgcn.paper.plans import TARGETS
from lgcn.paper.pool import Failure
from lgcn.paper.records import read_records
from lgcn.paper.systems import SYSTEMS
from lgcn.training.models import find_model, model_names

from .fakes import fake_job, fake_record, run_fake, run_without_citeseer

PLANETOID = ("reproduce", "table2", "--models", "planetoid", "--seeds", "1")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Puts a run that trains nothing in place of the real one."""
    original = module.reproduce

    def install(run: Any) -> None:
        monkeypatch.setattr(module, "reproduce", partial(original, run=run))

    def files(name: str, root: Any = None) -> list[Path]:
        if name == "pubmed":
            raise DataError("the files of pubmed are not on this machine. Looked for ind.pubmed.x")
        return []

    monkeypatch.setattr(data, "dataset_files", files)
    install(run_fake)
    return install


@pytest.mark.usefixtures("fake")
def test_tables_notes_and_files(lgcn_: Callable[..., Any], place: Path) -> None:
    output = lgcn_(*PLANETOID)
    assert output.code == 0
    assert "Table 2" in output.out
    assert "Planetoid" in output.out
    assert "75.7" in output.out  # the paper's
    assert "50.0 (1)" in output.out
    assert "2 runs, 0 reused" in output.out
    assert output.notes("pubmed is left out")
    lines = [line for line in output.err.splitlines() if "planetoid seed 0: 50.0 %" in line]
    assert [line.split()[0] for line in lines] == ["1/2", "2/2"]
    page = (place / "reproduce" / "README.md").read_text()
    assert "`lgcn reproduce table2 --models planetoid --seeds 1`" in page
    again = lgcn_(*PLANETOID)
    assert "0 runs, 2 reused" in again.out


@pytest.mark.usefixtures("fake")
def test_json_is_one_object(lgcn_: Callable[..., Any], place: Path) -> None:
    found = lgcn_(*PLANETOID, "--out", "here", "--json").json
    assert found["runs"] == {"run": 2, "reused": 0}
    assert [row["dataset"] for row in found["tables"]["table2"]["rows"]] == ["cora", "citeseer"]
    assert found["tables"]["table2"]["rows"][0]["honest"] == 50.0
    assert found["failed"] == []
    assert len(found["left_out"]) == 1
    assert all((place / path).is_file() for path in found["files"])


@pytest.mark.usefixtures("fake")
def test_quick_has_a_folder_of_its_own(lgcn_: Callable[..., Any], place: Path) -> None:
    assert lgcn_("reproduce", "table2", "--models", "planetoid", "--quick").code == 0
    assert (place / "reproduce" / "quick" / "table2.csv").is_file()
    assert not (place / "reproduce" / "table2.csv").exists()


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    "datasets", [["cora,citeseer"], ["cora citeseer"], ["cora", "--datasets", "citeseer"]]
)
def test_lists_with_commas_spaces_or_repeated(
    datasets: list[str], lgcn_: Callable[..., Any]
) -> None:
    found = lgcn_(*PLANETOID, "--datasets", *datasets, "--json").json
    rows = found["tables"]["table2"]["rows"]
    assert [row["dataset"] for row in rows] == ["cora", "citeseer"]
    assert found["left_out"] == []


def test_failed_runs_end_in_an_error_after_the_table(
    fake: Callable[[Any], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake(run_without_citeseer)
    monkeypatch.setattr(sys, "argv", ["lgcn", *PLANETOID])
    with pytest.raises(SystemExit) as end:
        command_line().main()
    assert end.value.code == 1
    out, err = capsys.readouterr()
    assert "50.0 (1)" in out
    assert "1 run failed" in err
    assert "the loss became nan in epoch 3" in err
    assert "citeseer/planetoid-" in err
    assert "train_planetoid" in err


@pytest.mark.usefixtures("fake")
def test_no_data_at_all_is_an_error(lgcn_: Callable[..., Any], place: Path) -> None:
    message = lgcn_(*PLANETOID, "--datasets", "pubmed").message
    assert "nothing to reproduce" in message
    assert "pubmed is left out" in message
    assert not (place / "reproduce").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table9"], ["'table9'", "did you mean 'table"]),
        (["picture"], ["'picture'", "table2", "ablation", "all"]),
        (["table2", "--models", "gcn,gst"], ["'gst'", "did you mean 'gat'"]),
        (["table2", "--datasets", "corra"], ["'corra'", "did you mean 'cora'"]),
        (["table2", "--preset", "papr"], ["'papr'", "did you mean 'paper'"]),
        (["table2", "--quick", "--full"], ["--quick", "--full"]),
        (["table2", "--processes", "0"], ["--processes", "at least 1"]),
        (["table2", "--seeds", "0"], ["--seeds", "at least 1"]),
        (["table2", "--device", "tpu"], ["--device", "'tpu'"]),
    ],
)
def test_wrong_arguments(
    arguments: list[str], words: list[str], lgcn_: Callable[..., Any], place: Path
) -> None:
    output = lgcn_("reproduce", *arguments)
    assert output.code == 2
    assert all(word in output.message for word in words)
    assert not list(place.iterdir())


def test_ctrl_c_says_how_to_go_on(
    lgcn_: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "reproduce", interrupted)
    output = lgcn_("reproduce", "table2", "--out", "a folder")
    assert output.code == 130
    assert output.err.strip().endswith("Resume with: lgcn reproduce table2 --out 'a folder'")


def test_the_help_names_every_target() -> None:
    """Typed there, since plans are not imported for a help text."""
    command_line()
    [argument] = [
        p
        for p in typer.main.get_command(command_line().app).commands["reproduce"].params  # type: ignore[attr-defined]
        if p.name == "target"
    ]
    assert argument.help == f"{', '.join(TARGETS)}, or all of them."


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    terminal = Console(file=file, force_terminal=True, force_jupyter=False, width=150)
    monkeypatch.setattr(cli_reproduce, "err", terminal)
    job = fake_job(3, "citeseer", max_epochs=2)
    with cli_reproduce._progress() as on_run:
        on_run(job, fake_record(job), 1, 2)
        on_run(job, Failure("no luck"), 2, 2)
    assert "run 1/2" in file.getvalue() or "run 2/2" in file.getvalue()
    assert "citeseer planetoid (max_epochs=2) seed 3: failed, no luck" in file.getvalue()


def test_a_real_table(lgcn_: Callable[..., Any], data_root: Path, place: Path) -> None:
    """Two systems with two presets, for a few epochs; a run's command gives the same score."""
    arguments = ("reproduce", "table4", "--quick", "--datasets", "cora", "--preset", "released")
    found = lgcn_(*arguments, "--processes", "1", "--device", "cpu", "--json").json
    assert found["runs"] == {"run": 2, "reused": 0}
    rows = found["tables"]["table4"]["rows"]
    assert [row["row"] for row in rows] == [
        "LGCN_sub-GCN (released program)",
        "LGCN_sub (released program)",
    ]
    records = read_records(place / "reproduce" / "quick" / "records")
    assert len(records) == 2
    for record in records:
        assert record["machine"]["threads"] == 1
        assert record["result"]["nodes_per_batch"] == [644]
        words = shlex.split(record["command"])
        repeated = lgcn_(*words[1:], "--json").json
        for key in ("val_score", "test_score", "test_score_released_rule", "parameters"):
            assert repeated[key] == record["result"][key]
    table = list(csv.DictReader((place / "reproduce" / "quick" / "table4.csv").open()))
    scores = sorted(100 * record["result"]["test_score"] for record in records)
    assert sorted(float(row["honest"]) for row in table) == pytest.approx(scores)


@pytest.mark.slow
def test_everything_runs_quickly(data_root: Path, place: Path) -> None:
    """What a user tries first, as a program of its own."""
    command = [sys.executable, "-m", "lgcn", "reproduce", "all", "--quick", "--device", "cpu"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert list(found["tables"]) == list(TARGETS)
    assert found["failed"] == []
    systems = {row["system"] for table in found["tables"].values() for row in table["rows"]}
    missing = {name for name, system in SYSTEMS.items() if system.missing}
    of_graphs = {name for name in SYSTEMS if name in model_names() and find_model(name).for_graphs}
    assert systems - of_graphs == SYSTEMS.keys() - missing - of_graphs
    for table in found["tables"].values():
        assert all(row["seeds"] == 1 for row in table["rows"])
    folder = place / "reproduce" / "quick"
    assert all(target in (folder / "README.md").read_text() for target in TARGETS)
    nodes = {
        (row["row"], row["dataset"]): row["nodes"] for row in found["tables"]["table5"]["rows"]
    }
    assert [nodes["LGCN_sub, one hop", d] for d in ("cora", "citeseer", "pubmed")] == [
        644,
        442,
        354,
    ]
    assert nodes["LGCN_sub, Algorithm 1", "cora"] == 2000
