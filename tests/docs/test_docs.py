"""The documents are executed: their commands, their Python, the examples and the notebooks.

All in this process, which has imported torch and compiled kernels already, and with few epochs.
"""

import glob
import json
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from lgcn import Graph, Settings
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
TO_RUN = [name for name in DOCUMENTS if re.search(r"```(python|sh)\n", (ROOT / name).read_text())]
# Half a minute: they run in `make test-all`.
SLOW = ("docs/guides/report.md", "large_graph.py")
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


@pytest.fixture
def at_most_epochs(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Ends every training after so many epochs, whatever a document asks for."""
    resolve = Settings.resolve

    def limit(epochs: int) -> None:
        def resolved(settings: Settings, graph: Graph, **options: Any) -> Settings:
            settings = resolve(settings, graph, **options)
            return settings.replace(max_epochs=min(epochs, settings.optimisation.max_epochs))

        monkeypatch.setattr(Settings, "resolve", resolved)

    return limit


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
    marketplace = runpy.run_path(str(ROOT / "examples" / "marketplace" / "make_files.py"))
    marketplace["main"](tmp_path)  # sellers.csv and links.csv
    molecules = runpy.run_path(str(ROOT / "examples" / "molecules" / "make_molecules.py"))
    molecules["main"](tmp_path)  # molecules.csv, atoms.csv and bonds.csv
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
    """The arguments of every ``lgcn`` in the blocks; patterns without quotes are expanded."""
    found = []
    for block in (block for kind in languages for block in blocks(name, kind)):
        for line in block.replace("\\\n", " ").split("\n"):
            words = shlex.split(line, comments=True)
            if words[:1] == ["torchrun"] and "lgcn" in words:  # torchrun ... -m lgcn ...
                words = words[words.index("lgcn") :]
            if words[:1] == ["lgcn"]:
                found.append([one for word in words[1:] for one in _expanded(word, line)])
    return found


def _expanded(word: str, line: str) -> list[str]:
    quoted = f"'{word}'" in line
    return [word] if quoted else sorted(glob.glob(word)) or [word]  # noqa: PTH207


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
        len(names["unknown"]) == 300
        and len(names["test"]) == 340
        and names["predictions"].column_names[-1] == "probability_yes"
    ),
    "docs/guides/table-formats.md": lambda names: len(names["table"]) == 120,
    "docs/guides/regression.md": lambda names: (
        names["ends"].shape == (120, 2) and (names["ends"][:, 0] < names["numbers"]).all()
    ),
    "docs/guides/best-model.md": lambda names: len(names["model"].leaderboard_) > 0,
    "docs/guides/estimators.md": lambda names: (
        set(names["search"].best_params_) == {"k"} and names["model"].graph_ is None  # a loaded one
    ),
    "docs/guides/explain.md": lambda names: (
        names["found"].node == "p7"
        and names["picture"].startswith("<svg")
        and len(names["layers"]) == 2
    ),
    "docs/guides/serve.md": lambda names: (
        [names[part]["predictions"][0]["node"] for part in ("known", "new")] == ["p7", "x"]
    ),
    "docs/start/tour.md": lambda names: len(names["classes"]) == 1797,
    "docs/guides/large-graphs.md": lambda names: names["scores"].shape == (120, 2),
}


def marked(names: list[str]) -> list[Any]:
    """The names as parameters of a test."""
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in names]


@pytest.mark.parametrize("name", marked(TO_RUN))
def test_a_document_runs(
    name: str,
    files: Path,
    lgcn_command: Callable[[list[str]], str],
    at_most_epochs: Callable[[int], None],
) -> None:
    """First its commands, then its Python, which may use what they wrote."""
    at_most_epochs(5)
    if name == "docs/guides/own-tables.md":  # whose tables are messy on purpose
        warnings.filterwarnings("default", category=UserWarning)
    for command in commands(name, ("sh",)):
        lgcn_command(command)
    if Path("predictions.csv").exists() and "edges.csv" in (ROOT / name).read_text():
        lines = Path("predictions.csv").read_text().splitlines()
        assert len(lines) == (2001 if name == "docs/guides/own-tables.md" else 121)
        assert lines[0].startswith('"node","predicted","confidence"')
    names = python(name)
    if name in SEEN:
        assert SEEN[name](names)


@pytest.mark.slow
def test_the_messy_example_scores_as_the_guide_says(
    files: Path, lgcn_command: Callable[[list[str]], str]
) -> None:
    """On the machine of the guide to the last digit; others may round differently."""
    name = "docs/guides/own-tables.md"
    warnings.filterwarnings("default", category=UserWarning)
    [train] = [c for c in commands(name, ("sh",)) if c[0] == "train" and "links.csv" in c]
    found = json.loads(lgcn_command([*train, "--json"]))["metrics"]
    baselines = found["baselines"]
    for document in (name, "README.md"):
        rows = re.findall(
            r"^\| (\w+) \| ([\d.]+) % \| ([\d.]+) % \| ([\d.]+) % \|$",
            (ROOT / document).read_text(),
            flags=re.MULTILINE,
        )
        assert len(rows) >= 2
        for metric, *shown in rows:
            parts = (found["splits"]["test"]["scores"], baselines["features"]["test"])
            scores = [part[metric] for part in (*parts, baselines["majority"]["test"])]
            assert [float(score) / 100 for score in shown] == pytest.approx(scores, abs=0.05)


HELP: dict[tuple[str, ...], str] = {}  # what each command printed


@pytest.mark.parametrize("name", [*DOCUMENTS, "CONTRIBUTING.md"])
def test_every_flag_in_a_document_is_one_of_its_command(
    name: str, lgcn_command: Callable[[list[str]], str]
) -> None:
    """Also in blocks that are too slow to run."""
    for command in commands(name, ("sh", "bash")):
        flags = [word for word in command if word.startswith("--")]
        path = [] if flags[:1] == command[:1] else command[: 2 if command[0] == "data" else 1]
        if tuple(path) not in HELP:
            HELP[tuple(path)] = lgcn_command([*path, "--help"])
        for flag in flags:
            assert flag in HELP[tuple(path)], f"lgcn {shlex.join(command)}"


def test_the_settings_file_in_the_guide_is_one() -> None:
    [block] = blocks("docs/guides/settings.md", "toml")
    read = Settings.create(**tomllib.loads(block))
    assert read == Settings.create(dataset="digits", k=16, lr=0.01, max_epochs=3)


def test_the_defaults_in_the_guide_are_the_defaults() -> None:
    rows = re.findall(
        r"^\| (`.*) \| (.*) \| (.*) \| .* \|$",
        (ROOT / "docs" / "guides" / "settings.md").read_text(),
        flags=re.MULTILINE,
    )
    assert len(rows) > 5
    for column, labels in ((1, "few"), (2, "many")):
        defaults = Settings.create(dataset="tables", labels=labels).flat()
        for row in rows:
            shown = [word.strip(" `") for word in row[column].split(",")]
            for name, value in zip(row[0].split(","), shown, strict=True):
                default = defaults[name.strip(" `")]
                assert value == default or float(value) == default, name


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, at_most_epochs: Callable[[int], None]) -> None:
    if path.stem == "cora":
        from lgcn.datasets import dataset_files
        from lgcn.errors import DataError

        try:
            dataset_files("cora")
        except DataError as error:
            pytest.skip(f"Cora is not on this machine: {error}")
    at_most_epochs(3)
    names: dict[str, Any] = {}
    for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
        if cell.cell_type == "code":
            exec(compile(cell.source, f"{path.name}, cell {number}", "exec"), names)
    assert "lgcn" in names


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_with_the_outputs_of_one_run(path: Path) -> None:
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert not any(out.output_type == "error" for cell in cells for out in cell.outputs)
    assert path.stat().st_size < 50_000


@pytest.mark.parametrize("name", marked(EXAMPLES))
def test_an_example_runs(
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    at_most_epochs: Callable[[int], None],
) -> None:
    if name == "mlflow_pyfunc.py":
        pytest.importorskip("mlflow", reason="mlflow is not installed; it is large")
    path = ROOT / "examples" / name
    assert len(path.read_text().splitlines()) < 100
    if name == "large_graph.py":  # its own process: this one may be larger than its memory limit
        done = subprocess.run(
            [sys.executable, path, "5000"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        at_most_epochs(40)
        monkeypatch.setattr(sys, "argv", [str(path)])
        runpy.run_path(str(path), run_name="__main__")
        printed = capfd.readouterr().out
    last = re.findall(r"(?:validation|accuracy|validation accuracy) (0\.\d+|1\.0)", printed)[-1]
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
