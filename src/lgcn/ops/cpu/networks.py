"""Sorting networks over vectors, as Numba intrinsics.

What a network compares depends on no value, so all lanes of a vector do the same, and nothing has
to be predicted. A candidate is a key with the complement of its position below it: of equal keys
the earlier position is the larger candidate. No two are equal then, and any network sorts as a
stable sort would. For float32 a candidate is one integer of 64 bits, and a step of a network is one
maximum and one minimum; for float64 it is two integers, compared one after the other.

Candidates lie in an array `work` of int64, aligned to a cache line, `WORDS` words for as many
features as a cache line of the input has. With one word each, those are two vectors of candidates.
A group is `TILE` candidates, one after the other; `at` is where the first one's vector begins.
"""

# mypy: disable-error-code="untyped-decorator,misc,no-untyped-call,import-untyped,attr-defined"

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

TILE = 8  # two groups of them fit in the registers of AVX-512
LANES = 8
WORDS = 2 * LANES
GROUP = TILE * WORDS

_WORD = ir.VectorType(ir.IntType(64), LANES)
_HALVES = ir.VectorType(ir.IntType(32), WORDS)

Candidate = tuple[Any, ...]
Steps = Iterable[tuple[int, int]]


def sorting_steps(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's odd-even merge sort: the pairs to bring in order, one after the other."""
    run = 1
    while run < count:
        gap = run
        while gap > 0:
            for i in range(gap % run, count - gap):
                same_run = i // (2 * run) == (i + gap) // (2 * run)
                if same_run and (i - gap % run) // gap % 2 == 0:
                    yield i, i + gap
            gap //= 2
        run *= 2


def merging_steps(count: int) -> Iterator[tuple[int, int]]:
    """Batcher's bitonic merge, which sorts what falls and then rises."""
    gap = count // 2
    while gap > 0:
        for i in range(count):
            if i & gap == 0:
                yield i, i + gap
        gap //= 2


def _in_order(builder: Any, a: Candidate, b: Candidate) -> tuple[Candidate, Candidate]:
    """The larger and the smaller candidate of each lane."""
    greater = builder.icmp_signed(">", a[0], b[0])
    if len(a) == 2:
        tie = builder.icmp_signed("==", a[0], b[0])
        earlier = builder.icmp_signed(">", a[1], b[1])
        greater = builder.or_(greater, builder.and_(tie, earlier))
    words = list(zip(a, b, strict=True))
    larger = tuple(builder.select(greater, left, right) for left, right in words)
    smaller = tuple(builder.select(greater, right, left) for left, right in words)
    return larger, smaller


def _apply(builder: Any, steps: Steps, candidates: list[Candidate]) -> None:
    for i, j in steps:
        candidates[i], candidates[j] = _in_order(builder, candidates[i], candidates[j])


class _Work:
    """Loads and stores candidates."""

    def __init__(self, context: Any, builder: Any, x: Any, work_type: Any, work: Any) -> None:
        self.builder = builder
        self.words = x.dtype.bitwidth // 32
        self.data = context.make_array(work_type)(context, builder, work).data

    def _place(self, at: Any, offset: int) -> Any:
        place = self.builder.gep(self.data, [self.builder.add(at, at.type(offset))])
        return self.builder.bitcast(place, _WORD.as_pointer())

    def load(self, at: Any, index: int = 0, words: int | None = None) -> Candidate:
        places = [index * WORDS + word * LANES for word in range(words or self.words)]
        return tuple(self.builder.load(self._place(at, place), align=64) for place in places)

    def store(self, at: Any, candidate: Candidate, index: int = 0) -> None:
        for word, value in enumerate(candidate):
            self.builder.store(value, self._place(at, index * WORDS + word * LANES), align=64)

    def load_group(self, at: Any) -> list[Candidate]:
        return [self.load(at, index) for index in range(TILE)]

    def store_group(self, at: Any, group: list[Candidate]) -> None:
        for index, candidate in enumerate(group):
            self.store(at, candidate, index)


def _network(
    x: Any, work: Any, places: int, generate: Callable[..., Any], returns: Any = types.void
) -> Any:
    """The signature and code of an intrinsic (x, work, place, ...): `generate` makes the latter."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        candidates = _Work(context, builder, x, work, arguments[1])
        result = generate(builder, candidates, *arguments[2:])
        return context.get_dummy_value() if result is None else result

    return returns(x, work, *[types.intp] * places), codegen


@intrinsic
def sort(_: Any, x: Any, work: Any, at: Any, to: Any) -> Any:
    """Sorts a group, the largest first, and stores it at `to`."""

    def generate(builder: Any, candidates: _Work, at: Any, to: Any) -> None:
        group = candidates.load_group(at)
        _apply(builder, sorting_steps(TILE), group)
        candidates.store_group(to, group)

    return _network(x, work, 2, generate)


def _join(
    builder: Any, candidates: _Work, at: Any, other: Any
) -> list[tuple[Candidate, Candidate]]:
    """Two groups that each fall, as one that falls and rises of the larger ones, and the rest."""
    pairs = zip(candidates.load_group(at), reversed(candidates.load_group(other)), strict=True)
    return [_in_order(builder, *pair) for pair in pairs]


@intrinsic
def keep(_: Any, x: Any, work: Any, at: Any, other: Any) -> Any:
    """Of two sorted groups, keeps the larger half at `at`, sorted."""

    def generate(builder: Any, candidates: _Work, at: Any, other: Any) -> None:
        larger = [pair[0] for pair in _join(builder, candidates, at, other)]
        _apply(builder, merging_steps(TILE), larger)
        candidates.store_group(at, larger)

    return _network(x, work, 2, generate)


@intrinsic
def split(_: Any, x: Any, work: Any, at: Any, other: Any, rest: Any) -> Any:
    """As `keep`; the smaller half goes to `rest`, sorted."""

    def generate(builder: Any, candidates: _Work, at: Any, other: Any, rest: Any) -> None:
        joined = _join(builder, candidates, at, other)
        for place, half in ((at, 0), (rest, 1)):
            group = [pair[half] for pair in joined]
            _apply(builder, merging_steps(TILE), group)
            candidates.store_group(place, group)

    return _network(x, work, 3, generate)


@intrinsic
def largest(_: Any, x: Any, work: Any, at: Any, to: Any) -> Any:
    """Stores the largest candidate of a group at `to`."""

    def generate(builder: Any, candidates: _Work, at: Any, to: Any) -> None:
        group = candidates.load_group(at)
        while len(group) > 1:
            pairs = zip(group[::2], group[1::2], strict=True)
            group = [_in_order(builder, *pair)[0] for pair in pairs]
        candidates.store(to, group[0])

    return _network(x, work, 2, generate)


@intrinsic
def larger(_: Any, x: Any, work: Any, at: Any, other: Any) -> Any:
    """Keeps the larger of two candidates at `at`."""

    def generate(builder: Any, candidates: _Work, at: Any, other: Any) -> None:
        pair = _in_order(builder, candidates.load(at), candidates.load(other))
        candidates.store(at, pair[0])

    return _network(x, work, 2, generate)


@intrinsic
def any_larger(_: Any, x: Any, work: Any, at: Any, other: Any) -> Any:
    """Whether a candidate at `at` has a larger key than the one at `other`, or an earlier place."""

    def generate(builder: Any, candidates: _Work, at: Any, other: Any) -> Any:
        first, second = candidates.load(at)[0], candidates.load(other)[0]
        bits = builder.bitcast(builder.icmp_signed(">", first, second), ir.IntType(LANES))
        return builder.icmp_unsigned("!=", bits, bits.type(0))

    return _network(x, work, 2, generate, types.boolean)


@intrinsic
def put(_: Any, x: Any, work: Any, at: Any, keys: Any, lows: Any) -> Any:
    """Stores candidates of `keys` and, below them, `lows`, both vectors of integers."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        _, work_value, at, upper, lower = arguments
        words = [upper, lower]
        if x.dtype.bitwidth == 32:
            words = [_shuffle(builder, lower, upper, order) for order in _interleaved()]
        for index, word in enumerate(words):
            candidates = _Work(context, builder, x, work, work_value)
            place = builder.add(at, at.type(index * LANES))
            candidates.store(place, (builder.bitcast(word, _WORD),))
        return context.get_dummy_value()

    return types.void(x, work, types.intp, keys, lows), codegen


@intrinsic
def get(_: Any, x: Any, work: Any, at: Any, like: Any) -> Any:
    """Loads candidates: their keys, and what is below them."""
    returns = types.UniTuple(like, 2)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        words = list(_Work(context, builder, x, work, arguments[1]).load(arguments[2], words=2))
        if x.dtype.bitwidth == 32:
            first, second = (builder.bitcast(word, _HALVES) for word in words)
            words = [_shuffle(builder, first, second, order) for order in _separated()]
        return context.make_tuple(builder, returns, words)

    return returns(x, work, types.intp, like), codegen


def _interleaved() -> list[list[int]]:
    """The order of halves in two words: by fours, as processors interleave without crossing."""
    return [
        [half for four in range(0, WORDS, 4) for lane in lanes for half in (
            four + lane, WORDS + four + lane
        )]
        for lanes in ((0, 1), (2, 3))
    ]  # fmt: skip


def _separated() -> list[list[int]]:
    """The reverse: the upper halves of two words, and the lower ones."""
    flat = [half for order in _interleaved() for half in order]
    return [[flat.index(first + lane) for lane in range(WORDS)] for first in (WORDS, 0)]


def _shuffle(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    return builder.shuffle_vector(a, b, ir.Constant(_HALVES, order))
