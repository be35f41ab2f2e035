"""Vectors of numbers as a Numba type, with which a kernel says what becomes SIMD code.

Numba leaves that to LLVM, which gives up on a loop nested in loops over rows. A vector here is one
variable, and LLVM spreads it over as many registers as it needs.

Numba's cache of compiled kernels does not notice a change of this file. After one, update
`kernels.SIMD_DIGEST`.
"""

# mypy: disable-error-code="untyped-decorator,misc,no-untyped-call,import-untyped"

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

# Two AVX-512 registers: fewer turns and fewer mispredicted branches than with one.
VECTOR_BYTES = 128

CACHE_LINE = 64

_INT32 = ir.IntType(32)


class Vector(types.Type):
    """A vector of `count` numbers, by default as many as fit in `VECTOR_BYTES`."""

    def __init__(self, dtype: Any, count: int | None = None) -> None:
        self.dtype = dtype
        self.count = count or 8 * VECTOR_BYTES // dtype.bitwidth
        super().__init__(name=f"Vector({dtype}, {self.count})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, _llvm(vector.dtype, vector.count))


def _llvm(dtype: Any, count: int) -> Any:
    if isinstance(dtype, types.Float):
        return ir.VectorType(ir.FloatType() if dtype.bitwidth == 32 else ir.DoubleType(), count)
    return ir.VectorType(ir.IntType(dtype.bitwidth), count)


def _filled(builder: Any, kind: Any, number: Any) -> Any:
    """A vector of equal numbers, as compilers write it: set the first one, then repeat it."""
    undefined = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(undefined, number, _INT32(0))
    repeat = ir.Constant(ir.VectorType(_INT32, kind.count), [0] * kind.count)
    return builder.shuffle_vector(first, undefined, repeat)


def _place(context: Any, builder: Any, array_type: Any, array: Any, at: Any, kind: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), kind.as_pointer())


def _masked(builder: Any, name: str, kind: Any, returns: Any, arguments: list[Any]) -> Any:
    element = {"float": "f32", "double": "f64"}.get(str(kind.element), str(kind.element))
    pointers = f"v{kind.count}p0" if name in ("gather", "scatter") else "p0"
    function = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(returns, [argument.type for argument in arguments]),
        f"llvm.masked.{name}.v{kind.count}{element}.{pointers}",
    )
    return builder.call(function, arguments)


def _first(builder: Any, count: int, width: Any) -> Any:
    """A mask of the first `width` numbers."""
    lanes = ir.VectorType(_INT32, count)
    width = _filled(builder, lanes, builder.trunc(width, _INT32))
    return builder.icmp_signed("<", ir.Constant(lanes, list(range(count))), width)


def _zeros(size: int) -> Any:
    @intrinsic
    def zeros(_: Any, array: Any) -> Any:
        vector = Vector(array.dtype, 8 * size // array.dtype.bitwidth)

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return ir.Constant(_llvm(vector.dtype, vector.count), None)

        return vector(array), codegen

    return zeros


# Zeros of the type of an array, as many as fit in a cache line, or in half of one.
line_of_zeros = _zeros(CACHE_LINE)
half_a_line = _zeros(CACHE_LINE // 2)


@intrinsic
def per_line(_: Any, array: Any) -> Any:
    """How many numbers of an array a cache line has, as a constant."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(64), 8 * CACHE_LINE // array.dtype.bitwidth)

    return types.intp(array), codegen


@intrinsic
def load(_: Any, array: Any, at: Any, width: Any) -> Any:
    """The first `width` numbers of a vector from a flat array, zeros behind."""
    vector = Vector(array.dtype)
    return vector(array, types.intp, types.intp), _load(array, vector)


@intrinsic
def load_as_many(_: Any, array: Any, at: Any, width: Any, like: Any) -> Any:
    """As `load`, but as many numbers as `like` has, whatever their size."""
    vector = Vector(array.dtype, like.count)
    return vector(array, types.intp, types.intp, like), _load(array, vector)


def _load(array: Any, vector: Vector) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, width = arguments[:3]
        kind = _llvm(vector.dtype, vector.count)
        align = array.dtype.bitwidth // 8
        place = _place(context, builder, array, array_value, at, kind)
        whole = builder.icmp_signed("==", width, width.type(vector.count))
        with builder.if_else(whole, likely=True) as (all_of_it, part_of_it):
            with all_of_it:
                loaded = builder.load(place, align=align)
                loaded_in = builder.block
            with part_of_it:
                mask = _first(builder, vector.count, width)
                part = [place, _INT32(align), mask, ir.Constant(kind, None)]
                part = _masked(builder, "load", kind, kind, part)
                part_in = builder.block
        result = builder.phi(kind)
        result.add_incoming(loaded, loaded_in)
        result.add_incoming(part, part_in)
        return result

    return codegen


@intrinsic
def store(_: Any, array: Any, at: Any, width: Any, vector: Any) -> Any:
    """Stores the first `width` numbers in a flat array, integers also in other sizes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, at, width, numbers = arguments
        kind = _llvm(array.dtype, vector.count)
        place = _place(context, builder, array, array_value, at, kind)
        numbers = _resized(builder, numbers, kind)
        align = array.dtype.bitwidth // 8
        whole = builder.icmp_signed("==", width, width.type(vector.count))
        with builder.if_else(whole, likely=True) as (all_of_it, part_of_it):
            with all_of_it:
                builder.store(numbers, place, align=align)
            with part_of_it:
                mask = _first(builder, vector.count, width)
                part = [numbers, place, _INT32(align), mask]
                _masked(builder, "store", kind, ir.VoidType(), part)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, vector), codegen


@intrinsic
def store_sized(_: Any, memory: Any, size: Any, at: Any, vector: Any) -> Any:
    """Stores a vector in memory, given as bytes, that holds integers of `size` bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        memory_value, size, at, numbers = arguments
        start = builder.mul(at, size)
        done = builder.append_basic_block("stored")
        switch = builder.switch(size, done)
        for known in (1, 2, 4, 8):
            switch.add_case(size.type(known), block := builder.append_basic_block())
            builder.position_at_end(block)
            kind = ir.VectorType(ir.IntType(8 * known), vector.count)
            place = _place(context, builder, memory, memory_value, start, kind)
            builder.store(_resized(builder, numbers, kind), place, align=known)
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    return types.void(memory, types.intp, types.intp, vector), codegen


def _resized(builder: Any, numbers: Any, kind: Any) -> Any:
    """Numbers as those of another type of vector: integers may have another size."""
    if not isinstance(kind.element, ir.IntType) or kind == numbers.type:
        return numbers
    narrower = kind.element.width < numbers.type.element.width
    return (builder.trunc if narrower else builder.sext)(numbers, kind)


@intrinsic
def copy(_: Any, to: Any, at: Any, source: Any, first: Any, count: Any) -> Any:
    """`to[at : at + count] = source[first : first + count]` for arrays of one type."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to_value, at, source_value, first, count = arguments
        kind = ir.IntType(8)
        target = _place(context, builder, to, to_value, at, kind)
        origin = _place(context, builder, source, source_value, first, kind)
        size = builder.mul(count, count.type(to.dtype.bitwidth // 8))
        cgutils.raw_memcpy(builder, target, origin, size, 1)
        return context.get_dummy_value()

    return types.void(to, types.intp, source, types.intp, types.intp), codegen


def _copy_line(streams: bool) -> Any:
    @intrinsic
    def copy_line(_: Any, to: Any, at: Any, source: Any, first: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            to_value, at, source_value, first = arguments
            kind = ir.VectorType(ir.IntType(8), CACHE_LINE)
            target = _place(context, builder, to, to_value, at, kind)
            origin = _place(context, builder, source, source_value, first, kind)
            line = builder.load(origin, align=1)
            stored = builder.store(line, target, align=CACHE_LINE if streams else 1)
            if streams:
                stored.set_metadata("nontemporal", builder.module.add_metadata([_INT32(1)]))
            return context.get_dummy_value()

        return types.void(to, types.intp, source, types.intp), codegen

    return copy_line


# Copies as many numbers as a cache line has; or a whole cache line in memory, past the caches, for
# which it is not read before.
copy_line = _copy_line(streams=False)
stream_line = _copy_line(streams=True)


@intrinsic
def finish_streams(_: Any) -> Any:
    """Waits until other threads see what was stored past the caches."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def filled(_: Any, like: Any, number: Any) -> Any:
    """A vector of the type of `like` with all numbers equal."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _filled(builder, _llvm(like.dtype, like.count), arguments[1])

    return like(like, like.dtype), codegen


@intrinsic
def larger(_: Any, a: Any, b: Any) -> Any:
    """The larger of each pair of integers."""
    return a(a, a), _compare_and_choose(lambda a, b: (a, b, a, b))


@intrinsic
def smaller(_: Any, a: Any, b: Any) -> Any:
    """The smaller of each pair of integers."""
    return a(a, a), _compare_and_choose(lambda a, b: (a, b, b, a))


@intrinsic
def where_greater(_: Any, a: Any, b: Any, yes: Any, no: Any) -> Any:
    """`yes` where a > b, else `no`."""
    return yes(a, a, yes, yes), _compare_and_choose(lambda *arguments: arguments)


def _compare_and_choose(order: Callable[..., tuple[Any, Any, Any, Any]]) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, b, yes, no = order(*arguments)
        return builder.select(builder.icmp_signed(">", a, b), yes, no)

    return codegen


@intrinsic
def neither(_: Any, a: Any, b: Any) -> Any:
    """The bits that are set in neither."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.not_(builder.or_(*arguments))

    return a(a, a), codegen


@intrinsic
def without(_: Any, a: Any, b: Any) -> Any:
    """The bits of `a` that are not set in `b`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.and_(arguments[0], builder.not_(arguments[1]))

    return a(a, a), codegen


@intrinsic
def any_greater(_: Any, a: Any, b: Any) -> Any:
    """Whether a > b anywhere."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = builder.bitcast(builder.icmp_signed(">", *arguments), ir.IntType(a.count))
        return builder.icmp_unsigned("!=", bits, bits.type(0))

    return types.boolean(a, a), codegen


@intrinsic
def scaled(_: Any, a: Any, factor: Any) -> Any:
    """`a * factor` for floats."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        a, factor = arguments
        return builder.fmul(a, _filled(builder, a.type, factor))

    return a(a, a.dtype), codegen


@intrinsic
def add_product(_: Any, total: Any, a: Any, factor: Any) -> Any:
    """`total + a * factor` for floats, rounded twice; a 0 adds nothing, whatever the factor."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, a, factor = arguments
        added = builder.fadd(total, builder.fmul(a, _filled(builder, a.type, factor)))
        adds = builder.fcmp_unordered("!=", a, ir.Constant(a.type, [0.0] * a.type.count))
        return builder.select(adds, added, total)

    return total(total, total, total.dtype), codegen


@intrinsic
def add_products(_: Any, total: Any, a: Any, b: Any) -> Any:
    """`total + a * b` for vectors of floats, rounded twice, so as one number after the other."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        total, a, b = arguments
        return builder.fadd(total, builder.fmul(a, b))

    return total(total, total, total), codegen


@intrinsic
def put_at(_: Any, array: Any, rows: Any, limit: Any, pitch: Any, width: Any, numbers: Any) -> Any:
    """`array[rows[c] * pitch + c] = numbers[c]` for c < width with 0 <= rows[c] < limit."""
    signature = types.void(array, rows, types.intp, types.intp, types.intp, numbers)
    return signature, _scatter(array, adds=False)


@intrinsic
def add_at(_: Any, array: Any, rows: Any, limit: Any, pitch: Any, width: Any, numbers: Any) -> Any:
    """`array[rows[c] * pitch + c] += numbers[c]` for c < width with 0 <= rows[c] < limit."""
    signature = types.void(array, rows, types.intp, types.intp, types.intp, numbers)
    return signature, _scatter(array, adds=True)


def _scatter(array: Any, adds: bool) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_value, rows, limit, pitch, width, numbers = arguments
        kind, count = numbers.type, numbers.type.count
        offsets = ir.VectorType(ir.IntType(64), count)
        if rows.type != offsets:
            rows = builder.sext(rows, offsets)
        # Unsigned, negative numbers are large: one comparison for both bounds.
        inside = builder.icmp_unsigned("<", rows, _filled(builder, offsets, limit))
        mask = builder.and_(inside, _first(builder, count, width))
        place = builder.mul(rows, _filled(builder, offsets, pitch))
        place = builder.add(place, ir.Constant(offsets, list(range(count))))
        # Addresses as integers, because llvmlite has no arithmetic on vectors of pointers.
        size = ir.Constant(offsets, [array.dtype.bitwidth // 8] * count)
        data = context.make_array(array)(context, builder, array_value).data
        start = _filled(builder, offsets, builder.ptrtoint(data, offsets.element))
        place = builder.add(start, builder.mul(place, size))
        place = builder.inttoptr(place, ir.VectorType(kind.element.as_pointer(), count))
        align = _INT32(array.dtype.bitwidth // 8)
        if adds:
            there = [place, align, mask, ir.Constant(kind, None)]
            numbers = builder.fadd(_masked(builder, "gather", kind, kind, there), numbers)
        _masked(builder, "scatter", kind, ir.VoidType(), [numbers, place, align, mask])
        return context.get_dummy_value()

    return codegen


# A float's bits, read as a signed integer with the lower bits of negative numbers flipped, sort as
# the float does; with NaN as the largest key, one integer comparison is the whole ranking.


@intrinsic
def ranking_keys(_: Any, x: Any, factor: Any) -> Any:
    """Integers that sort as `x * factor`, with -0 equal to 0 and NaN above all numbers."""
    keys = Vector(types.int32 if x.dtype.bitwidth == 32 else types.int64, x.count)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = _llvm(x.dtype, x.count)
        product = builder.fmul(arguments[0], _filled(builder, kind, arguments[1]))
        product = builder.fadd(product, ir.Constant(kind, [0.0] * x.count))  # -0 becomes 0
        bits = builder.bitcast(product, _llvm(keys.dtype, keys.count))
        is_nan = builder.fcmp_unordered("uno", product, product)
        return builder.select(is_nan, _largest(bits), _flip_negative(builder, bits))

    return keys(x, x.dtype), codegen


@intrinsic
def bits_of_keys(_: Any, keys: Any) -> Any:
    """The bits of the floats that these are the keys of."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _flip_negative(builder, arguments[0])

    return keys(keys), codegen


def _largest(bits: Any) -> Any:
    return ir.Constant(bits.type, [(1 << (bits.type.element.width - 1)) - 1] * bits.type.count)


def _flip_negative(builder: Any, bits: Any) -> Any:
    shift = ir.Constant(bits.type, [bits.type.element.width - 1] * bits.type.count)
    return builder.xor(bits, builder.and_(builder.ashr(bits, shift), _largest(bits)))
