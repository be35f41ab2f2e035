"""Tensors that all processes of a group need."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

from lgcn.workers.group import Workers

_DTYPES = {str(d): d for d in (torch.float32, torch.float64, torch.int64, torch.int32, torch.bool)}


def gather(workers: Workers, tensor: Tensor, what: str) -> list[Tensor]:
    """The tensors of all ranks, in the order of the ranks, on each rank.

    They may have different numbers of rows, and are on the CPU.
    """
    return workers.exchange([tensor] * workers.size, what)


def share_tensors(
    workers: Workers, tensors: Mapping[str, Tensor] | None, what: str
) -> dict[str, Tensor]:
    """The named tensors of rank 0, on all ranks, which give `None`."""
    listed = None
    if tensors is not None:
        listed = [[name, str(value.dtype), list(value.shape)] for name, value in tensors.items()]
    listed = workers.share(listed, what)
    data = torch.empty(0, dtype=torch.uint8)
    if tensors is not None:
        data = torch.cat([_bytes(value) for value in tensors.values()] or [data])
    parts = [data if workers.is_first else data[:0] for _ in range(workers.size)]
    data = workers.exchange(parts, what)[0]
    found, place = {}, 0
    for name, dtype, shape in listed:
        size = math.prod(shape) * _DTYPES[dtype].itemsize
        part = data[place : place + size].clone()  # so that it is aligned
        found[name] = part.view(_DTYPES[dtype]).reshape(shape)
        place += size
    return found


def _bytes(value: Tensor) -> Tensor:
    return value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
