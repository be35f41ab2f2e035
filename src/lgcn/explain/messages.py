"""Messages between nodes in several worlds, as tensors [worlds, entries, width].

What `lgcn.explain.worlds` makes of them: the largest per row, sums over rows, the CNN of a grid.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.explain.secant import Differences
from lgcn.nn.grid_cnn import (
    Activation,
    DepthwiseKernel,
    GridCNN,
    GridConv,
    SharedKernel,
    grid_convolution,
)
from lgcn.ops import k_largest
from lgcn.ops.k_largest import Zeros


class Entries(NamedTuple):
    """Some rows of an adjacency, entry by entry."""

    rowptr: Tensor
    row: Tensor
    col: Tensor
    weight: Tensor | None
    edge: Tensor  # the number of the edge, -1 for a self-loop, whose message is never masked


def largest_messages(
    k: int, zeros: Zeros, rowptr: Tensor, messages: Tensor
) -> tuple[Tensor, Tensor]:
    """The k largest of each row in each world, and their entries, -1 for a zero that was filled in.

    Messages instead of nodes are selected: these are numbered, also if two edges are alike. The
    worlds stand one below the other in one adjacency.

    Args:
        k, zeros: See `lgcn.k_largest`.
        rowptr: The offsets of the entries.
        messages: [worlds, entries, width]
    """
    worlds, count, width = messages.shape
    first = torch.arange(worlds)[:, None] * count
    offsets = stacked(rowptr, worlds)
    number = torch.arange(worlds * count)
    with torch.no_grad():
        values, entry = k_largest(messages.reshape(-1, width), offsets, number, k, zeros=zeros)
    shape = (worlds, rowptr.numel() - 1, k, width)
    entry = entry.view(shape)
    return values.view(shape), torch.where(entry < 0, -1, entry - first[:, :, None, None])


def taken_from(messages: Tensor, entry: Tensor) -> Tensor:
    """The messages that were selected, [worlds, rows, k, width].

    Args:
        messages: [worlds, entries, width]
        entry: What was selected in each world, or in world 0 for all of them, see
            `largest_messages`.
    """
    worlds, count, width = messages.shape
    _, rows, k, _ = entry.shape
    if not count:
        return messages.new_zeros(worlds, rows, k, width)
    place = entry.long().clamp(min=0).reshape(len(entry), -1, width).expand(worlds, -1, -1)
    selected = messages.gather(1, place).view(worlds, rows, k, width)
    return torch.where(entry >= 0, selected, 0)


def stacked(rowptr: Tensor, worlds: int) -> Tensor:
    """The offsets of the same rows in each world, one world below the other."""
    first = torch.arange(worlds)[:, None] * rowptr[-1]
    return torch.cat([(rowptr[:-1] + first).flatten(), first[-1] + rowptr[-1]])


def add_up(entries: Entries, messages: Tensor) -> Tensor:
    worlds, _, width = messages.shape
    out = messages.new_zeros(worlds, entries.rowptr.numel() - 1, width)
    return out.index_add(1, entries.row, messages)


def row_weights(entries: Entries, dtype: torch.dtype) -> Tensor:
    """The sum of the weights in each row without their signs, 1 if it is zero; [rows, 1]."""
    if entries.weight is None:
        total = entries.rowptr.diff().to(dtype)
    else:
        total = torch.zeros(entries.rowptr.numel() - 1, dtype=dtype).index_add(
            0, entries.row, entries.weight.abs().to(dtype)
        )
    return torch.where(total == 0, 1, total)[:, None]


def convolve(cnn: Module | None, grid: Tensor, differences: Differences) -> Tensor:
    """The CNN of a grid, [worlds, rows, positions, features] to [worlds, rows, features]."""
    worlds, rows = grid.shape[:2]
    out = grid.flatten(0, 1).transpose(1, 2)
    if not isinstance(cnn, GridCNN):
        if not isinstance(cnn, SharedKernel | DepthwiseKernel):
            raise UsageError(f"a layer with a {type(cnn).__name__} as CNN cannot be explained")
        kept_apart: Tensor = cnn(out)
        return kept_apart.view(worlds, rows, -1)
    for module in cnn:
        if isinstance(module, GridConv):  # weights need no gradient
            bias = None if module.bias is None else module.bias.detach()
            out = grid_convolution(out, module.weight.detach(), bias)
        elif isinstance(module, Activation) and module.function is not None:
            shape = (worlds, rows, *out.shape[1:])
            out = differences.secant(module.function, out.reshape(shape)).flatten(0, 1)
    return out.view(worlds, rows, -1)
