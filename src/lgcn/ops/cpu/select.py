"""The k-largest selection on the CPU, in Numba.

Neighbours are sorted a tile at a time, by the networks of `networks.py`, and merged into the groups
of the best so far, which are sorted as well. The lanes are features; with few features, they are
those of several rows side by side.

What lies below a candidate's key is the complement of `position << id_bits | id`: it is negative,
and ties go to the earlier position. Zero says that the candidate was filled in. A row that is too
long for both numbers goes without the ids, which are looked up at the end.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np

from lgcn.ops.cpu import networks, simd
from lgcn.ops.cpu.networks import GROUP, TILE, WORDS
from lgcn.ops.cpu.simd import CACHE_LINE
from lgcn.utils.jit import jit_inlined, jit_parallel, jit_part
from lgcn.utils.share import share

# Hash of networks.py and simd.py. Numba recompiles a kernel only when this file changes, so a
# change of those has to change this line.
NETWORKS_DIGEST = "28c7891cbaff14d2"

# Of few features: neighbours of a row that are brought together before they are sorted, the values
# of a block of rows, and the classes of degrees by which a block is ordered.
STAGED = 64
BLOCK_BYTES = 1 << 16
CLASSES = 64


@jit_parallel
def k_largest(
    x: Any,
    channels: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    k: int,
    compete: bool,
    chunks: Any,
    own_bits: Any,
    last_bits: Any,
    value_bits: Any,
    chosen: Any,
    id_size: int,
    node_ids: bool,
    id_bits: int,
    longest_with_id: int,
    lowest_key: Any,
    streams: bool,
    part: Any,
) -> None:
    """Selects, all arrays flat, one row after the other.

    Args:
        chosen: What is selected, as bytes.
        id_size: Bytes of each integer in there.
        node_ids: Whether node ids are stored, not positions.
        id_bits: Bits of the largest node id.
        longest_with_id: Degree up to which positions leave so many bits; 0 without node ids.
        lowest_key: The smallest integer of the size of the features.
        streams: Whether the result is stored past the caches.
    """
    for chunk in share(chunks.shape[0] - 1, part):
        _select(
            x, channels, rowptr, col, weight, k, compete, chunks[chunk], chunks[chunk + 1],
            own_bits, last_bits, value_bits, chosen, id_size, node_ids, id_bits,
            longest_with_id, lowest_key, streams,
        )  # fmt: skip


@jit_parallel
def k_largest_narrow(
    x: Any,
    channels: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    k: int,
    compete: bool,
    chunks: Any,
    own_bits: Any,
    last_bits: Any,
    value_bits: Any,
    chosen: Any,
    id_size: int,
    node_ids: bool,
    id_bits: int,
    longest_with_id: int,
    lowest_key: Any,
    streams: bool,
    part: Any,
) -> None:
    """As `k_largest`, for at most as many features as half of a cache line has."""
    for chunk in share(chunks.shape[0] - 1, part):
        _select_narrow(
            x, channels, rowptr, col, weight, k, compete, chunks[chunk], chunks[chunk + 1],
            own_bits, last_bits, value_bits, chosen, id_size, node_ids, id_bits,
            longest_with_id, lowest_key, streams,
        )  # fmt: skip


@jit_part
def _select(
    x: Any,
    channels: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    k: int,
    compete: bool,
    begin: int,
    end: int,
    own_bits: Any,
    last_bits: Any,
    value_bits: Any,
    chosen: Any,
    id_size: int,
    node_ids: bool,
    id_bits: int,
    longest_with_id: int,
    lowest_key: Any,
    streams: bool,
) -> None:
    lanes = simd.per_line(x)
    like, zero = simd.line_of_zeros(x), simd.line_of_zeros(value_bits)
    none, lowest = simd.filled(zero, -1), simd.filled(zero, lowest_key)
    num_own, num_last = min(own_bits.shape[0], 1), min(last_bits.shape[0], 1)
    slots = num_own + k + num_last
    groups = (k + TILE - 1) // TILE
    tile = groups * GROUP
    work = _aligned(tile + GROUP, np.int64)
    row_values, row_bytes = slots * channels, k * channels * id_size
    values, ids = _aligned(row_values, value_bits.dtype), _aligned(row_bytes, np.uint8)
    nowhere = simd.filled(simd.line_of_zeros(ids), 255)  # -1 in integers of any size
    lean = num_last == 0
    for i in range(begin, end):
        start, degree = rowptr[i], rowptr[i + 1] - rowptr[i]
        kept = min(degree, k)
        has_id = degree <= longest_with_id
        shift = id_bits if has_id else 0
        mask = simd.filled(zero, (1 << shift) - 1 if has_id else -1)
        # From the last features to the first: a whole vector is stored of them, and what that
        # writes too much, into the next slot, is written again.
        for c in range((channels - 1) // lanes * lanes, -1, -lanes):
            width = min(lanes, channels - c)
            for first in range(0, degree, TILE):
                count = min(TILE, degree - first)
                for t in range(count):
                    j = col[start + first + t]
                    w = weight[start + first + t] if weight.shape[0] > 0 else x.dtype.type(1)
                    features = simd.load_as_many(x, j * channels + c, width, like)
                    place = (first + t) << shift | (j if has_id else 0)
                    keys, lows = simd.ranking_keys(features, w), simd.filled(zero, ~place)
                    networks.put(x, work, tile + t * WORDS, keys, lows)
                for t in range(count, TILE):
                    networks.put(x, work, tile + t * WORDS, lowest, zero)
                _take_in(x, work, tile, first // TILE, groups, k)
            for s in range(kept):
                bits, at = _found(x, work, s, compete, mask, zero, none)
                simd.store(values, (num_own + s) * channels + c, lanes, bits)
                simd.store_sized(ids, id_size, s * channels + c, at)
        value_end, id_end = (num_own + kept) * channels, kept * channels * id_size
        values_left, ids_left = (k - kept) * channels, row_bytes - id_end
        if lean:
            values_left, ids_left = min(values_left, lanes), min(ids_left, CACHE_LINE)
        _fill_up(values, value_end, values_left, zero)
        _fill_up(ids, id_end, ids_left, nowhere)
        if node_ids and not has_id:
            _look_up(ids.view(col.dtype), 0, kept * channels, col, start)
        if num_own:
            simd.copy(values, 0, own_bits, i * channels, channels)
        if num_last:
            simd.copy(values, (slots - 1) * channels, last_bits, i * channels, channels)
        value_end, id_end = (value_end, id_end) if lean else (row_values, row_bytes)
        _send(values, row_values, value_end, value_bits, i * row_values, streams)
        _send(ids, row_bytes, id_end, chosen, i * row_bytes, streams)
    simd.finish_streams()


@jit_part
def _select_narrow(
    x: Any,
    channels: int,
    rowptr: Any,
    col: Any,
    weight: Any,
    k: int,
    compete: bool,
    begin: int,
    end: int,
    own_bits: Any,
    last_bits: Any,
    value_bits: Any,
    chosen: Any,
    id_size: int,
    node_ids: bool,
    id_bits: int,
    longest_with_id: int,
    lowest_key: Any,
    streams: bool,
) -> None:
    """A block of rows at a time, of which those of similar degrees lie side by side.

    The r-th row of those has the lanes from r * channels. Half a line is moved at a time, however
    few features there are. What that writes too much is written again by what comes next, or
    hidden as it is behind the last neighbour.
    """
    lanes = simd.per_line(x)
    half = lanes // 2
    like, zero = simd.line_of_zeros(x), simd.line_of_zeros(value_bits)
    like_half, zero_half = simd.half_a_line(x), simd.half_a_line(value_bits)
    none, lowest = simd.filled(zero, -1), simd.filled(zero, lowest_key)
    one = x.dtype.type(1)
    last_entry = col.shape[0] - 1
    num_own, num_last = min(own_bits.shape[0], 1), min(last_bits.shape[0], 1)
    slots = num_own + k + num_last
    row_values, row_bytes = slots * channels, k * channels * id_size
    groups = (k + TILE - 1) // TILE
    tile = groups * GROUP
    work = _aligned(tile + GROUP, np.int64)
    beside = lanes // channels
    block = max(beside, min(16 * beside, BLOCK_BYTES // (row_values * value_bits.itemsize)))
    order = np.empty(block, np.int64)
    counts = np.empty(CLASSES + 1, np.int64)
    degrees = _aligned(2 * lanes, value_bits.dtype)
    products = _aligned(STAGED * 2 * lanes, x.dtype)
    nodes = _aligned(STAGED * 2 * lanes, value_bits.dtype)
    most_found = ((block + beside - 1) // beside * k + 1) * lanes
    found_bits = _aligned(most_found, value_bits.dtype)
    found_at = _aligned(most_found, value_bits.dtype)
    found, is_position = np.empty(block, np.int64), np.empty(block, np.bool_)
    values = _aligned(block * row_values, value_bits.dtype)
    ids = _aligned(block * row_bytes, np.uint8)
    nowhere = simd.filled(simd.line_of_zeros(ids), 255)
    simd.store(degrees, 0, lanes, zero)
    for first_row in range(begin, end, block):
        block_rows = min(block, end - first_row)
        _order_by_degree(rowptr, first_row, block_rows, counts, order)
        for group in range(0, block_rows, beside):
            rows = min(beside, block_rows - group)
            longest = 0
            for r in range(rows):
                i = first_row + order[group + r]
                degree = rowptr[i + 1] - rowptr[i]
                longest = max(longest, degree)
                simd.store(degrees, r * channels, half, simd.filled(zero_half, degree))
            lane_degrees = simd.load_as_many(degrees, 0, lanes, zero)
            has_id = longest <= longest_with_id
            shift = id_bits if has_id else 0
            mask = simd.filled(zero, (1 << shift) - 1 if has_id else -1)
            for first in range(0, longest, TILE):
                staged = first % STAGED
                if staged == 0:
                    for r in range(rows):
                        i = first_row + order[group + r]
                        start = rowptr[i] + first
                        left = min(rowptr[i + 1] - start, STAGED)
                        for t in range(left + 3 & ~3):  # so that there is no second loop behind
                            entry = min(start + t, last_entry)
                            j = col[entry]
                            w = weight[entry] if weight.shape[0] > 0 else one
                            features = simd.load_as_many(x, j * channels, channels, like_half)
                            lane = 2 * t * lanes + r * channels
                            simd.store(products, lane, half, simd.scaled(features, w))
                            node = simd.filled(zero_half, j if has_id else 0)
                            simd.store(nodes, lane, half, node)
                for t in range(TILE):
                    lane = 2 * (staged + t) * lanes
                    is_there = simd.filled(zero, first + t)
                    keys = simd.ranking_keys(simd.load_as_many(products, lane, lanes, like), one)
                    keys = simd.where_greater(lane_degrees, is_there, keys, lowest)
                    place = simd.filled(zero, (first + t) << shift)
                    lows = simd.neither(place, simd.load_as_many(nodes, lane, lanes, zero))
                    lows = simd.where_greater(lane_degrees, is_there, lows, zero)
                    networks.put(x, work, tile + t * WORDS, keys, lows)
                _take_in(x, work, tile, first // TILE, groups, k)
            for s in range(min(longest, k)):
                bits, at = _found(x, work, s, compete, mask, zero, none)
                simd.store(found_bits, (group * k // beside + s) * lanes, lanes, bits)
                simd.store(found_at, (group * k // beside + s) * lanes, lanes, at)
            for r in range(rows):
                found[order[group + r]] = group * k // beside * lanes + r * channels
                is_position[order[group + r]] = node_ids and not has_id
        for row in range(block_rows):
            i = first_row + row
            kept = min(rowptr[i + 1] - rowptr[i], k)
            value_at, id_at = row * row_values + num_own * channels, row * k * channels
            if num_own:
                simd.copy(values, row * row_values, own_bits, i * channels, channels)
            for s in range(kept):
                lane = found[row] + s * lanes
                bits = simd.load_as_many(found_bits, lane, half, like_half)
                simd.store(values, value_at + s * channels, half, bits)
                at = simd.load_as_many(found_at, lane, half, like_half)
                simd.store_sized(ids, id_size, id_at + s * channels, at)
            _fill_up(values, value_at + kept * channels, (k - kept) * channels, zero)
            done = kept * channels * id_size
            _fill_up(ids, row * row_bytes + done, row_bytes - done, nowhere)
            if is_position[row]:
                _look_up(ids.view(col.dtype), id_at, kept * channels, col, rowptr[i])
            if num_last:
                end_at = (row + 1) * row_values - channels
                simd.copy(values, end_at, last_bits, i * channels, channels)
        count, size = block_rows * row_values, block_rows * row_bytes
        _send(values, count, count, value_bits, first_row * row_values, streams)
        _send(ids, size, size, chosen, first_row * row_bytes, streams)
    simd.finish_streams()


@jit_inlined
def _order_by_degree(rowptr: Any, first: int, rows: int, counts: Any, order: Any) -> None:
    """Sorts rows by classes of degrees, four degrees each, by counting."""
    counts[:] = 0
    for r in range(first, first + rows):
        counts[min((rowptr[r + 1] - rowptr[r] + 3) // 4, CLASSES - 1) + 1] += 1
    for of_degree in range(CLASSES):
        counts[of_degree + 1] += counts[of_degree]
    for r in range(rows):
        of_degree = min((rowptr[first + r + 1] - rowptr[first + r] + 3) // 4, CLASSES - 1)
        order[counts[of_degree]] = r
        counts[of_degree] += 1


@jit_part
def _aligned(size: int, dtype: Any) -> Any:
    """Memory from the begin of a cache line, with room for a vector behind it."""
    buffer = np.empty(size + 16 * CACHE_LINE, dtype)
    start = -buffer.ctypes.data % CACHE_LINE // buffer.itemsize
    return buffer[start:]


@jit_inlined
def _take_in(x: Any, work: Any, tile: int, filled: int, groups: int, k: int) -> None:
    """Merges a tile into the groups of the best, of which the first `filled` are in use."""
    for part in range(0, WORDS, 2 * CACHE_LINE // simd.per_line(x)):
        at = tile + part
        if k == 1:
            networks.largest(x, work, at, at if filled else part)
            if filled:
                networks.larger(x, work, part, at)
            continue
        networks.sort(x, work, at, at if filled else part)
        if filled >= groups and not networks.any_larger(x, work, at, (k - 1) * WORDS + part):
            continue
        for group in range(min(filled, groups - 1)):
            rest = filled * GROUP + part if group == filled - 1 else at
            networks.split(x, work, group * GROUP + part, at, rest)
        if filled >= groups:
            networks.keep(x, work, (groups - 1) * GROUP + part, at)


@jit_inlined
def _found(x: Any, work: Any, s: int, compete: bool, mask: Any, zero: Any, none: Any) -> Any:
    """The bits of the values in a slot, and their ids or positions, -1 where there are none."""
    keys, lows = networks.get(x, work, s * WORDS, zero)
    bits = simd.where_greater(zero, lows, simd.bits_of_keys(keys), zero)
    at = simd.where_greater(zero, lows, simd.without(mask, lows), none)
    if compete:
        bits = simd.where_greater(keys, none, bits, zero)
        at = simd.where_greater(keys, none, at, none)
    return bits, at


@jit_inlined
def _fill_up(array: Any, at: int, count: int, filling: Any) -> None:
    """Writes `count` numbers, or up to a vector more."""
    for o in range(at, at + count, simd.per_line(array)):
        simd.store(array, o, simd.per_line(array), filling)


@jit_inlined
def _look_up(ids: Any, id_at: int, count: int, col: Any, start: int) -> None:
    """Turns positions in a row into node ids."""
    for o in range(id_at, id_at + count):
        if ids[o] >= 0:
            ids[o] = col[start + ids[o]]


@jit_inlined
def _send(source: Any, count: int, same_from: int, out: Any, at: int, streams: bool) -> None:
    """Copies to the result; in whole cache lines past the caches, if `streams`.

    From `same_from` on, all numbers are the same, and only a line of them is there.
    """
    line = simd.per_line(out)
    done = 0
    if streams:
        done = min(-at & (line - 1), count)
        if done:
            simd.copy(out, at, source, 0, done)
    while done + line <= count:
        if streams:
            simd.stream_line(out, at + done, source, min(done, same_from))
        else:
            simd.copy_line(out, at + done, source, min(done, same_from))
        done += line
    if done < count:
        simd.copy(out, at + done, source, min(done, same_from), count - done)
