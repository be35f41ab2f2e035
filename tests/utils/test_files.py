"""Files are written whole or not at all, whatever is there and whatever goes wrong."""

import errno
import json
import os
import resource
import signal
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lgcn.errors import CheckpointError, DataError, WriteError
from lgcn.utils import files
from lgcn.utils.files import atomic, is_stream, read_json, write_json
from lgcn.utils.limits import MAX_JSON, MAX_JSON_DEPTH, MIB


@pytest.fixture(params=[0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def fail_halfway(path: Path) -> None:
    with atomic(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError("disk on fire")


def test_the_file_appears_when_all_is_written(tmp_path: Path):
    path = tmp_path / "a" / "b.txt"  # folders are made
    with atomic(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
        assert temporary.parent == path.parent
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail_halfway(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_failure_leaves_no_file_where_there_was_none(tmp_path: Path):
    with pytest.raises(RuntimeError, match="disk on fire"):
        fail_halfway(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_permissions_follow_the_umask(tmp_path: Path, umask: int):
    write_json(tmp_path / "a.json", 1)
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == 0o666 & ~umask
    assert os.umask(umask) == umask  # writing has not changed it


def test_json_comes_back(tmp_path: Path):
    value = {"name": "Müller", "scores": [0.1, None, True], "best": float("inf")}
    write_json(tmp_path / "a.json", value)
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == value


def test_what_is_no_json_leaves_the_old_file(tmp_path: Path):
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == 1
    assert len(list(tmp_path.iterdir())) == 1


def write(path: Path, text: str, **options: bool) -> None:
    with atomic(path, **options) as temporary:
        temporary.write_text(text)


def leave_orphan(path: Path) -> None:
    """What a writer leaves that is killed while it writes."""
    if (child := os.fork()) == 0:
        with atomic(path) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path, mode: int):
    path = tmp_path / "a.txt"
    path.write_text("old")
    path.chmod(mode)
    with atomic(path) as temporary:
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600  # never readable by more
        temporary.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_umask_is_not_touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(os, "umask")
    write(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"


def test_the_folder_is_synced_after_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, synced = tmp_path / "a.txt", []
    plain = os.fsync

    def fsync(handle: int) -> None:
        synced.append((os.fstat(handle).st_ino, path.exists()))
        plain(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write(path, "new")
    assert synced == [(path.stat().st_ino, False), (tmp_path.stat().st_ino, True)]


@pytest.mark.parametrize("name", ["a" * 255, "é" * 127 + "x", "b" * 240 + ".csv"])
def test_names_of_any_length_work(tmp_path: Path, name: str):
    write(tmp_path / name, "new")
    leave_orphan(tmp_path / name)
    assert len(list(tmp_path.iterdir())) == 2
    write(tmp_path / name, "newer")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "newer"


def test_a_name_that_is_too_long_is_said_before_the_work(tmp_path: Path):
    with pytest.raises(WriteError, match="shorter name"), atomic(tmp_path / ("a" * 256)):
        pytest.fail("the work began")


@pytest.mark.parametrize("there", [True, False], ids=["file", "dangling"])
def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path, there: bool):
    target, link = tmp_path / "far" / "a.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    if there:
        target.write_text("old")
        target.chmod(0o600)
    link.symlink_to("far/a.txt")
    write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert list(target.parent.iterdir()) == [target]
    if there:
        assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_a_link_in_a_folder_of_strangers_is_not_followed(tmp_path: Path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "link").symlink_to("mine")
    write(tmp_path / "link", "new", follow=False)
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "link").is_symlink()
    assert (tmp_path / "link").read_text() == "new"


def test_a_circle_of_links_is_refused(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(WriteError, match=str(tmp_path / "a")):
        write(tmp_path / "a", "new")


def test_a_pipe_is_written_to_or_refused_and_never_replaced(tmp_path: Path):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(WriteError, match=f"{pipe}: it is a pipe"):
        write(pipe, "new")
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write(pipe, "new", streams=True)
    reader.join()
    assert got == ["new"]
    assert list(tmp_path.iterdir()) == [pipe]
    assert pipe.is_fifo()


def test_what_is_a_stream(tmp_path: Path):
    (tmp_path / "null").symlink_to("/dev/null")
    assert is_stream(Path("/dev/null"))
    assert is_stream(tmp_path / "null")
    assert is_stream(Path("/dev/stdout"))  # also where the shell sends it to a file
    assert not is_stream(tmp_path)
    assert not is_stream(tmp_path / "absent")
    assert not is_stream(Path("/dev/shm"))


def test_a_folder_is_refused_before_the_work(tmp_path: Path):
    with pytest.raises(WriteError, match="it is a folder"), atomic(tmp_path):
        pytest.fail("the work began")


def test_what_killed_writers_left_is_removed_by_the_next(tmp_path: Path):
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    leave_orphan(path)
    leave_orphan(other)
    mine = tmp_path / ".a.txt.mine.lgcn-tmp"
    mine.write_text("not of a writer")
    assert len(list(tmp_path.iterdir())) == 3
    write(path, "new")
    left = set(tmp_path.iterdir()) - {path, mine}
    assert [p.name.startswith(".b.txt.") for p in left] == [True]
    assert mine.exists()


def test_a_living_writer_is_left_alone(tmp_path: Path):
    path = tmp_path / "a.txt"
    with atomic(path) as first:
        first.write_text("first")
        write(path, "second")
        assert first.read_text() == "first"
    assert path.read_text() == "first"  # the last to end
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_removed_where_there_are_no_locks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    import fcntl

    def unsupported(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    leave_orphan(tmp_path / "a.txt")
    monkeypatch.setattr(fcntl, "flock", unsupported)
    write(tmp_path / "a.txt", "new")
    assert (tmp_path / "a.txt").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "not enough room on the disk.*Free some space"),
        (errno.EDQUOT, "not enough room"),
        (errno.EROFS, "folder that you may write to"),
        (errno.EIO, "Give another path"),
    ],
)
def test_an_error_in_writing_names_the_path_and_a_remedy(tmp_path: Path, number: int, remedy: str):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(WriteError, match=remedy) as caught, atomic(path):
        raise OSError(number, os.strerror(number))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_takes_no_more_is_an_error_with_the_path(tmp_path: Path):
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        with pytest.raises(WriteError, match=f"cannot write {tmp_path / 'a.json'}: File too large"):
            write_json(tmp_path / "a.json", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_without_permission_is_an_error_with_the_path(tmp_path: Path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    root = os.geteuid() == 0
    if root:  # whom modes do not stop
        tmp_path.chmod(0o711)
        os.seteuid(65534)
    try:
        with pytest.raises(WriteError, match=rf"{folder / 'a.txt'}: Permission denied.*may write"):
            write(folder / "a.txt", "new")
    finally:
        if root:
            os.seteuid(0)


def test_a_file_in_place_of_a_folder_is_an_error_with_the_path(tmp_path: Path):
    (tmp_path / "a").write_text("a file")
    with pytest.raises(WriteError, match=str(tmp_path / "a" / "b.txt")):
        write(tmp_path / "a" / "b.txt", "new")


def test_other_errors_in_the_block_stay_what_they_are(tmp_path: Path):
    with pytest.raises(FileNotFoundError), atomic(tmp_path / "a.txt"):
        (tmp_path / "elsewhere").read_text()
    with pytest.raises(ConnectionResetError), atomic(tmp_path / "a.txt"):
        raise ConnectionResetError(errno.ECONNRESET, "reset by peer")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 5000, "[" * 200 + "]" * 200])
def test_json_that_is_nested_deeply_is_refused(tmp_path: Path, content: str):
    (tmp_path / "a.json").write_text(content)
    message = rf"{tmp_path / 'a.json'} is damaged: .*at most {MAX_JSON_DEPTH} levels"
    with pytest.raises(CheckpointError, match=message):
        read_json(tmp_path / "a.json", CheckpointError)
    (tmp_path / "b.json").write_text("[" * MAX_JSON_DEPTH + "]" * MAX_JSON_DEPTH)
    read_json(tmp_path / "b.json")


def test_json_that_is_too_large_is_not_read(tmp_path: Path):
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(MAX_JSON + 1)
    with pytest.raises(DataError, match=r"a\.json is damaged: it must .*64 MiB"):
        read_json(tmp_path / "a.json")


def test_json_is_read_from_plain_files_alone(tmp_path: Path):
    os.mkfifo(tmp_path / "a.json")  # which would wait for a writer
    (tmp_path / "b.json").symlink_to("/dev/zero")  # which has no end
    for name in ("a.json", "b.json"):
        with pytest.raises(DataError, match=rf"{name} is damaged: it must .*file"):
            read_json(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "absent.json")


def test_private_names_fit_and_are_those_of_one_file():
    short, new = files.private_name("a.csv", ".*.lgcn-tmp")
    assert short == "a.csv"
    assert new.startswith("a.csv.")
    long = {files.private_name("é" * 127 + end, ".*.lgcn-tmp")[0] for end in "ab"}
    assert len(long) == 2
    assert all(len(name.encode()) < 240 for name in long)


def test_json_that_could_not_be_read_again_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_JSON", 2 * MIB)
    write_json(tmp_path / "a.json", "x" * MIB)
    with pytest.raises(WriteError, match=r"a.json would have 2 MiB"):
        write_json(tmp_path / "a.json", "x" * (2 * MIB))
    assert read_json(tmp_path / "a.json") == "x" * MIB


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")
def test_a_folder_that_takes_no_files_is_said_plainly() -> None:
    with (
        pytest.raises(WriteError, match=r"cannot write /proc/x\.csv: .*Give another path"),
        atomic(Path("/proc/x.csv")),
    ):
        pass
