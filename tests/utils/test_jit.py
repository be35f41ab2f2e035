"""The cache of compiled kernels: a full disk, damaged files and read-only folders are no errors."""

import importlib.util
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import FunctionCache

from lgcn.utils import jit as jit_module
from lgcn.utils.jit import jit, jit_parallel

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
    def total(n: int) -> int:
        found = 0
        for i in numba.prange(n):
            found += i
        return found

    assert total(10) == 45
    monkeypatch.setattr(numba, "threading_layer", lambda: "workqueue")
    done = threading.Event()
    thread = threading.Thread(target=lambda: (total(10), done.set()))
    with jit_module._one_at_a_time:
        thread.start()
        assert not done.wait(0.2)
    assert done.wait(20)
    thread.join()


TOGETHER = """
import warnings
from concurrent.futures import ThreadPoolExecutor
import numba
from lgcn.utils.jit import jit_parallel
warnings.simplefilter("ignore")

@jit_parallel
def total(n):
    found = 0
    for i in numba.prange(n):
        found += i
    return found

assert total(10) == 45
assert numba.threading_layer() == "workqueue"
with ThreadPoolExecutor(4) as pool:
    assert set(pool.map(lambda _: total(100_000), range(500))) == {4999950000}
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
