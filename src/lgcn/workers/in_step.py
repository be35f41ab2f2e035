"""Work that all ranks do, and that fails on all of them if it fails on one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lgcn.errors import DataError, LGCNError
from lgcn.workers.group import Workers


@contextmanager
def together(workers: Workers, what: str) -> Iterator[None]:
    """Runs a block on all ranks. If it fails on one, the others say so instead of waiting for it.

    Args:
        workers: The ranks, which all enter the block. It must not exchange messages.
        what: What the block does, for errors.
    """
    try:
        yield
    except LGCNError as error:
        workers.collect(str(error), what)
        raise
    for rank, message in enumerate(workers.collect(None, what)):
        if message is not None:
            raise DataError(f"rank {rank} failed ({what}): {message}")
