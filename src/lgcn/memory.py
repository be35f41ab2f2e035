"""Out of memory, said so that one knows what to change."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lgcn.errors import LGCNError


class OutOfMemory(LGCNError, torch.OutOfMemoryError):
    """A GPU has too little memory; the message says for what, and what would need less."""


@contextlib.contextmanager
def needs_memory(what: str) -> Iterator[None]:
    """Names what ran out of memory, and what to change."""
    try:
        yield
    except OutOfMemory:  # what ran out inside knows better
        raise
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(
            f"not enough GPU memory for {what}. Less is needed by smaller sub-graphs "
            "(training=subgraph, a smaller max_nodes or subgraphs_per_batch), by a smaller k, or "
            f"on the CPU (device=cpu). torch says: {str(error).splitlines()[0]}"
        ) from error


def empty(
    name: str, shape: Sequence[int], like: Tensor, dtype: torch.dtype | None = None
) -> Tensor:
    """A tensor on the device of ``like``, and of its dtype unless another is given."""
    dtype = like.dtype if dtype is None else dtype
    gigabytes = torch.Size(shape).numel() * dtype.itemsize / 1e9
    with needs_memory(f"{name} = {list(shape)}, {gigabytes:.2f} GB"):
        return torch.empty(tuple(shape), dtype=dtype, device=like.device)
