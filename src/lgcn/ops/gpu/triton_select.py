"""The k-largest selection in Triton: one program per row and block of features.

Every thread keeps the K best keys of its rows and features in registers and takes in T neighbours
at a time: a sorting network orders the T, a bitonic merge joins them to the K. What a network does
depends on no value, so threads never diverge.

A key is one 32-bit integer, so that a step of a network is two instructions: the upper bits are
those of the value, ordered as integers, and the lower `bits` are the position in the row, earlier
ones larger. Cutting the lower bits off the value is made good at the end, which costs per selected
value, not per neighbour:

1. The selected values are loaded once more, exactly, and those that share their upper bits are
   sorted by the lower ones where they came in the wrong order.
2. Where the best key left out shares its upper bits with the last one selected, the row is read
   again, and neighbours that belong in are put in. Equal values need neither: their positions rank
   them, as they should.

Rows of more than `PART` neighbours are cut into parts, selected as separate rows with exact
results, and merged by a second kernel on 64-bit keys.
"""

# mypy: disable-error-code="untyped-decorator,no-untyped-def,no-untyped-call"

import triton
import triton.language as tl

# Below the key of every number, minus infinity included.
NONE = tl.constexpr(-(2**31))
# A GPU's addition turns every NaN into the one with the largest bits; NumPy's, which the
# interpreter uses, does not.
INTERPRETED = tl.constexpr(triton.knobs.runtime.interpret)


@triton.jit
def _order(value):
    """Integers in the order of the floats, NaN above all, -0 equal to 0."""
    value = value + 0.0
    bits = value.to(tl.int32, bitcast=True)
    key = bits ^ ((bits >> 31) & 0x7FFFFFFF)
    if INTERPRETED:
        key = tl.where(value != value, 0x7FFFFFFF, key)
    return key


@triton.jit
def _value(key):
    """The float of an integer of `_order`, zero for NONE."""
    bits = tl.where(key == NONE, 0, key ^ ((key >> 31) & 0x7FFFFFFF))
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def _compare(
    slots, LOG: tl.constexpr, GAP: tl.constexpr, RUN: tl.constexpr, RISING: tl.constexpr,
    WIDTH: tl.constexpr,
):  # fmt: skip
    """Orders slots i and i + 2**GAP within runs of 2**RUN slots that fall and rise in turn.

    Slots lie along axis 0, in the registers of one thread, where to pick a partner costs nothing.
    """
    HIGH: tl.constexpr = LOG - 1 - GAP
    pairs = tl.reshape(slots, [1 << HIGH, 2, 1 << GAP, WIDTH])
    partner = pairs ^ tl.xor_sum(pairs, axis=1, keep_dims=True)
    is_second = tl.arange(0, 2)[None, :, None, None]
    rises = ((tl.arange(0, 1 << HIGH) >> (RUN - 1 - GAP)) + RISING) % 2
    takes_larger = is_second == rises[:, None, None, None]
    pairs = tl.where(takes_larger, tl.maximum(pairs, partner), tl.minimum(pairs, partner))
    return tl.reshape(pairs, [1 << LOG, WIDTH])


@triton.jit
def _merge(slots, LOG: tl.constexpr, WIDTH: tl.constexpr):
    """Sorts 2**LOG slots that fall and then rise, the largest first."""
    for gap in tl.static_range(LOG - 1, -1, -1):
        slots = _compare(slots, LOG, gap, LOG, 0, WIDTH)
    return slots


@triton.jit
def _sort(slots, LOG: tl.constexpr, RISING: tl.constexpr, WIDTH: tl.constexpr):
    """Bitonic sort of 2**LOG slots."""
    for run in tl.static_range(1, LOG + 1):
        for gap in tl.static_range(run - 1, -1, -1):
            slots = _compare(slots, LOG, gap, run, RISING, WIDTH)
    return slots


@triton.jit
def _join(slots, tile, LOG: tl.constexpr, LOG_T: tl.constexpr, WIDTH: tl.constexpr):
    """The largest among falling slots and a rising tile, and the largest of what is left out.

    Of each of the last slots and its partner in the tile, the larger stays: what stays falls and
    then rises, and is merged.
    """
    BLOCKS: tl.constexpr = 1 << (LOG - LOG_T)
    blocks = tl.reshape(slots, [BLOCKS, 1 << LOG_T, WIDTH])
    is_last = tl.arange(0, BLOCKS)[:, None, None] == BLOCKS - 1
    partner = tl.where(is_last, tile[None, :, :], NONE)
    left_out = tl.max(tl.max(tl.minimum(blocks, partner), axis=0), axis=0)
    slots = tl.reshape(tl.maximum(blocks, partner), [1 << LOG, WIDTH])
    return _merge(slots, LOG, WIDTH), left_out


@triton.jit
def _products(x, col, weight, entry, inside, c, C, WEIGHTED: tl.constexpr):
    """The features c of the neighbours at `entry`, times their weights; zeros outside."""
    j = tl.load(col + entry, mask=inside, other=0).to(tl.int64)
    place = tl.max_contiguous(j * C + c, [1, c.shape[1]])  # see _select
    value = tl.load(x + place, mask=inside & (c < C), other=0.0).to(tl.float32)
    if WEIGHTED:
        value = value * tl.load(weight + entry, mask=inside, other=0.0).to(tl.float32)
    return value


@triton.jit
def _exact_keys(x, col, weight, entry, inside, c, C, WEIGHTED: tl.constexpr):
    """The keys of the features c of the neighbours at `entry`."""
    return _order(_products(x, col, weight, entry, inside, c, C, WEIGHTED))


@triton.jit
def _pack(key, p, low, inside, COMPETE: tl.constexpr):
    """The upper bits of the key over the reversed position; NONE where nothing can be selected."""
    packed = (key & ~low) | (low - p)
    if COMPETE:
        inside = inside & (key >= 0)
    return tl.where(inside, packed, NONE)


@triton.jit
def _any(condition):
    return tl.max(tl.max(condition.to(tl.int32), axis=0), axis=0) > 0


@triton.jit
def _smaller(a, b):
    return tl.minimum(a, b)


@triton.jit
def _count_changes(first_a, last_a, changes_a, first_b, last_b, changes_b):
    return first_a, last_b, changes_a + changes_b + (last_a != first_b).to(tl.int32)


@triton.jit
def _sort_runs(upper, lower, bits, LOG_K: tl.constexpr, WIDTH: tl.constexpr):
    """Sorts `lower`, of 2 * bits bits, in each run of slots that have the same `upper`.

    With the number of the run above it, it is a key of 32 bits again.
    """
    zero = tl.zeros_like(upper)
    _, _, run = tl.associative_scan((upper, upper, zero), 0, _count_changes)
    key = (((1 << LOG_K) - 1 - run) << (2 * bits)) | lower
    return _sort(key, LOG_K, 0, WIDTH) & ((1 << (2 * bits)) - 1)


@triton.jit
def _take_in_left_out(
    upper, lower, smallest_packed, x, col, weight, start, degree, bits, low, c, C,
    LOG_K: tl.constexpr, LOG_T: tl.constexpr, WIDTH: tl.constexpr,
    WEIGHTED: tl.constexpr, COMPETE: tl.constexpr,
):  # fmt: skip
    """Reads the row again for neighbours above the last slot whose packed key was too small.

    They share the upper bits of the last slot, so only the run of slots that do changes.
    """
    T: tl.constexpr = 1 << LOG_T
    is_last = tl.arange(0, 1 << LOG_K)[:, None] == (1 << LOG_K) - 1
    last_upper = tl.min(upper, axis=0)[None, :]
    run = tl.where(upper == last_upper, lower, 0x7FFFFFFF)
    tile = tl.arange(0, T)[:, None]
    for first in range(0, degree, T):
        p = first + tile
        key = _exact_keys(x, col, weight, start + p, p < degree, c, C, WEIGHTED)
        packed = _pack(key, p, low, (p < degree) & (c < C), COMPETE)
        candidates = ((key & low) << bits) | (low - p)
        left_out = (packed < smallest_packed) & ((packed & ~low) == last_upper)
        candidates = tl.where(left_out, candidates, -1)
        if _any(candidates > tl.min(run, axis=0)[None, :]):
            for t in range(T):
                candidate = tl.max(tl.where(tile == t, candidates, -1), axis=0)[None, :]
                enters = candidate > tl.min(run, axis=0)[None, :]
                run = _merge(tl.where(is_last & enters, candidate, run), LOG_K, WIDTH)
    return tl.where(upper == last_upper, run, lower)


@triton.jit
def _select(
    x, col, weight, start, degree, c, C, k: tl.constexpr,
    LOG_K: tl.constexpr, LOG_T: tl.constexpr, WIDTH: tl.constexpr,
    WEIGHTED: tl.constexpr, COMPETE: tl.constexpr, EXACT: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """The K largest among `degree` neighbours, sorted: exact keys, and positions or -1.

    EXACT says that the lower bits of all values are zero, so that cutting them off loses nothing.
    With SUM, the sum of all neighbours follows, which costs an addition per value that is read.
    """
    K: tl.constexpr = 1 << LOG_K
    T: tl.constexpr = 1 << LOG_T
    c = c[None, :]
    # The fewer bits for positions, the more for values.
    bits = 3
    for log in tl.static_range(3, 11):
        bits += (degree > (1 << log)).to(tl.int32)
    low = (1 << bits) - 1

    packed = tl.full([K, WIDTH], NONE, tl.int32)
    left_out = tl.full([WIDTH], NONE, tl.int32)
    tiny = tl.full([WIDTH], 0xFFFFFFFF, tl.uint32)
    total = tl.zeros([WIDTH], tl.float32)
    for first in range(0, degree, T):
        p = first + tl.arange(0, T)[:, None]
        value = _products(x, col, weight, start + p, p < degree, c, C, WEIGHTED)
        if SUM:
            total += tl.sum(value, axis=0)
        key = _order(value)
        if not EXACT:
            tiny = tl.minimum(tiny, tl.min((key - 1).to(tl.uint32, bitcast=True), axis=0))
        tile = _pack(key, p, low, (p < degree) & (c < C), COMPETE)
        tile = _sort(tile, LOG_T, 1, WIDTH)
        packed, out = _join(packed, tile, LOG_K, LOG_T, WIDTH)
        left_out = tl.maximum(left_out, out)

    chosen = packed != NONE
    upper = packed & ~low
    if EXACT:
        # The lower bits of the key of a negative number are ones, as are those of NaN.
        ones = (upper < 0) | (upper > 0x7F800000)
        exact = tl.where(chosen & ones, upper | low, upper)
        return exact, tl.where(chosen, low - (packed & low), -1), total
    # Every thread reads its own neighbour now. The hint, which is not true, keeps the threads
    # along the features; as nothing is said of alignment, none will load several at once.
    entry = tl.max_contiguous(start + low - (packed & low), [1, WIDTH])
    exact = _exact_keys(x, col, weight, entry, chosen, c, C, WEIGHTED)
    exact = tl.where(chosen, exact, NONE)
    lower = ((exact & low) << bits) | (packed & low)
    if _any(exact > tl.associative_scan(exact, 0, _smaller)):
        lower = _sort_runs(upper, lower, bits, LOG_K, WIDTH)
    last = tl.max(tl.where(tl.arange(0, K)[:, None] == k - 1, packed, NONE), axis=0)
    unsure = (last != NONE) & ((left_out & ~low) == (last & ~low))
    # Zeros, of which there are often many, share their upper bits with denormal numbers only.
    unsure = unsure & (((last & ~low) != 0) | (tiny < low))
    if tl.max(unsure.to(tl.int32), axis=0) > 0:
        lower = _take_in_left_out(
            upper, lower, tl.min(packed, axis=0)[None, :], x, col, weight, start, degree,
            bits, low, c, C, LOG_K, LOG_T, WIDTH, WEIGHTED, COMPETE,
        )  # fmt: skip
    return upper | (lower >> bits), tl.where(chosen, low - (lower & low), -1), total


@triton.jit
def _store(
    key, position, row, start, c, col, values, chosen, C, k: tl.constexpr,
    LOG_K: tl.constexpr, NODE_IDS: tl.constexpr, OWN: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """Writes the first k slots of a row to the result."""
    s = tl.arange(0, 1 << LOG_K)[:, None]
    inside = (s < k) & (c < C)[None, :]
    if NODE_IDS:
        entry = tl.max_contiguous(start + position, [1, c.shape[0]])  # see _select
        position = tl.load(col + entry, mask=(position >= 0) & inside, other=-1)
    value = _value(key).to(values.dtype.element_ty)
    tl.store(values + (row * SLOTS + OWN + s) * C + c[None, :], value, mask=inside)
    position = position.to(chosen.dtype.element_ty)
    tl.store(chosen + (row * k + s) * C + c[None, :], position, mask=inside)


@triton.jit
def _store_total(
    total, divisor, row, c, values, C, SLOTS: tl.constexpr, MEAN: tl.constexpr
):  # fmt: skip
    """Writes the sum of all neighbours to the last slot of a row; divided, with MEAN."""
    if MEAN:
        total = total / tl.load(divisor + row).to(tl.float32)
    place = values + (row * SLOTS + SLOTS - 1) * C + c
    tl.store(place, total.to(values.dtype.element_ty), mask=c < C)


@triton.jit
def _features(WIDTH: tl.constexpr):
    """The features of this program.

    Told nothing of alignment, the compiler deals them out to all threads one by one; else a thread
    would load several at once and the slots of a feature would lie in several threads.
    """
    return tl.multiple_of(tl.program_id(1) * WIDTH + tl.arange(0, WIDTH), 1)


@triton.jit
def select_rows(
    x, rowptr, col, weight, own, divisor, values, chosen, C, k: tl.constexpr,
    LOG_K: tl.constexpr, LOG_T: tl.constexpr, PART: tl.constexpr, WIDTH: tl.constexpr,
    WEIGHTED: tl.constexpr, COMPETE: tl.constexpr, EXACT: tl.constexpr,
    NODE_IDS: tl.constexpr, OWN: tl.constexpr, SLOTS: tl.constexpr, SUM: tl.constexpr,
    MEAN: tl.constexpr,
):  # fmt: skip
    """Rows of at most PART neighbours, straight into the result."""
    row = tl.program_id(0).to(tl.int64)
    c = _features(WIDTH)
    start = tl.load(rowptr + row).to(tl.int64)
    degree = (tl.load(rowptr + row + 1).to(tl.int64) - start).to(tl.int32)
    if OWN:
        first = tl.load(own + row * C + c, mask=c < C)
        tl.store(values + row * SLOTS * C + c, first, mask=c < C)
    if degree <= PART:
        key, position, total = _select(
            x, col, weight, start, degree, c, C, k,
            LOG_K, LOG_T, WIDTH, WEIGHTED, COMPETE, EXACT, SUM,
        )  # fmt: skip
        if SUM:
            _store_total(total, divisor, row, c, values, C, SLOTS, MEAN)
        _store(
            key, position, row, start, c, col, values, chosen, C, k, LOG_K, NODE_IDS, OWN, SLOTS
        )  # fmt: skip


@triton.jit
def select_parts(
    x, rowptr, col, weight, part_row, part_first, partial, partial_sum, C, k: tl.constexpr,
    LOG_K: tl.constexpr, LOG_T: tl.constexpr, PART: tl.constexpr, WIDTH: tl.constexpr,
    WEIGHTED: tl.constexpr, COMPETE: tl.constexpr, EXACT: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """One part of a longer row: its k largest as 64-bit keys, exact key over reversed position."""
    part = tl.program_id(0).to(tl.int64)
    c = _features(WIDTH)
    row = tl.load(part_row + part).to(tl.int64)
    first = tl.load(part_first + part).to(tl.int64)
    start = tl.load(rowptr + row).to(tl.int64) + first
    degree = tl.minimum(tl.load(rowptr + row + 1).to(tl.int64) - start, PART).to(tl.int32)
    key, position, total = _select(
        x, col, weight, start, degree, c, C, k,
        LOG_K, LOG_T, WIDTH, WEIGHTED, COMPETE, EXACT, SUM,
    )  # fmt: skip
    if SUM:
        tl.store(partial_sum + part * C + c, total, mask=c < C)
    slots = (key.to(tl.int64) << 32) | (0x7FFFFFFF - first - position)
    s = tl.arange(0, 1 << LOG_K)[:, None]
    inside = (s < k) & (c < C)[None, :]
    tl.store(partial + (part * k + s) * C + c[None, :], slots, mask=inside)


@triton.jit
def merge_parts(
    partial, partial_sum, divisor, long_row, part_ptr, rowptr, col, values, chosen, C,
    k: tl.constexpr, LOG_K: tl.constexpr, WIDTH: tl.constexpr, NODE_IDS: tl.constexpr,
    OWN: tl.constexpr, SLOTS: tl.constexpr, SUM: tl.constexpr, MEAN: tl.constexpr,
):  # fmt: skip
    """Merges the sorted parts of a long row, one after the other."""
    K: tl.constexpr = 1 << LOG_K
    LOWEST: tl.constexpr = -(2**63)
    number = tl.program_id(0)
    c = _features(WIDTH)
    row = tl.load(long_row + number).to(tl.int64)
    start = tl.load(rowptr + row).to(tl.int64)
    rising = K - 1 - tl.arange(0, K)[:, None]
    inside = (rising < k) & (c < C)[None, :]
    first_part = tl.load(part_ptr + number).to(tl.int64)
    last_part = tl.load(part_ptr + number + 1).to(tl.int64)
    slots = tl.full([K, WIDTH], LOWEST, tl.int64)
    total = tl.zeros([WIDTH], tl.float32)
    for number_of_part in range(first_part, last_part):
        # From the part's number, which has 64 bits: a step of k * C might not fit into 32.
        part = partial + (number_of_part * k + rising) * C + c[None, :]
        slots = tl.maximum(slots, tl.load(part, mask=inside, other=LOWEST))
        slots = _merge(slots, LOG_K, WIDTH)
        if SUM:
            total += tl.load(partial_sum + number_of_part * C + c, mask=c < C, other=0.0)
    if SUM:
        _store_total(total, divisor, row, c, values, C, SLOTS, MEAN)
    key = (slots >> 32).to(tl.int32)
    position = tl.where(key == NONE, -1, 0x7FFFFFFF - (slots & 0x7FFFFFFF).to(tl.int32))
    _store(key, position, row, start, c, col, values, chosen, C, k, LOG_K, NODE_IDS, OWN, SLOTS)
