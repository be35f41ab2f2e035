"""Files that are written completely or not at all, JSON that is read with limits, and locks.

A file is written to a temporary file beside it, `.NAME.XXXXXXXX.lgcn-tmp`, which is renamed when
it is complete. The writer holds a lock on the temporary file. One that a killed writer left is not
locked, and the next writer of the same file removes it.
"""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

from lgcn.errors import DataError, LGCNError, WriteError
from lgcn.utils.limits import MAX_JSON, MAX_JSON_DEPTH, MIB

SUFFIX = ".lgcn-tmp"
NAME_MAX = 255  # bytes of a file name
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
NO_ACCESS = (errno.EACCES, errno.EPERM, errno.EROFS)
# Errors of writing whose message can lack the path.
_WRITING = (*NO_ROOM, *NO_ACCESS, errno.EIO, errno.EFBIG, errno.EPIPE)
# Errors of file systems without locks. NFS has no locks on folders, and answers EBADF.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
_STREAMS = re.compile("/dev/(stdout|stderr|fd/.*)|/proc/.*")


@contextmanager
def atomic(path: Path, *, follow: bool = True, streams: bool = False) -> Iterator[Path]:
    """Yields a temporary path beside `path` that replaces it if no exception is raised.

    A file that is replaced keeps its mode. The folder is synced, so that the file survives a power
    failure. If writing fails, `lgcn.errors.WriteError` names the path and a remedy.

    Args:
        path: The file. Parent folders are created as needed.
        follow: If `path` is a link, replace its target and keep the link. Use `False` in
            folders that may come from a stranger, where a link could point anywhere: it replaces
            the link. (default: `True`)
        streams: If `path` is a pipe or a device such as `/dev/stdout`, yield `path` itself,
            to be written from start to end. (default: refuse it)
    """
    concerned = [path, *path.parents]
    with _plain_errors(path, concerned):
        target = Path(os.path.realpath(path)) if follow and path.is_symlink() else path
        concerned += [target, *target.parents]
        status = _status(target)  # of what is replaced, even if that is a link
        if is_stream(path if follow else target):
            if not streams:
                raise WriteError(f"cannot write {path}: it is a pipe or a device. Give a file name")
            yield path
            return
        if status is not None and not (
            stat.S_ISREG(status.st_mode) or (not follow and stat.S_ISLNK(status.st_mode))
        ):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not a file"
            raise WriteError(f"cannot write {path}: it is {kind}. Give another name")
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_stale(target.parent, target.name)
        # The new content must not be readable by more users than the old.
        replaced = status if status is not None and stat.S_ISREG(status.st_mode) else None
        try:
            temporary, handle = _create(target, 0o666 if replaced is None else 0o600)
        except OSError as error:  # its path is not among those concerned yet
            raise cannot_write(path, error) from error
        concerned.append(temporary)
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, handle)
            stack.callback(temporary.unlink, missing_ok=True)
            yield temporary
            _take_place(temporary, target, replaced)


@contextmanager
def replaced_folder(path: Path) -> Iterator[Path]:
    """Yields a new folder beside `path` that replaces it in one step if no exception is raised.

    Until then the old folder is unchanged. It is removed with everything in it.
    """
    path = path.resolve()
    remove_stale(path.parent, path.name)
    new = path.with_name("." + private_name(path.name, f".*{SUFFIX}")[1])
    with _plain_errors(path, [path, *path.parents, new]):
        new.mkdir(stat.S_IMODE(path.stat().st_mode))
        handle = os.open(new, os.O_RDONLY)
        try:
            lock(handle)
            yield new
            sync_folder(new)
            exchange(new, path)
            sync_folder(path.parent)
        finally:
            shutil.rmtree(new, ignore_errors=True)  # which is the old one now
            os.close(handle)


def exchange(new: Path, old: Path) -> None:
    """Swaps two folders in one step, so that a killed process leaves one of them at `old`.

    A rename cannot replace a folder that has files. Systems that cannot swap need three renames:
    for a moment nothing is at `old`, but there is never a mixture.
    """
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is not None:
        here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        if rename(here, os.fsencode(new), here, os.fsencode(old), swap) == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL):  # errors of file systems without it
            raise OSError(number, os.strerror(number), str(old))
    aside = old.with_name("." + private_name(old.name, f".*{SUFFIX}")[1])
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    aside.rename(new)


def write_json(path: Path, value: Any, *, follow: bool = True) -> None:
    data = (json.dumps(value, indent=2) + "\n").encode()
    if len(data) > MAX_JSON:
        raise WriteError(
            f"{path} would have {len(data) // MIB} MiB, and at most {MAX_JSON // MIB} can be read "
            "again: use fewer or shorter names of classes and words"
        )
    with atomic(path, follow=follow) as temporary:
        temporary.write_bytes(data)


def read_json(path: Path, kind: type[LGCNError] = DataError, limit: int = MAX_JSON) -> Any:
    """The content of a JSON file that anyone may have written.

    A missing file is a `FileNotFoundError`. Any other failure is an error of `kind`.
    """
    try:
        with open_plain(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise ValueError(f"it must have at most {limit // MIB} MiB")
            data = file.read(size)  # allocates the memory at once
        return parse_json(data)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise kind(f"{path} is damaged: {_reason(error)}") from error


def parse_json(data: bytes, *, finite: bool = False) -> Any:
    """The value of a JSON text. Raises ValueError if it is invalid or nested too deeply.

    Args:
        data: The text in UTF-8.
        finite: Refuse NaN and infinity, which are not valid JSON. (default: `False`)
    """
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=_no_constant if finite else None)
        too_deep = _is_deeper(value, MAX_JSON_DEPTH)
    except RecursionError:
        too_deep = True
    if too_deep:
        raise ValueError(f"it must have at most {MAX_JSON_DEPTH} levels of lists and objects")
    return value


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    for _ in range(depth + 1):
        nodes = [node for node in level if isinstance(node, dict | list)]
        level = [x for node in nodes for x in (node.values() if isinstance(node, dict) else node)]
    return bool(level)


def open_plain(path: Path) -> BufferedReader:
    """Opens a file for reading. Raises ValueError for a pipe or device, which might never end."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ValueError("it must be a plain file")
    return os.fdopen(handle, "rb")


def is_stream(path: Path) -> bool:
    """Whether `path` is a pipe or a device, which is written to and never replaced."""
    if _STREAMS.fullmatch(str(path.absolute())):
        return path.exists()
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def cannot_write(path: Path, error: OSError) -> WriteError:
    """The error to raise if `path` could not be written."""
    if error.errno in NO_ROOM:
        return WriteError(
            f"there is not enough room on the disk to write {path}. Free some space, or give a "
            "path on another disk"
        )
    where = "" if error.filename in (None, str(path)) else f" ({error.filename})"
    remedy = "Give another path"
    if error.errno in NO_ACCESS:
        remedy = "Give a path in a folder that you may write to"
    elif error.errno == errno.ENAMETOOLONG:
        remedy = "Give a shorter name"
    elif error.errno == errno.EPIPE:
        remedy = "The program that reads from it ended too early"
    return WriteError(f"cannot write {path}: {error.strerror or error}{where}. {remedy}")


def private_name(name: str, ending: str) -> tuple[str, str]:
    """The common prefix of the temporary names of a file, and a new one of them.

    The prefix is the name of the file, shortened if both together are too long for a file name.
    """
    room = NAME_MAX - len(ending.encode()) - 20
    encoded = os.fsencode(name)
    if len(encoded) > room:
        digest = hashlib.sha256(encoded).hexdigest()[:8]
        name = encoded[: room - 9].decode("utf-8", "ignore") + "~" + digest
    return name, f"{name}{ending.replace('*', secrets.token_hex(4))}"


def remove_stale(folder: Path, name: str | None = None) -> None:
    """Removes temporary files and folders whose writers were killed.

    Args:
        folder: The folder.
        name: Only those of this file. (default: all)
    """
    shared = ".*" if name is None else re.escape(private_name(name, f".*{SUFFIX}")[0])
    pattern = re.compile(rf"\.{shared}\.[0-9a-f]{{8}}{re.escape(SUFFIX)}", re.DOTALL)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        stale = [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
        for path in stale:
            with contextlib.suppress(OSError):
                is_folder = stat.S_ISDIR(path.lstat().st_mode)
                flags = os.O_RDONLY if is_folder else os.O_RDWR
                flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
                handle = os.open(path, flags)
                try:
                    if lock(handle):
                        shutil.rmtree(path) if is_folder else path.unlink()
                finally:
                    os.close(handle)


def lock(handle: int) -> bool | None:
    """Locks an open file or folder until the descriptor is closed, or the process ends.

    Returns `False` if another process has locked it, `None` if the file system has no locks.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        raise
    return True


def is_at(handle: int, path: Path) -> bool:
    """Whether `path` still names the open file or folder."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except OSError:
        return False


def sync(path: Path) -> None:
    """Waits until a file or the entries of a folder are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Like `sync`, but ignores systems that cannot sync this folder."""
    try:
        sync(path)
    except OSError as error:
        if error.errno not in (*NO_ACCESS, errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise


def _create(target: Path, mode: int) -> tuple[Path, int]:
    """A new file beside `target`, and a descriptor that locks it."""
    while True:
        temporary = target.with_name("." + private_name(target.name, f".*{SUFFIX}")[1])
        # The kernel applies the umask to the mode; asking for it would change it for a moment.
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
        # Another writer may have removed it as abandoned before it was locked.
        if lock(handle) is not False and is_at(handle, temporary):
            return temporary, handle
        os.close(handle)


def _take_place(temporary: Path, target: Path, replaced: os.stat_result | None) -> None:
    sync(temporary)
    if replaced is not None:
        with contextlib.suppress(OSError):  # only root can keep another owner
            os.chown(temporary, replaced.st_uid, replaced.st_gid)
        temporary.chmod(stat.S_IMODE(replaced.st_mode) & 0o777)
    temporary.replace(target)
    sync_folder(target.parent)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


@contextmanager
def _plain_errors(path: Path, concerned: list[Path]) -> Iterator[None]:
    """Turns errors of the files in `concerned` into one line with a remedy."""
    try:
        yield
    except OSError as error:
        named = error.filename is not None and Path(os.fsdecode(error.filename)) in concerned
        if named or (error.filename is None and error.errno in _WRITING):
            raise cannot_write(path, error) from error
        raise


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
