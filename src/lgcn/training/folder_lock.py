"""A lock on a run folder: one process writes to it at a time.

The lock is on the folder itself (``flock``). It leaves no file, and the system releases it when the
process ends, even after a kill.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lgcn.errors import UsageError
from lgcn.utils.files import cannot_write, is_at, lock, remove_stale


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps all other processes from writing to the folder while the block runs.

    A missing folder is made. It is removed again if nothing is written to it.
    """
    if sys.platform == "win32":  # where folders cannot be opened
        yield
        return
    made = not folder.exists()
    handle = _lock(folder)
    try:
        remove_stale(folder)
        yield
    finally:
        if made:
            with suppress(OSError):  # it is not empty: something was written
                folder.rmdir()
        os.close(handle)


def _lock(folder: Path) -> int:
    """Opens and locks the folder; the lock lasts until the handle is closed."""
    while True:
        try:
            if not folder.exists():
                folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise cannot_write(folder, error) from error
        held = lock(handle)
        if held is None:
            warnings.warn(
                f"{folder} is on a file system without locks: make sure that no other process "
                "writes to the same run",
                stacklevel=5,
            )
        if held is not False and is_at(handle, folder.resolve()):
            return handle
        os.close(handle)
        if held is False:
            raise UsageError(
                f"another process is writing to the run in {folder}. Wait until it has ended, or "
                "choose another --out"
            )
