"""Shares the tasks of a kernel among Numba's threads.

Numba's own `parallel=True` takes a kernel apart and compiles the pieces, which takes about 2.5
times as long as the kernel alone. Here a kernel is compiled once, as a plain function of the part
of the tasks to do. Where it asks for its share, the first call runs the same function on all
threads.

Numba's cache does not notice a change of this file. After one, count up `VERSION`.
"""

# mypy: disable-error-code="untyped-decorator,misc,no-untyped-call,import-untyped"

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

VERSION = 1

# What `jit_parallel` passes on as the part: all tasks, which are to be shared among all threads.
ALL = -1

# More parts than threads, taken one after the other, since other programs slow threads down too.
_PARTS_PER_THREAD = 4

_INT32, _INT64 = ir.IntType(32), ir.IntType(64)
_POINTER = ir.IntType(8).as_pointer()
_PART = types.containers.UniTuple(types.int64, 2)
# What the threads share: the next part, the number of parts, the code and the exception of a call
# that failed. The arguments of the kernel follow.
_NEXT, _PARTS, _CODE, _EXCEPTION, _ARGUMENTS = range(5)


@intrinsic
def share(_: Any, count: Any, part: Any) -> Any:
    """The tasks in `range(count)` that belong to `part`, the last argument of the kernel.

    `part` is a number and the number of parts, or `ALL` and the number of threads. For the latter,
    the kernel is called with all parts before `share` returns an empty range.
    """
    return types.range_state64_type(types.int64, _PART), _share


def _share(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    count, part = arguments
    number, parts = (builder.extract_value(part, place) for place in (0, 1))
    everything = builder.icmp_signed("<", number, _INT64(0))
    alone = builder.icmp_signed("==", parts, _INT64(1))
    with builder.if_then(builder.and_(everything, builder.not_(alone)), likely=False):
        _run_parts(builder, parts)
    first = builder.select(everything, _INT64(0), number)
    mine = builder.or_(alone, builder.not_(everything))
    last = builder.add(first, builder.zext(mine, _INT64))
    tasks = context.make_helper(builder, types.range_state64_type)
    tasks.start = builder.sdiv(builder.mul(count, first), parts)
    tasks.stop = builder.sdiv(builder.mul(count, last), parts)
    tasks.step = _INT64(1)
    return tasks._getvalue()


def _run_parts(builder: Any, threads: Any) -> None:
    """Calls the function that is being built, on all threads until no part is left."""
    kernel = builder.function
    arguments = kernel.args[2:-2]  # the last two are the part
    exception = kernel.args[1].type.pointee
    kind = ir.LiteralStructType([_INT64, _INT64, _INT32, exception, *(a.type for a in arguments)])
    shared = cgutils.alloca_once(builder, kind)
    parts = builder.mul(threads, _INT64(_PARTS_PER_THREAD))
    values = [_INT64(0), parts, _INT32(0), exception(None), *arguments]
    for place, value in enumerate(values):
        builder.store(value, cgutils.gep_inbounds(builder, shared, 0, place))
    # The function that Numba's threads run, as for a NumPy ufunc: one turn per thread, without
    # arrays. It gets all that it needs in `data`.
    function = _take_parts(builder.module, kernel, kind)
    turns = cgutils.alloca_once_value(builder, threads)
    start = cgutils.get_or_insert_function(
        builder.module,
        ir.FunctionType(ir.VoidType(), [_POINTER] * 5 + [_INT64] * 3),
        "numba_parallel_for",
    )
    nothing = _POINTER(None)
    pointers = [builder.bitcast(pointer, _POINTER) for pointer in (function, turns, shared)]
    builder.call(
        start,
        [pointers[0], nothing, pointers[1], nothing, pointers[2], _INT64(0), _INT64(0), threads],
    )
    code = builder.load(cgutils.gep_inbounds(builder, shared, 0, _CODE))
    with builder.if_then(builder.icmp_signed("!=", code, _INT32(0)), likely=False):
        reason = builder.load(cgutils.gep_inbounds(builder, shared, 0, _EXCEPTION))
        builder.store(reason, kernel.args[1])
        builder.ret(code)


def _take_parts(module: Any, kernel: Any, kind: Any) -> Any:
    """A function that calls the kernel with the next part until none is left or one failed."""
    signature = ir.FunctionType(ir.VoidType(), [_POINTER] * 4)
    function = ir.Function(module, signature, name=module.get_unique_name("take_parts"))
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block())
    shared = builder.bitcast(function.args[3], kind.as_pointer())

    def field(place: int) -> Any:
        return cgutils.gep_inbounds(builder, shared, 0, place)

    arguments = [builder.load(field(place)) for place in range(_ARGUMENTS, len(kind.elements))]
    parts = builder.load(field(_PARTS))
    result = builder.alloca(kernel.args[0].type.pointee)
    exception = builder.alloca(kernel.args[1].type.pointee)
    take, call, failed, done = (function.append_basic_block() for _ in range(4))
    builder.branch(take)
    builder.position_at_end(take)
    number = builder.atomic_rmw("add", field(_NEXT), _INT64(1), "monotonic")
    builder.cbranch(builder.icmp_signed("<", number, parts), call, done)
    builder.position_at_end(call)
    code = builder.call(kernel, [result, exception, *arguments, number, parts])
    builder.cbranch(builder.icmp_signed("==", code, _INT32(0)), take, failed)
    builder.position_at_end(failed)
    builder.store(builder.load(exception), field(_EXCEPTION))
    builder.store(code, field(_CODE))
    builder.branch(done)
    builder.position_at_end(done)
    builder.ret_void()
    return function
