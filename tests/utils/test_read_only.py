"""Package, home and current folder that cannot be written to, as in hardened containers."""

import ctypes
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lgcn

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="drops capabilities of Linux")

PR_CAPBSET_DROP = 24
# CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH and CAP_FOWNER, by which root may write to any folder.
CAPABILITIES = (1, 2, 3)
NOTE = "no folder for Numba's cache can be written to"

SCRIPT = """
import os, sys, torch
from pathlib import Path
for folder in (Path.cwd(), Path.home(), Path(os.environ["PYTHONPATH"])):
    try:
        (folder / "file").touch()
    except PermissionError:
        pass
    else:
        raise AssertionError(f"{folder} can be written to")
import lgcn
from lgcn.__main__ import command_line
from lgcn.ops.dropout import dropout
from lgcn.training.warmup import kernels

def command(*arguments):
    sys.argv = ["lgcn", *arguments]
    try:
        command_line().main()
    except SystemExit as end:
        return end.code or 0

assert command("data", "list") == 0
assert command("settings") == 0
assert command("train", "--dataset", "synthetic", "--set", "max_epochs=1") == 1
print("no kernel yet", file=sys.stderr)
graph = lgcn.Graph.as_given(torch.tensor([[0, 1], [1, 0]]), x=torch.ones(2, 3))
assert dropout(graph.x, 0.5).shape == (2, 3)
assert {kernel.stats.cache_path for kernel in kernels().values()} == {None}
"""


def drop_capabilities() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in CAPABILITIES:  # refused to others than root, who have none of them
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Callable[..., subprocess.CompletedProcess[str]]]:
    """Runs Python with the package, the home and the current folder read-only."""
    package, home, cwd, scratch = (tmp_path / name for name in ("package", "home", "cwd", "tmp"))
    source = Path(lgcn.__file__).parent
    shutil.copytree(source, package / "lgcn", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in (home, cwd, scratch):
        folder.mkdir()
    frozen = [path for root in (package, home, cwd) for path in (root, *root.rglob("*"))]
    for path in frozen:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    unset = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "LGCN_DATA", "PYTHONDONTWRITEBYTECODE")
    env = {key: value for key, value in os.environ.items() if key not in unset}
    env |= {"PYTHONPATH": str(package), "HOME": str(home), "TMPDIR": str(scratch)}

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            env=env,
            cwd=cwd,
            preexec_fn=drop_capabilities,
            capture_output=True,
            text=True,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    yield run
    for path in frozen:
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_the_package_works_and_says_once_that_kernels_are_not_kept(read_only) -> None:
    done = read_only("-c", SCRIPT)
    assert done.returncode == 0, done.stderr
    assert "digits" in done.stdout  # the data sets
    assert "max_epochs" in done.stdout  # the settings
    before, _, after = done.stderr.partition("no kernel yet\n")
    errors = [line for line in before.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 1
    assert "runs" in errors[0]  # the folder that training would make
    (note,) = [line for line in done.stderr.splitlines() if NOTE in line]
    assert note.startswith("Note: ")
    assert "NUMBA_CACHE_DIR" in note
    assert note in after


@pytest.mark.slow  # a minute or more: each command compiles its kernels anew
@pytest.mark.timeout(900)
def test_training_and_prediction_write_where_they_are_told_to(read_only, tmp_path: Path) -> None:
    run, table = tmp_path / "run", tmp_path / "predictions.csv"
    options = ("--dataset", "digits", "--set", "max_epochs=2", "--json")
    trained = read_only("-m", "lgcn", "train", *options, "--out", run)
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["epochs"] == 2
    assert [line for line in trained.stderr.splitlines() if line.startswith("Note: ")] == [
        line for line in trained.stderr.splitlines() if NOTE in line
    ]
    assert trained.stderr.count(NOTE) == 1
    predicted = read_only("-m", "lgcn", "predict", run, "--output", table)
    assert predicted.returncode == 0, predicted.stderr
    assert len(table.read_text().splitlines()) == 1798
    assert predicted.stderr.count(NOTE) == 1
