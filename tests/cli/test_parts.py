"""`lgcn predict`, `embed` and `evaluate` on a graph in parts, alone and on two processes."""

import json
import os
import sys
from pathlib import Path

import pytest
from pyarrow import parquet

from lgcn.partition import write_partition
from tests.workers.processes import run_processes


@pytest.fixture
def parts(store: Path, place: Path) -> Path:
    write_partition(store, place / "parts", 3, method="hash")
    return place / "parts"


def nodes_of(folder: Path) -> list[int]:
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"part-000{number}.parquet" for number in range(3)]
    return sorted(node for file in files for node in parquet.read_table(file)["node"].to_pylist())


def test_predict(lgcn_, run_on_store: Path, parts: Path, place: Path):
    output = lgcn_("predict", "run", "--graph", "parts", "--output", "out")
    assert output.out == "wrote 400 predictions to out\n"
    assert nodes_of(place / "out") == list(range(400))
    output = lgcn_("predict", "run", "--graph", "parts", "--output", "out", "--json")
    assert output.json["nodes"] == 400
    assert output.json["output"] == "out"


def test_embed(lgcn_, run_on_store: Path, parts: Path, place: Path):
    output = lgcn_("embed", "run", "--graph", "parts", "--output", "out", "--layer", "0")
    assert output.out == "wrote embeddings of 400 nodes, 8 numbers each, to out\n"
    assert nodes_of(place / "out") == list(range(400))


def test_evaluate(lgcn_, run_on_store: Path, parts: Path):
    found = lgcn_("evaluate", "run", "--graph", "parts", "--json").json
    expected = lgcn_("evaluate", "run", "--json").json
    for split, values in expected["splits"].items():
        assert found["splits"][split]["nodes"] == values["nodes"]
        assert found["splits"][split]["score"] == pytest.approx(values["score"], abs=1e-5)
        assert found["splits"][split]["loss"] == pytest.approx(values["loss"], abs=1e-5)


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_a_single_file_is_refused_with_the_flag(
    lgcn_, run_on_store: Path, parts: Path, command: str
):
    output = lgcn_(command, "run", "--graph", "parts", "--output", "p.npy")
    assert output.code == 2
    assert "--output must be a folder" in output.message
    assert "p.npy" in output.message


@pytest.mark.parametrize(
    "command", [("predict", "--output", "p.csv"), ("embed", "--output", "p.npy"), ("evaluate",)]
)
def test_several_processes_need_a_graph_in_parts(
    lgcn_, run_on_store: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    output = lgcn_(command[0], "run", *command[1:])
    assert output.code == 2
    assert "--graph PARTITION" in output.message


def _command(folder: str, *words: str) -> None:
    from lgcn.__main__ import command_line

    os.chdir(folder)
    sys.argv = ["lgcn", *words]
    command_line().main()


def test_the_first_of_two_processes_prints(run_on_store: Path, parts: Path, place: Path):
    words = ("predict", "run", "--graph", "parts", "--output", "out", "--json")
    first, second = run_processes(_command, 2, str(place), *words)
    assert (first.status, second.status) == (0, 0), first.output + second.output
    record = first.output[first.output.index("{") :]  # after progress, if it was slow
    assert json.loads(record)["nodes"] == 400
    assert second.output == ""
    assert nodes_of(place / "out") == list(range(400))


@pytest.mark.parametrize("command", ["explain", "report"])
def test_other_commands_need_one_piece(lgcn_, run_on_store: Path, parts: Path, command: str):
    more = ("3",) if command == "explain" else ("--output", "r.html")
    output = lgcn_(command, "run", *more, "--graph", "parts")
    assert output.code == 2
    assert "parts is a graph in parts" in output.message
    assert "--graph" in output.message
    assert "store=" not in output.message


def test_a_run_on_a_graph_in_parts_needs_no_option(lgcn_, store: Path, parts: Path, place: Path):
    short = ("--max-steps", "4", "--set", "k=4", "--set", "hidden_channels=8")
    output = lgcn_("train", "--graph", "parts", *short, "--out", "run")
    assert output.code == 0, output.err
    assert lgcn_("predict", "run", "--output", "out").out == "wrote 400 predictions to out\n"
    assert lgcn_("predict", "run", "--output", "p.csv", "--graph", "store").code == 0
    parts.rename(place / "moved")
    output = lgcn_("predict", "run", "--output", "out")
    assert "if it has moved, give --graph" in output.message
    assert lgcn_("evaluate", "run", "--graph", "moved").code == 0
