"""What is said where memory runs out: what it was for, and what needs less."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lgcn.errors import LGCNError, first_line_of, ran_out_of_memory


class OutOfMemory(LGCNError, torch.OutOfMemoryError):
    """There is too little memory; the message says for what, and what would need less."""


@contextlib.contextmanager
def needs_memory(what: str) -> Iterator[None]:
    """Names what ran out of memory, and what to change."""
    try:
        yield
    except OutOfMemory:  # what ran out inside knows better
        raise
    except (MemoryError, RuntimeError) as error:
        on_gpu = isinstance(error, torch.OutOfMemoryError)
        if not on_gpu and not ran_out_of_memory(error):
            raise
        raise OutOfMemory(
            f"not enough {'GPU ' if on_gpu else ''}memory for {what}. Less is needed by smaller "
            "sub-graphs (training=subgraph, a smaller max_nodes or subgraphs_per_batch)"
            f"{', by a smaller k, or on the CPU (device=cpu)' if on_gpu else ' or by a smaller k'}"
            f". The error was: {first_line_of(error)}"
        ) from error


def empty(
    name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """A tensor on the device of ``like``, and of its dtype unless another is given."""
    dtype = like.dtype if dtype is None else dtype
    gigabytes = torch.Size(shape).numel() * dtype.itemsize / 1e9
    with needs_memory(f"{name} = {list(shape)}, {gigabytes:.2f} GB"):
        return torch.empty(tuple(shape), dtype=dtype, device=like.device)
