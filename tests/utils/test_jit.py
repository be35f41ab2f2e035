"""The cache of compiled kernels: a full disk, damaged files and read-only folders are no errors."""

import ctypes
import importlib.util
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba.core.caching import FunctionCache

import lgcn
from lgcn.utils import jit as jit_module
from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.share import share

KERNEL = """
from lgcn.utils.jit import jit

@jit
def double(x):
    return 2 * x
"""


@pytest.fixture(autouse=True)
def _not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit_module, "_told", False)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Any]]:
    """Makes the kernel of a module anew, as another process does, with its cache in a folder."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)

    def make() -> Any:
        spec = importlib.util.spec_from_file_location("kernels", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.double

    return make


def cache_files(tmp_path: Path, ending: str) -> list[Path]:
    return sorted((tmp_path / "cache").rglob(f"*.{ending}"))


def loaded(kernel: Any) -> bool:
    """Whether the kernel came from the cache, after a call."""
    assert kernel(21) == 42
    hits, misses = kernel.stats.cache_hits, kernel.stats.cache_misses
    assert sum(hits.values()) + sum(misses.values()) == 1
    return sum(hits.values()) == 1


def test_what_was_compiled_is_loaded_by_the_next(kernel: Callable[[], Any], tmp_path: Path) -> None:
    assert not loaded(kernel())
    assert loaded(kernel())
    (index,), (data,) = (cache_files(tmp_path, ending) for ending in ("nbi", "nbc"))
    assert Path(kernel().stats.cache_path) == index.parent == data.parent


def shorten(content: bytes) -> bytes:
    return content[: len(content) // 2]


def flip(content: bytes) -> bytes:
    """Changes one bit in what would be machine code."""
    place = len(content) * 3 // 4
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "truncated": shorten,
    "zeros": lambda content: bytes(len(content)),
    "no pickle": lambda content: b"text\n" + content,
    "another pickle": lambda content: b"I1\n.",
    "one bit": flip,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_damaged_files_are_compiled_anew(
    kernel: Callable[[], Any], tmp_path: Path, ending: str, damage: str
) -> None:
    loaded(kernel())
    (path,) = cache_files(tmp_path, ending)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    if (ending, damage) != ("nbi", "one bit"):  # which may change nothing that is read
        assert not loaded(kernel())
    else:
        assert kernel()(21) == 42
    assert loaded(kernel())  # it was written again


def test_code_of_another_signature_is_not_run(kernel: Callable[[], Any], tmp_path: Path) -> None:
    """Two processes that save at once may leave an index that names the file of the other."""
    first = kernel()
    first(21)
    first(1.5)
    one, other = cache_files(tmp_path, "nbc")
    one.write_bytes(other.read_bytes())
    again = kernel()
    assert (again(21), again(1.5)) == (42, 3.0)
    assert sum(again.stats.cache_misses.values()) == 1


def test_a_full_disk_is_told_once(
    kernel: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(FunctionCache, "save_overload", full)
    double = kernel()
    with pytest.warns(UserWarning, match="No space left on device.*NUMBA_CACHE_DIR") as told:
        assert double(21) == 42
    assert len(told) == 1
    with warnings.catch_warnings(action="error"):
        assert double(1.5) == 3.0
        assert not loaded(kernel())


@pytest.fixture
def no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All folders that Numba tries are files, which binds the root user as well."""
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(file))
    monkeypatch.setattr("numba.core.caching.InTreeCacheLocator.get_cache_path", lambda self: file)
    monkeypatch.setattr("numba.core.caching.UserWideCacheLocator.get_cache_path", lambda self: file)


def test_without_a_folder_kernels_are_compiled_with_a_word(
    kernel: Callable[[], Any], no_folder: None
) -> None:
    with warnings.catch_warnings(action="error"):
        double = kernel()  # which compiles nothing yet
    with pytest.warns(
        UserWarning, match=r"no folder .* can be written to.*NUMBA_CACHE_DIR"
    ) as told:
        assert double(21) == 42
    assert len(told) == 1
    assert double.stats.cache_path is None
    with warnings.catch_warnings(action="error"):
        assert double(1.5) == 3.0
        assert not loaded(kernel())


@pytest.mark.filterwarnings("error")
def test_a_cache_that_cannot_be_written_to_is_read(
    kernel: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not loaded(kernel())

    def refuse(self: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("numba.core.caching._CacheLocator.ensure_cache_path", refuse)
    double = kernel()
    assert loaded(double)
    assert Path(double.stats.cache_path).is_relative_to(tmp_path / "cache")


def test_kernels_are_compiled_where_there_is_no_file() -> None:
    """As in a notebook or at the prompt."""
    exec("double = jit(lambda x: 2 * x)", space := {"jit": jit})
    with pytest.warns(UserWarning, match="NUMBA_CACHE_DIR"):
        assert space["double"](21) == 42


def test_parallel_kernels_wait_for_each_other_where_they_must(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @jit_parallel
    def count(found: Any, part: Any) -> None:
        for i in share(found.shape[0], part):
            found[i] = i

    found = np.zeros(10)
    count(found)
    assert found.sum() == 45
    monkeypatch.setattr(numba, "threading_layer", lambda: "workqueue")
    done = threading.Event()
    thread = threading.Thread(target=lambda: (count(found), done.set()))
    with jit_module._one_at_a_time:
        thread.start()
        assert not done.wait(0.2)
    assert done.wait(20)
    thread.join()


TOGETHER = """
import warnings
from concurrent.futures import ThreadPoolExecutor
import numba
import numpy as np
from lgcn.utils.jit import jit_parallel
from lgcn.utils.share import share
warnings.simplefilter("ignore")

@jit_parallel
def count(found, part):
    for i in share(found.shape[0], part):
        found[i] += i

def total(_):
    found = np.zeros(100_000, np.int64)
    count(found)
    return found.sum()

assert total(0) == 4999950000
assert numba.threading_layer() == "workqueue"
with ThreadPoolExecutor(4) as pool:
    assert set(pool.map(total, range(500))) == {4999950000}
"""


def test_parallel_kernels_in_several_threads_do_not_end_the_process() -> None:
    """Where Numba has neither OpenMP nor TBB, its own threads take one kernel at a time."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TOGETHER],
        env={**os.environ, "NUMBA_THREADING_LAYER": "workqueue"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


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
    """Runs Python with package, home and current folder read-only, as in hardened containers."""
    if sys.platform != "linux":
        pytest.skip("drops capabilities of Linux")
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
    notes = [line for line in trained.stderr.splitlines() if line.startswith("Note: ")]
    assert all(NOTE in note or "never predicted" in note for note in notes)  # after two epochs
    assert trained.stderr.count(NOTE) == 1
    predicted = read_only("-m", "lgcn", "predict", run, "--output", table)
    assert predicted.returncode == 0, predicted.stderr
    assert len(table.read_text().splitlines()) == 1798
    assert predicted.stderr.count(NOTE) == 1
