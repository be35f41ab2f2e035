"""What the processes of a group leave for each other in torch's key-value store.

It is read when something went wrong: to say which rank is missing, and why one stopped.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import Any

from lgcn.workers.limited import within

READING = 5.0  # seconds in which the store must answer; then it counts as gone
WORD = 1.0  # seconds in which other ranks that wait in vain should say so as well


class Board:
    """Notes of all ranks: what each waits for, and why it stopped.

    Args:
        store: The `Store` of the group, with a prefix that no earlier group had.
        rank: This process.
        size: The number of processes.
    """

    def __init__(self, store: Any, rank: int, size: int) -> None:
        self._store, self.rank, self.size = store, rank, size
        self._is_gone = False

    def waits(self, what: str) -> None:
        """Notes what this rank waits for. It takes two microseconds."""
        self._write("waits", what)

    def stopped(self, why: str) -> None:
        """Notes why this rank leaves the group, such as "finished"."""
        self._write("stopped", why)

    def explanation(self) -> str:
        """Which ranks are the cause of a wait in vain, and why; empty if no rank is missing."""
        self._write("gave up", "")  # so that the others know that this one is alive
        try:
            return within(READING, self._explanation)
        except (RuntimeError, OSError):
            self._is_gone = True
            return "the store of the group is gone: rank 0 or the launcher ended, see its output"

    def _explanation(self) -> str:
        _check_address()  # torch would print a page if the store is gone
        stop = time.monotonic() + WORD
        while True:
            if stopped := self._read("stopped"):
                return ", ".join(f"rank {rank} {why}" for rank, why in stopped.items())
            heard = {self.rank, *self._read("gave up")}
            silent = [rank for rank in range(self.size) if rank not in heard]
            if not silent or time.monotonic() > stop:
                break
            time.sleep(0.05)
        waits = self._read("waits")
        return ", ".join(
            f"rank {rank} is missing, which "
            + (f"last waited for {waits[rank]}" if rank in waits else "did not wait for anything")
            for rank in silent
        )

    def _write(self, kind: str, text: str) -> None:
        if not self._is_gone:
            with contextlib.suppress(RuntimeError):  # the wait itself will fail, and be explained
                self._store.set(f"{kind} {self.rank}", text)

    def _read(self, kind: str) -> dict[int, str]:
        """The notes of a kind that other ranks wrote."""
        keys = {rank: f"{kind} {rank}" for rank in range(self.size) if rank != self.rank}
        return {
            rank: str(self._store.get(key).decode())
            for rank, key in keys.items()
            if self._store.check([key])
        }


def _check_address() -> None:
    """Raises OSError if nobody answers where the launcher said that the store is."""
    host, port = os.environ.get("MASTER_ADDR"), os.environ.get("MASTER_PORT", "")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), READING).close()
