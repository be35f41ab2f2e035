"""Dropout that is fast on the CPU, where torch draws its random bits one after the other."""

# mypy: disable-error-code="untyped-decorator"

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lgcn.utils.generators import current_generator
from lgcn.utils.jit import jit
from lgcn.utils.splitmix import STEP, mix


def dropout(x: Tensor, p: float, training: bool = True, *, overwrite: bool = False) -> Tensor:
    """Sets entries to zero with probability p and scales the others by 1 / (1 - p).

    With equal seeds (`torch.manual_seed`), tensors of equal shape lose the same entries. On the
    CPU, p is exact to 2^-33. Types narrower than float32, other devices and the transforms of
    `torch.func` use torch's random numbers, so that other entries are lost.

    With `overwrite`, x itself may be changed and returned. For a large x, most of the time is
    spent on memory for another one.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"p must be a probability from 0 to 1, got {p}")
    if not training or p == 0:
        return x
    if torch.compiler.is_compiling():  # the compiler's own dropout knows no generator but torch's
        kept = torch.empty(x.shape, dtype=torch.bool, device=x.device)
        _draw_kept(kept, p)
        return torch.where(kept, x / (1 - p) if p < 1 else x, 0.0)
    if not draws_on_cpu(x):
        return torch_dropout(x, p)
    overwrite = overwrite and x.is_contiguous()
    dropped: Tensor = _Dropout.apply(x, p, _seed(), overwrite)  # type: ignore[no-untyped-call]
    return dropped


def torch_dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """`F.dropout` with the generators of a training run, for which it has no argument.

    On the CPU, the numbers are those of `F.dropout` from a global generator of the same seed.
    """
    if torch.compiler.is_compiling():
        return dropout(x, p, training)
    generator = current_generator(x.device)
    if generator is None or not training or not 0 < p < 1:
        return F.dropout(x, p, training)
    if x.is_cpu:
        return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator).div_(1 - p)
    kept = torch.empty(x.shape, dtype=torch.bool, device=x.device)
    kept.bernoulli_(1 - p, generator=generator)
    masked: Tensor = _Masked.apply(x, kept, 1 / (1 - p))  # type: ignore[no-untyped-call]
    return masked


def draws_on_cpu(x: Tensor) -> bool:
    """Whether `dropout` draws one number on the CPU for all of x, the seed of its kernel."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return x.is_cpu and x.dtype in (torch.float32, torch.float64)


def _seed() -> int:
    generator = current_generator(torch.device("cpu"))
    return int(torch.randint(2**63 - 1, (1,), generator=generator))


def drop_rows(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Sets whole rows to zero with probability p and scales the others by 1 / (1 - p)."""
    return _drop_parts(x, p, training, (x.size(0), 1))


def drop_whole(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Sets all of x to zero with probability p, otherwise scales it by 1 / (1 - p)."""
    return _drop_parts(x, p, training, ())


def drops_whole(p: float, after: int) -> bool:
    """Whether `drop_whole` would drop a tensor on the CPU, after so many calls of `dropout`.

    If so, their random numbers are used up, as if they had been called: what they would compute is
    not needed. Otherwise no number is used up.
    """
    generator = current_generator(torch.device("cpu")) or torch.default_generator
    before = generator.get_state()
    for _ in range(after):
        _seed()
    kept = torch.rand((), generator=generator) >= p
    if kept:
        generator.set_state(before)
    return not kept


def _drop_parts(x: Tensor, p: float, training: bool, parts: tuple[int, ...]) -> Tensor:
    """One draw per part of x. The shape `parts` is broadcast to that of x."""
    if not 0 <= p < 1:
        raise ValueError(f"p must be a probability below 1, got {p}")
    if not training or p == 0:
        return x
    if torch.compiler.is_compiling():
        numbers = torch.empty(parts, device=x.device)
        _draw_uniform(numbers)
    else:
        numbers = torch.rand(parts, device=x.device, generator=current_generator(x.device))
    kept = numbers >= p
    return x * (kept / (1 - p)).to(x.dtype)


# Opaque to torch.compile, which would draw from the global generator. The current generators are
# looked up when compiled code runs. Both write to an argument, since the compiler merges two calls
# that return a value for the same arguments.
@torch.library.custom_op("lgcn::draw_kept", mutates_args=("kept",))
def _draw_kept(kept: Tensor, p: float) -> None:
    """A mask of the entries that `dropout` keeps."""
    if kept.is_cpu:
        kept.copy_(dropout(torch.ones(kept.shape), p) != 0)
    else:
        kept.bernoulli_(1 - p, generator=current_generator(kept.device))


@torch.library.custom_op("lgcn::draw_uniform", mutates_args=("numbers",))
def _draw_uniform(numbers: Tensor) -> None:
    numbers.uniform_(generator=current_generator(numbers.device))


def zeros_of(x: Tensor, width: int, parameters: Iterable[Tensor]) -> Tensor:
    """Columns of zeros, one row per row of x, as if computed from parameters and dropped.

    The parameters then have gradients of zero. Without any, an optimiser would leave them out.
    """
    zeros: Tensor = _Zeros.apply(x, width, *parameters)  # type: ignore[no-untyped-call]
    return zeros


class _Zeros(torch.autograd.Function):
    """Columns of zeros with the gradient of a computation that was dropped: zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, width: int, *parameters: Tensor) -> Tensor:
        ctx.save_for_backward(*parameters)
        return x.new_zeros(x.size(0), width)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *map(torch.zeros_like, ctx.saved_tensors)


class _Masked(torch.autograd.Function):
    """x where it is kept, scaled. The mask takes a byte for each entry until the backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, kept: Tensor, scale: float) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.scale = scale
        # In one kernel. It is the map of a dropout's backward, and equally that of its forward.
        masked: Tensor = torch.ops.aten.native_dropout_backward(x, kept, scale)
        return masked

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (kept,) = ctx.saved_tensors
        return _Masked.apply(grad, kept, ctx.scale), None, None  # type: ignore[no-untyped-call]


class _Dropout(torch.autograd.Function):
    """The map is linear and diagonal, so the backward is the map itself: no mask is kept.

    There is no `setup_context`: with it a call takes twice as long for small tensors.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, seed: int, overwrite: bool) -> Tensor:
        ctx.p, ctx.seed = p, seed
        values = x.detach().contiguous().view(-1).numpy()
        scale = values.dtype.type(1 / (1 - p) if p < 1 else 0)
        keep = np.uint64(round((1 - p) * 2**32))
        if overwrite:
            ctx.mark_dirty(x)
            half = (values.size + 1) // 2
            _drop_in_place(values[:half], values[half:], np.uint64(seed), keep, scale)
            return x
        out = torch.empty(x.shape, dtype=x.dtype)
        _drop(values, np.uint64(seed), keep, scale, out.view(-1).numpy())
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        dropped = _Dropout.apply(grad, ctx.p, ctx.seed, False)  # type: ignore[no-untyped-call]
        return dropped, None, None, None


@jit
def _drop(x: Any, seed: Any, keep: Any, scale: Any, out: Any) -> None:
    """Keeps the entries for which 32 bits of SplitMix64 are below `keep`.

    That generator can start anywhere in its sequence, so the loop has no state and becomes SIMD
    code. Its i-th number has the bits of entry i and of the one half the tensor further on. It is
    one thread's work: two were no faster below several million entries.
    """
    count = x.shape[0]
    half = (count + 1) // 2
    zero = x.dtype.type(0)
    for i in range(half):
        z = mix(seed + np.uint64(i) * STEP)
        out[i] = x[i] * scale if (z >> np.uint64(32)) < keep else zero
        j = half + i
        if j < count:
            out[j] = x[j] * scale if (z & np.uint64(0xFFFFFFFF)) < keep else zero


@jit
def _drop_in_place(x: Any, y: Any, seed: Any, keep: Any, scale: Any) -> None:
    """The same for the first and the second half of a tensor.

    As separate arrays, which do not overlap: only then does the loop become SIMD code.
    """
    zero = x.dtype.type(0)
    for i in range(y.shape[0]):
        z = mix(seed + np.uint64(i) * STEP)
        x[i] = x[i] * scale if (z >> np.uint64(32)) < keep else zero
        y[i] = y[i] * scale if (z & np.uint64(0xFFFFFFFF)) < keep else zero
    for i in range(y.shape[0], x.shape[0]):  # the middle of an odd number
        z = mix(seed + np.uint64(i) * STEP)
        x[i] = x[i] * scale if (z >> np.uint64(32)) < keep else zero
