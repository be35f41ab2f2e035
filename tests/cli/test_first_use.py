"""The first command on a machine says that it compiles kernels, and has help with it."""

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numba
import pytest

import lgcn
from lgcn.__main__ import command_line
from lgcn.cli import first_use
from lgcn.datasets.graph_source import GraphSource
from lgcn.utils import ahead
from lgcn.utils.jit import worth_compiling_ahead

KERNELS = Path(lgcn.__file__).parent / "ops" / "cpu" / "kernels.py"
NOTE = "Note: compiling kernels for this processor"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """What would be run in another process."""
    commands: list[tuple[str, ...]] = []

    @contextmanager
    def compiling(*command: str, package: str) -> Iterator[None]:
        assert command[0].startswith(package)
        commands.append(command)
        yield

    monkeypatch.setattr(ahead, "compiling", compiling)
    monkeypatch.setattr(ahead, "spare_core", lambda: True)
    return commands


@pytest.fixture
def told() -> Iterator[None]:
    log = logging.getLogger("lgcn.compile")
    before = (log.handlers, log.level, log.propagate)
    first_use.tell_of_compiling()
    yield
    log.handlers, level, log.propagate = before
    log.setLevel(level)


@pytest.mark.usefixtures("told")
def test_every_command_tells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logging.getLogger("lgcn.compile")
    log.handlers = []
    monkeypatch.setattr("sys.argv", ["lgcn", "data", "path", "digits"])
    with pytest.raises(SystemExit):
        command_line().main()
    capsys.readouterr()
    log.info("compiling %s", "spmm")
    assert NOTE in capsys.readouterr().err


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(("dataset", "index"), [("digits", "int64"), ("tables", "int32")])
def test_without_kernels_another_process_compiles_those_of_the_graph(
    dataset: str,
    index: str,
    started: list[tuple[str, ...]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    with first_use.first_step_ahead(GraphSource(dataset)):
        assert started == [("lgcn.ops.cpu.first_step", index)]
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count(NOTE) == 1


@pytest.mark.usefixtures("told")
@pytest.mark.parametrize(
    ("dataset", "missing", "spare"),
    [
        ("digits", False, True),
        ("digits", True, False),
        ("store", True, True),
        ("ppi", True, True),
    ],
    ids=["there are kernels", "no core to spare", "a store", "no files"],
)
@pytest.mark.usefixtures("empty_folder")
def test_nothing_is_started_or_told_where_it_does_not_help(
    dataset: str,
    missing: bool,
    spare: bool,
    started: list[tuple[str, ...]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("lgcn.utils.jit.worth_compiling_ahead", lambda file, kernel: missing)
    monkeypatch.setattr(ahead, "spare_core", lambda: spare)
    with first_use.first_step_ahead(GraphSource(dataset)):
        pass
    assert started == []
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("told")
def test_the_note_comes_once_and_not_where_it_should_be_quiet(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log = logging.getLogger("lgcn.compile")
    with first_use.quiet_about_compiling(True):
        log.info("compiling %s", "spmm")
    assert capsys.readouterr().err == ""
    log.info("compiling %s", "spmm")
    log.info("compiling %s", "row_chunks")
    assert capsys.readouterr().err.count(NOTE) == 1


def test_one_of_spare_processes_speaks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = first_use._Note()
    record = logging.makeLogRecord({"msg": "compiling spmm"})
    monkeypatch.setattr(first_use, "launched", lambda: True)
    for rank in ("1", "0"):
        monkeypatch.setenv("RANK", rank)
        handler.emit(record)
        assert (NOTE in capsys.readouterr().err) == (rank == "0")


def test_kernels_are_missing_until_their_file_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    file = tmp_path / "module.py"
    file.write_text("from lgcn.utils.jit import jit\n\n@jit\ndef double(x):\n    return 2 * x\n")
    assert worth_compiling_ahead(file, "double")
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    env["PYTHONPATH"] += os.pathsep + str(Path(lgcn.__file__).parents[1])
    subprocess.run([sys.executable, "-c", "import module; module.double(1)"], env=env, check=True)
    assert not worth_compiling_ahead(file, "double")
    assert worth_compiling_ahead(file, "another")
    later = file.stat().st_mtime + 60
    os.utime(file, (later, later))
    assert worth_compiling_ahead(file, "double")


def test_nothing_is_compiled_ahead_for_a_folder_that_cannot_be_written_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(file))
    monkeypatch.setattr("numba.core.caching.InTreeCacheLocator.get_cache_path", lambda self: file)
    monkeypatch.setattr("numba.core.caching.UserWideCacheLocator.get_cache_path", lambda self: file)
    assert not worth_compiling_ahead(KERNELS, "k_largest")
