"""How much memory there is and is taken, and giving it back."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.errors import DataError, UsageError
from lgcn.utils import memory
from lgcn.utils.memory import (
    PeakMemory,
    anonymous_memory,
    available_memory,
    check_memory,
    machine_memory,
    trim_memory,
)


@pytest.mark.parametrize(("given", "found"), [({}, "1"), ({"THP_MEM_ALLOC_ENABLE": "0"}, "0")])
def test_torch_is_told_to_ask_for_huge_pages_unless_told_otherwise(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], found: str
) -> None:
    monkeypatch.delenv("THP_MEM_ALLOC_ENABLE", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    code = (
        "import lgcn, os, sys; assert 'torch' not in sys.modules;"
        "print(os.environ['THP_MEM_ALLOC_ENABLE'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == (f"{found}\n", "")


def test_the_memory_that_is_available() -> None:
    found = available_memory()
    if not Path("/proc/meminfo").exists():
        assert found is None
        return
    assert found is not None
    total = int(Path("/proc/meminfo").read_text().split("MemTotal:")[1].split()[0]) * 1024
    assert 0 < found < total


def test_what_does_not_fit_in_the_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0 < machine_memory() < 2**63
    monkeypatch.setattr(memory, "machine_memory", lambda: 10**9)
    check_memory(10**9, "the table")
    with pytest.raises(UsageError, match=r"the table .*2 GB .*1 GB"):
        check_memory(2 * 10**9, "the table")
    with pytest.raises(DataError, match="the file"):
        check_memory(2 * 10**9, "the file", DataError)


def test_anonymous_memory_and_its_peak() -> None:
    trim_memory()  # else freed memory, still resident, may be used unseen
    with PeakMemory(every=0.001) as peak:
        before = anonymous_memory()
        held = np.ones(200 * 10**6, np.uint8)
        assert anonymous_memory() - before > 100 * 10**6
        del held
    assert peak.peak - before > 100 * 10**6


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell")
def test_the_peak_of_a_call_that_lets_no_other_thread_run() -> None:
    code = """
import ctypes
from lgcn.utils.memory import PeakMemory
c = ctypes.PyDLL(None)  # keeps Python's lock
c.malloc.restype = ctypes.c_void_p
size = 200_000_000
with PeakMemory(every=1000) as peak:
    before = peak.peak
    with peak.in_one_call():
        place = ctypes.c_void_p(c.malloc(ctypes.c_size_t(size)))
        c.memset(place, 1, ctypes.c_size_t(size))
        c.free(place)
assert before + 0.9 * size < peak.peak < before + 1.2 * size, (before, peak.peak)
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_mapped_files_are_not_anonymous(tmp_path: Any) -> None:
    values = np.memmap(tmp_path / "values", np.uint8, "w+", shape=(40 * 10**6,))
    before = anonymous_memory()
    values[:] = 1
    assert anonymous_memory() - before < 10 * 10**6


def test_memory_that_was_freed_can_be_given_back() -> None:
    held = [np.ones(50_000, np.uint8) for _ in range(1000)]
    kept = held[::100]
    before = anonymous_memory()
    del held
    trim_memory()
    assert anonymous_memory() < before - 20 * 10**6
    assert len(kept) == 10
