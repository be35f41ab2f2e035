"""The error for running out of memory: it says what needed it, and what needs less."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lgcn.errors import LGCNError, first_line_of, ran_out_of_memory


class OutOfMemory(LGCNError, torch.OutOfMemoryError):
    """Not enough memory. The message says for what, and what needs less."""


@contextlib.contextmanager
def needs_memory(what: str) -> Iterator[None]:
    """Turns running out of memory into an error that names `what` and a remedy."""
    try:
        yield
    except OutOfMemory:  # the inner context knows better
        raise
    except (MemoryError, RuntimeError) as error:
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        if not on_gpu and not ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"not enough {'GPU ' if on_gpu else ''}memory for {what}. Use smaller "
            "sub-graphs (training=subgraph, a smaller max_nodes or subgraphs_per_batch)"
            f"{', a smaller k, or the CPU (device=cpu)' if on_gpu else ' or a smaller k'}"
            f". The error was: {first_line_of(error)}"
        ) from error


def empty(
    name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """An uninitialised tensor on the device of `like`, by default of its dtype."""
    dtype = like.dtype if dtype is None else dtype
    gigabytes = torch.Size(shape).numel() * dtype.itemsize / 1e9
    with needs_memory(f"{name} = {list(shape)}, {gigabytes:.2f} GB"):
        return torch.empty(tuple(shape), dtype=dtype, device=like.device)
