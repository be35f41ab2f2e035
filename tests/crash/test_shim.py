"""The shim sees what commands write, and does what it is told; results are synced."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .checks import Laboratory
from .scenarios import SCENARIOS, TABLES
from .trials import MODES, Call, Command, Unavailable, build_shim

WRITE = """
import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
for part in (b"aaaa", b"bbbb"):
    try:
        print(os.write(file, part))
    except OSError as error:
        print(error.errno)
os.unlink(sys.argv[1] + ".old")
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build_shim(tmp_path_factory.mktemp("shim"))
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize(
    ("mode", "n", "status", "written", "printed"),
    [
        ("count", 0, 0, "aaaabbbb", [4, 4]),
        ("kill before", 3, -signal.SIGKILL, "aaaa", []),
        ("kill after", 2, -signal.SIGKILL, "aaaa", []),
        ("kill torn", 3, -signal.SIGKILL, "aaaabb", []),
        ("kill before", 1, -signal.SIGKILL, None, []),
        ("kill after", 1, -signal.SIGKILL, "", []),
        ("fail", 2, 0, "bbbb", [errno.EIO, 4]),
        ("fail", 4, 1, "aaaabbbb", [4, 4]),
        ("full", 2, 0, "aa", [2, errno.EIO]),
        ("short", 2, 0, "aabbbb", [2, 4]),
    ],
)
def test_one_call_is_disturbed(
    shim: Path,
    tmp_path: Path,
    mode: str,
    n: int,
    status: int,
    written: str | None,
    printed: list[int],
):
    (tmp_path / "in").mkdir()
    file, log = tmp_path / "in" / "file", tmp_path / "log"
    (tmp_path / "in" / "file.old").touch()
    armed = {
        "LD_PRELOAD": str(shim),
        "CRASH_FOLDER": str(tmp_path / "in"),
        "CRASH_N": str(n),
        "CRASH_MODE": str(MODES.index(mode)),
        "CRASH_ERRNO": str(errno.EIO),
        "CRASH_LOG": str(log),
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", WRITE, str(file)],
        env=os.environ | armed,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert (file.read_text() if file.exists() else None) == written
    if status >= 0:  # a kill loses what is printed
        assert [int(line) for line in done.stdout.split()] == printed
    lines = [line.split("\t")[1] for line in log.read_text().splitlines()]
    names = [name.replace("64", "") for name in lines]
    assert names == ["open", "write", "write", "unlink"][: len(names)]
    assert len(names) == (4 if status >= 0 else n)


@pytest.mark.parametrize("name", SCENARIOS)
def test_all_bytes_of_a_result_are_seen(laboratory: Laboratory, name: str):
    # Fails if a library writes through a memory map, or with its own system calls.
    found = laboratory.undisturbed(SCENARIOS[name])
    assert 0 < found.size <= sum(call.size for call in found.ended.calls)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_result_is_on_the_disk_when_it_takes_its_name(laboratory: Laboratory, name: str):
    calls = laboratory.undisturbed(SCENARIOS[name]).ended.calls
    renames = [call for call in calls if call.kind == "rename"]
    assert renames
    for rename in renames:
        assert _synced(rename.before, calls[: rename.n - 1]), rename
        # The folder too, so that the new name survives a power failure.
        parent = str(Path(rename.path).parent)
        assert any(c.kind == "fsync" and c.path == parent for c in calls[rename.n :]), rename


def _synced(path: str, calls: list[Call]) -> bool:
    """Whether the file, or each one of the folder, was synced after it was last written to."""
    last: dict[str, str] = {}
    for call in calls:
        if call.path == path or Path(call.path).is_relative_to(path):
            if call.kind == "fsync" or call.size:
                last[call.path] = call.kind
            if call.kind in ("unlink", "rmdir"):
                last.pop(call.path, None)
    return path in last and set(last.values()) == {"fsync"}


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "trained"),
        ("data", "check", *TABLES),
        ("data", "info", "old-store"),
        ("train", "--out", "trained", "--resume"),
    ],
)
def test_commands_that_only_read_write_nothing(laboratory: Laboratory, arguments: tuple[str, ...]):
    laboratory.reset()
    ended = laboratory.machine.run(Command(arguments), laboratory.folder)
    assert ended.status == 0, ended.err
    assert [call for call in ended.calls if call.kind not in ("open", "unlink")] == []
