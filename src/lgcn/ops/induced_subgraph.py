"""Induced sub-graphs of a CSR adjacency, at the cost of the nodes and edges they touch.

Most entries of the rows that are read lead out of the sub-graph. So each is first looked up in a
filter of a few kilobytes, one bit per value of the node number's lower bits. Only entries that pass
are searched for in a hash table of the nodes. Both grow with the sub-graph, not with the graph.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np
import torch
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.extending import intrinsic
from torch import Tensor

from lgcn.ops.structure import check_range
from lgcn.utils.jit import jit
from lgcn.utils.limits import MAX_INT32

_INT = ir.IntType(32)
_BYTES = ir.IntType(8).as_pointer()
_PREFETCH = ir.FunctionType(ir.VoidType(), [_BYTES, _INT, _INT, _INT])

# A sub-graph of at least an eighth of the nodes has a place for every node instead of a table.
_PLACES = 8
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # Fibonacci hashing: the upper bits of a product
_BLOCK = 32  # rows fetched ahead: enough to overlap their cache misses, few enough to stay cached
_LINE = 16  # entries of a cache line
_FETCHED = 128  # entries of a row that are fetched ahead; the processor sees the rest coming
_PASSED = 2048  # entries that pass the filter before they are searched for
_ROW, _ENTRY = np.uint64(48), np.uint64((1 << 48) - 1)


def induced_subgraph(rowptr: Tensor, col: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The adjacency among `nodes`: (rowptr, col, entry). `entry` are places in `col`."""
    index = nodes.detach().cpu().numpy()
    num_nodes = rowptr.numel() - 1
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ValueError(
            f"nodes must be a list of node numbers, got {index.dtype} in shape {list(index.shape)}"
        )
    index = np.ascontiguousarray(index, np.int64)
    if index.size and not 0 <= index.min() <= index.max() < num_nodes:
        raise ValueError(
            f"nodes must lie between 0 and {num_nodes - 1}, got {index.min()} to {index.max()}"
        )
    check_range(rowptr, col, num_nodes)
    cut = _induced
    if index.size > MAX_INT32:  # the table numbers nodes in 32 bits
        cut, col = _cut_with_places, col.long()
    new_rowptr, new_col, entry, twice = cut(_array(rowptr), _array(col), index)
    if twice >= 0:
        raise ValueError(f"nodes must be distinct, got {twice} twice")
    device = rowptr.device
    return (
        torch.from_numpy(new_rowptr).to(device),
        torch.from_numpy(new_col).to(device),
        torch.from_numpy(entry).to(device),
    )


def _array(tensor: Tensor) -> Any:
    """A contiguous array, the only kind that the kernels are compiled for."""
    return tensor.detach().cpu().contiguous().numpy()


@intrinsic
def fetch_ahead(typing_context: Any, array: Any, place: Any) -> Any:
    """Asks for the cache line of array[place], which may lie outside the array, without waiting."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), _BYTES)
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [_BYTES], _PREFETCH)
        # To read it, to keep it in all caches, and it is data.
        builder.call(prefetch, [address, _INT(0), _INT(3), _INT(1)])
        return context.get_dummy_value()

    return types.void(array, types.uint64), generate


@jit
def _cut_with_places(rowptr: Any, col: Any, nodes: Any) -> Any:
    place = np.full(rowptr.shape[0] - 1, -1, np.int64)
    twice = np.int64(-1)
    for new, node in enumerate(nodes):
        if place[node] >= 0:
            twice = node
        place[node] = new
    new_rowptr = np.zeros(nodes.shape[0] + 1, rowptr.dtype)
    if twice >= 0:  # rows that come twice may have more entries than the offsets can count
        return new_rowptr, np.empty(0, col.dtype), np.empty(0, np.int64), twice
    for new, node in enumerate(nodes):
        count = 0
        for e in range(rowptr[node], rowptr[node + 1]):
            count += place[col[e]] >= 0
        new_rowptr[new + 1] = new_rowptr[new] + count
    new_col = np.empty(new_rowptr[-1], col.dtype)
    entry = np.empty(new_rowptr[-1], np.int64)
    at = 0
    for node in nodes:
        for e in range(rowptr[node], rowptr[node + 1]):
            new = place[col[e]]
            if new >= 0:
                new_col[at] = new
                entry[at] = e
                at += 1
    return new_rowptr, new_col, entry, twice


@jit
def node_hash(node: Any, shift: Any) -> Any:
    """The first place to look in a hash table of 2 ** (64 - shift) places."""
    return (np.uint64(node) * _FACTOR) >> shift


@jit
def _make_table(nodes: Any, bits: int) -> Any:
    """An open hash table of places in `nodes`, at most half full; and a node met twice, or -1."""
    table = np.full(1 << bits, -1, np.int32)
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    twice = np.int64(-1)
    for new in range(nodes.shape[0]):
        at = node_hash(nodes[new], shift)
        while table[at] >= 0:
            if nodes[table[at]] == nodes[new]:
                twice = nodes[new]
            at = (at + np.uint64(1)) & mask
        table[at] = new
    return table, twice


@jit
def _make_filter(nodes: Any, bits: int) -> Any:
    passes = np.zeros(1 << (bits - 6), np.uint64)
    mask = np.uint64((1 << bits) - 1)
    for node in nodes:
        bit = np.uint64(node) & mask
        passes[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    return passes


@jit
def longer(values: Any, used: int, size: int) -> Any:
    """An array of `size` values that starts with the first `used` ones."""
    result = np.empty(size, values.dtype)
    result[:used] = values[:used]
    return result


@jit
def _begin_rows(rowptr: Any, col: Any, nodes: Any, first: int, rows: Any) -> Any:
    """Where the rows of the next nodes start and stop, and how many; they are fetched ahead."""
    count = min(_BLOCK, nodes.shape[0] - first)
    for i in range(count):
        node = np.uint64(nodes[first + i])
        start, stop = np.uint64(rowptr[node]), np.uint64(rowptr[node + np.uint64(1)])
        rows[i, 0], rows[i, 1] = start, stop
        fetch_ahead(col, stop)
        end = min(stop, start + np.uint64(_FETCHED))
        while start < end:
            fetch_ahead(col, start)
            start += np.uint64(_LINE)
    for i in range(first + count, min(first + 2 * count, nodes.shape[0])):
        fetch_ahead(rowptr, np.uint64(nodes[i]))
    return np.uint64(count)


@jit
def _cut_with_table(rowptr: Any, col: Any, nodes: Any) -> Any:
    """Indices are unsigned because Numba tests signed ones for being negative."""
    bits = 2
    while (1 << bits) < 2 * nodes.shape[0]:
        bits += 1
    table, twice = _make_table(nodes, bits)
    shift, mask = np.uint64(64 - bits), np.uint64((1 << bits) - 1)
    passes = _make_filter(nodes, bits + 4)  # 32 or more bits per node, of which one is set
    filter_mask = np.uint64((1 << (bits + 4)) - 1)
    one = np.uint64(1)

    size = 2 * nodes.shape[0] + _PASSED  # small enough for memory that was used before
    new_rowptr = np.zeros(nodes.shape[0] + 1, rowptr.dtype)
    new_col, entry = np.empty(size, col.dtype), np.empty(size, np.int64)
    rows = np.empty((_BLOCK, 2), np.uint64)
    passed = np.empty(_PASSED, np.uint64)  # an entry, and above its bits the row in the block
    at = np.int64(0)
    for first in range(0, nodes.shape[0], _BLOCK):
        count = _begin_rows(rowptr, col, nodes, first, rows)
        i = np.uint64(0)
        e, stop = rows[0, 0], rows[0, 1]
        while i < count:
            found = np.uint64(0)
            # One loop over rows and entries: the inner of two would be unrolled, which costs short
            # rows more in mispredicted jumps than it saves.
            while found < np.uint64(_PASSED):
                if e == stop:
                    i += one
                    if i == count:
                        break
                    e, stop = rows[i, 0], rows[i, 1]
                    continue
                bit = np.uint64(col[e]) & filter_mask
                passed[found] = e | (i << _ROW)  # no jump: what passes cannot be foreseen
                found += (passes[bit >> np.uint64(6)] >> (bit & np.uint64(63))) & one
                e += one
            if at + _PASSED > size:
                size *= 2
                new_col, entry = longer(new_col, at, size), longer(entry, at, size)
            for j in range(found):
                place = passed[j] & _ENTRY
                neighbor = np.int64(col[place])
                h = node_hash(neighbor, shift)
                new = table[h]
                while new >= 0 and nodes[new] != neighbor:
                    h = (h + one) & mask
                    new = table[h]
                if new >= 0:
                    new_col[at], entry[at] = new, place
                    new_rowptr[np.uint64(first + 1) + (passed[j] >> _ROW)] += 1
                    at += 1
    for row in range(nodes.shape[0]):
        new_rowptr[row + 1] += new_rowptr[row]
    return new_rowptr, new_col[:at].copy(), entry[:at].copy(), twice


@jit
def _induced(rowptr: Any, col: Any, nodes: Any) -> Any:
    if rowptr.shape[0] - 1 <= _PLACES * nodes.shape[0]:
        return _cut_with_places(rowptr, col, nodes)
    return _cut_with_table(rowptr, col, nodes)
