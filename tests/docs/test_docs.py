"""The documentation is executed, and its numbers are those of the committed records."""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from lgcn.cli.app import app

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
OWN_DATA = (ROOT / "docs" / "own-data.md").read_text()


@pytest.fixture
def two_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """edges.csv and nodes.csv in the working directory, as the documents take them for granted."""
    rng = np.random.default_rng(0)
    topic = rng.choice(["science", "sports"], 120)
    ends = rng.integers(0, 120, (800, 2))
    ends = ends[topic[ends[:, 0]] == topic[ends[:, 1]]]
    nodes = [f"p{i},{rng.normal():.3f},{t if i % 3 else ''}" for i, t in enumerate(topic)]
    edges = [f"p{i},p{j}" for i, j in ends if i != j]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,age,topic", *nodes]))
    (tmp_path / "edges.csv").write_text("\n".join(["source,target", *edges]))
    monkeypatch.chdir(tmp_path)


def python_blocks(text: str) -> dict[str, Any]:
    """Runs all Python of a document as one program; gives its variables."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "document", "exec"), names)
    return names


@pytest.mark.usefixtures("two_tables")
def test_the_readmes_python_runs() -> None:
    assert README.count("```python") == 4
    names = python_blocks(README)
    assert names["values"].shape == names["index"].shape == (4, 2, 16)
    assert len(names["classes"]) == 1797
    assert names["table"].column_names[:3] == ["node", "predicted", "confidence"]


@pytest.mark.usefixtures("two_tables")
def test_the_python_for_own_data_runs() -> None:
    names = python_blocks(OWN_DATA)
    assert len(names["table"]) == 120
    assert set(names["search"].best_params_) == {"k"}
    assert names["model"].graph_ is None  # a loaded one


@pytest.mark.usefixtures("two_tables")
@pytest.mark.parametrize("text", ["README", "OWN_DATA"])
def test_the_commands_for_own_data_run(text: str) -> None:
    block = re.search(r"```sh\n(lgcn train --edges.*?)```", globals()[text], flags=re.DOTALL)
    assert block is not None
    commands = [shlex.split(line, comments=True)[1:] for line in block[1].splitlines()]
    assert [command[0] for command in commands] == ["train", "predict"]
    for command in commands:
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
    lines = Path("predictions.csv").read_text().splitlines()
    assert len(lines) == 121
    assert lines[0].startswith('"node","predicted","confidence"')


@pytest.mark.parametrize(
    "name",
    ["train.py", "layer_in_pyg.py", "two_tables.py", "pandas_notebook.py", "large_graph.py"],
)
def test_the_examples_run(name: str) -> None:
    path = ROOT / "examples" / name
    assert len(path.read_text().splitlines()) < 100
    # A process of its own, as a user's: the tests' may be larger than an example's ceiling.
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    last = re.findall(r"validation(?: accuracy)? (0\.\d+|1\.0)", done.stdout)[-1]
    assert float(last) > 0.9


def test_every_promise_names_a_test_that_is_there() -> None:
    text = (ROOT / "docs" / "evidence" / "guarantees.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    promises = [row for row in rows if not re.match(r"\| (promise|what) \|", row)]
    assert len(promises) > 30
    for promise in promises:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", promise)
        assert named, promise
        for path, name in named:
            assert not name or f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"
