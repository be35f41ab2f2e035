"""A folder that is written beside its place and takes it when it is complete."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from lgcn.errors import UsageError, WriteError
from lgcn.store.new_store_checks import STORE, FolderKind, check_target
from lgcn.utils.files import (
    NO_ROOM,
    cannot_write,
    exchange,
    is_at,
    lock,
    private_name,
    sync_folder,
)


class NewFolder:
    """A folder beside `path`, which takes that name when it is complete.

    Use it in a `with` statement: if the block ends before `take_name`, what was written is
    removed. What a killed writer left is removed by the next one for the same `path`.

    Args:
        path: Where the folder will be. Folders above it are created as needed.
        overwrite: Replace an existing folder of this kind, once the new one is complete.
            (default: `False`)
        kind: What the folder holds. (default: a store)
        shown: The path that messages name. (default: `path`)

    Attributes:
        folder: Where to write.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        overwrite: bool = False,
        kind: FolderKind = STORE,
        shown: Path | None = None,
    ) -> None:
        # Not resolve(), which follows a link at path itself: what it points to would be replaced.
        self.path = Path(path).absolute()
        self.shown = self.path if shown is None else shown
        if self.path.name in ("", ".."):
            raise UsageError(f"the path of a {kind.name} must end with a name, got {path}")
        self._overwrite = overwrite
        self._kind = kind
        self._lock: int | None = None
        check_target(self.path, overwrite, kind)
        with plain_errors(self.shown):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(self.path, kind)
            # Held until the end: it tells the next writer that this one is alive.
            self.folder, self._lock = _new_folder(self.path)

    def take_name(self) -> None:
        """Gives the folder its name. Its files must be synced."""
        check_target(self.path, self._overwrite, self._kind)
        if self.path.exists():
            exchange(self.folder, self.path)
            shutil.rmtree(self.folder, ignore_errors=True)  # which is the old one now
        else:
            self.folder.rename(self.path)
        self._unlock()
        sync_folder(self.path.parent)

    def __enter__(self) -> NewFolder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abandon()
        # An error of a scratch file names none.
        if isinstance(error, OSError) and (error.errno in NO_ROOM or error.filename is None):
            with plain_errors(self.shown):
                raise error

    def abandon(self) -> None:
        """Removes what was written, unless it has its name."""
        if self._lock is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._unlock()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turns an error of the system, such as a full disk, into a plain message."""
    try:
        yield
    except OSError as error:
        raise WriteError(f"{cannot_write(path, error)}. What was written is removed") from error


def _partial(path: Path) -> Path:
    return path.with_name(private_name(path.name, ".partial-*")[1])


def _new_folder(path: Path) -> tuple[Path, int]:
    """An empty folder beside `path`, and its lock."""
    while True:
        folder = _partial(path)
        folder.mkdir()
        # Another writer may have taken it for an abandoned one, before it was locked.
        handle, locked = _open(folder)
        if handle is not None:
            if locked is not False and is_at(handle, folder):
                return folder, handle
            os.close(handle)


def _remove_abandoned(path: Path, kind: FolderKind) -> None:
    """Removes what writers of `path` left that were killed; a living one holds a lock."""
    shared = private_name(path.name, ".partial-*")[0]
    for folder in path.parent.iterdir():
        named = folder.name.startswith(f"{shared}.partial-")
        if not named or folder.is_symlink() or not folder.is_dir() or kind.foreign(folder):
            continue
        handle, locked = _open(folder)
        if handle is not None:
            if locked:
                shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def _open(folder: Path) -> tuple[int | None, bool | None]:
    """A descriptor of the folder, if it is there, and whether it locks it (`lock`)."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except FileNotFoundError:
        return None, False
    return handle, lock(handle)
