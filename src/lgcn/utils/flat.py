"""Arrays side by side in one block of bytes, so that one copy moves all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

# Vector loads of a GPU want 16 bytes; its allocator aligns arrays to this.
ALIGNMENT = 256


class Place(NamedTuple):
    """Where an array is in the block."""

    start: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class FlatArrays:
    """Named arrays of fixed shapes in a block of bytes.

    Args:
        arrays: Shape and type of each array.
    """

    def __init__(self, arrays: Mapping[str, tuple[tuple[int, ...], torch.dtype]]) -> None:
        self.places: dict[str, Place] = {}
        start = 0
        for name, (shape, dtype) in arrays.items():
            self.places[name] = Place(start, shape, dtype)
            size = math.prod(shape) * dtype.itemsize
            start += -(-size // ALIGNMENT) * ALIGNMENT
        self.num_bytes = start

    def empty(self, device: torch.device | str = "cpu", *, pinned: bool = False) -> Tensor:
        """A new block, with any contents."""
        return torch.empty(self.num_bytes, dtype=torch.uint8, device=device, pin_memory=pinned)

    def views(self, block: Tensor) -> dict[str, Tensor]:
        """The arrays in a block, which they share."""
        found = {}
        for name, (start, shape, dtype) in self.places.items():
            end = start + math.prod(shape) * dtype.itemsize
            found[name] = block[start:end].view(dtype).view(shape)
        return found

    def arrays(self, block: Tensor) -> dict[str, Any]:
        """The same as NumPy arrays, of a block on the CPU. That is faster for many small arrays."""
        data, found = block.numpy(), {}
        for name, (start, shape, dtype) in self.places.items():
            end = start + math.prod(shape) * dtype.itemsize
            found[name] = data[start:end].view(_numpy_dtype(dtype)).reshape(shape)
        return found


@cache
def _numpy_dtype(dtype: torch.dtype) -> Any:
    return torch.empty(0, dtype=dtype).numpy().dtype
