"""The documents are executed: their Python, their commands, the examples and the notebooks."""

import glob
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pyarrow as pa
import pytest
from notebooks import execute
from pyarrow import csv, parquet

from lgcn.__main__ import main

ROOT = Path(__file__).parents[2]
# Those that a user reads from top to bottom, and types after.
DOCUMENTS = [
    "README.md",
    *sorted(
        str(path.relative_to(ROOT))
        for folder in ("start", "guides", "how-it-works")
        for path in (ROOT / "docs" / folder).glob("*.md")
    ),
]
WITH_PYTHON = [name for name in DOCUMENTS if "```python" in (ROOT / name).read_text()]
WITH_COMMANDS = [name for name in DOCUMENTS if "```sh\n" in (ROOT / name).read_text()]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the documents take for granted, in the working directory."""
    rng = np.random.default_rng(0)
    topic = rng.choice(["science", "sports"], 120)
    ends = rng.integers(0, 120, (800, 2))
    ends = ends[(topic[ends[:, 0]] == topic[ends[:, 1]]) & (ends[:, 0] != ends[:, 1])]
    names = np.array([f"p{i}" for i in range(120)])
    nodes = pa.table({
        "id": names,
        "age": rng.normal(size=120).round(3),
        "topic": pa.array(topic, mask=np.arange(120) % 3 == 0),
    })  # fmt: skip
    edges = pa.table({"source": names[ends[:, 0]], "target": names[ends[:, 1]]})
    csv.write_csv(nodes, tmp_path / "nodes.csv")
    parquet.write_table(nodes, tmp_path / "nodes.parquet")
    csv.write_csv(edges, tmp_path / "edges.csv")
    csv.write_csv(edges.slice(0, 200), tmp_path / "edges-1.csv")
    csv.write_csv(edges.slice(200), tmp_path / "edges-2.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def lgcn_command(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[[list[str]], str]:
    """Runs the command line with these arguments; gives what it prints."""

    def run(arguments: list[str]) -> str:
        monkeypatch.setattr(sys, "argv", ["lgcn", *arguments])
        monkeypatch.setenv("COLUMNS", "200")
        code: Any = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        printed = capfd.readouterr()
        assert not code, f"lgcn {shlex.join(arguments)}: {printed.out}{printed.err}"
        return printed.out

    return run


def blocks(name: str, language: str) -> list[str]:
    text = (ROOT / name).read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def commands(name: str, languages: tuple[str, ...]) -> list[list[str]]:
    """The arguments of every ``lgcn`` in the blocks, with patterns of file names expanded."""
    lines = [
        line for kind in languages for block in blocks(name, kind) for line in block.split("\n")
    ]
    words = [shlex.split(line, comments=True) for line in lines]
    return [
        [found for word in line[1:] for found in sorted(glob.glob(word)) or [word]]  # noqa: PTH207
        for line in words
        if line[:1] == ["lgcn"]
    ]


def python(name: str) -> dict[str, Any]:
    """Runs all Python of a document as one program; gives its variables."""
    names: dict[str, Any] = {}
    for number, block in enumerate(blocks(name, "python")):
        exec(compile(block, f"{name}, block {number}", "exec"), names)
    return names


# What is to be seen after a document's Python.
SEEN: dict[str, Callable[[dict[str, Any]], bool]] = {
    "README.md": lambda names: (
        names["table"].column_names[:3] == ["node", "predicted", "confidence"]
    ),
    "docs/guides/own-tables.md": lambda names: (
        len(names["table"]) == 120
        and set(names["search"].best_params_) == {"k"}
        and names["model"].graph_ is None  # a loaded one
    ),
    "docs/start/tour.md": lambda names: len(names["classes"]) == 1797,
    "docs/guides/large-graphs.md": lambda names: names["scores"].shape == (120, 2),
}


@pytest.mark.parametrize("name", WITH_PYTHON)
def test_the_python_of_a_document_runs(
    name: str, files: Path, lgcn_command: Callable[[list[str]], str]
) -> None:
    if name == "docs/guides/large-graphs.md":  # its Python opens the store that its commands make
        first = commands(name, ("sh",))[0]
        assert first[0] == "import"
        lgcn_command(first)
    names = python(name)
    if name in SEEN:
        assert SEEN[name](names)


@pytest.mark.parametrize("name", WITH_COMMANDS)
def test_the_commands_of_a_document_run(
    name: str, files: Path, lgcn_command: Callable[[list[str]], str]
) -> None:
    for command in commands(name, ("sh",)):
        lgcn_command(command)
    if Path("predictions.csv").exists() and "edges.csv" in (ROOT / name).read_text():
        lines = Path("predictions.csv").read_text().splitlines()
        assert len(lines) == 121
        assert lines[0].startswith('"node","predicted","confidence"')


@pytest.mark.parametrize("name", [*DOCUMENTS, "CONTRIBUTING.md"])
def test_every_flag_in_a_document_is_one_of_its_command(
    name: str, lgcn_command: Callable[[list[str]], str]
) -> None:
    """Also in blocks that are too slow to run."""
    for command in commands(name, ("sh", "bash")):
        flags = [word for word in command if word.startswith("--")]
        path = [] if flags[:1] == command[:1] else command[: 2 if command[0] == "data" else 1]
        shown = lgcn_command([*path, "--help"])
        for flag in flags:
            assert flag in shown, f"lgcn {shlex.join(command)}"


def test_the_settings_file_in_the_guide_is_one() -> None:
    from lgcn import Settings

    [block] = blocks("docs/guides/settings.md", "toml")
    read = Settings.create(**tomllib.loads(block))
    assert read == Settings.create(dataset="digits", k=16, lr=0.01, max_epochs=3)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if path.stem == "cora":
        from lgcn.datasets import dataset_files
        from lgcn.errors import DataError

        try:
            dataset_files("cora")
        except DataError as error:
            pytest.skip(f"Cora is not on this machine: {error}")
    monkeypatch.setenv("LGCN_NOTEBOOK_EPOCHS", "3")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"), prepend=":")
    cells = [cell for cell in execute(path).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_the_outputs_of_one_run(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(out.output_type == "error" for cell in cells for out in cell.outputs)
    assert path.stat().st_size < 50_000


RUN_ALL = """
import runpy, sys
for path in sys.argv[1:]:
    sys.argv = [path]
    runpy.run_path(path, run_name="__main__")
    print("end of example")
"""


@pytest.mark.timeout(300)
def test_the_examples_run() -> None:
    # In one process, since importing torch takes seconds, but not in this one, which may be larger
    # than the memory limit of an example; this one is the first.
    paths = sorted((ROOT / "examples").glob("*.py"))
    assert paths[0].name == "large_graph.py"
    command = [sys.executable, "-c", RUN_ALL, *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *printed, rest = done.stdout.split("end of example\n")
    assert (len(printed), rest) == (len(paths), "")
    for path, text in zip(paths, printed, strict=True):
        assert len(path.read_text().splitlines()) < 100
        last = re.findall(r"validation(?: accuracy)? (0\.\d+|1\.0)", text)[-1]
        assert float(last) > 0.9, path.name


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
