"""Counts what a function does on the CPU: operators, kernels, memory, and waits.

Counts are the same in every run, however busy the machine is.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any
from unittest.mock import patch

import torch
from numba.core.registry import CPUDispatcher
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lgcn.ops.cpu import launch

Counts = dict[str, Any]

# Methods of a tensor that read all of it without an operator that says so.
READS = ("tolist", "cpu")
aten = torch.ops.aten


def count(run: Callable[[], object]) -> Counts:
    """The counts of a call that is not the first, which would compile and look at structures.

    Returns:
        - **operators:** calls of torch's operators by name, also those within our operators
        - **kernels:** calls of Numba's kernels by name
        - **waits:** calls that read numbers from a tensor, for which a GPU is waited for
        - **allocations, bytes, peak_bytes:** memory of operators' results: how often, how much in
          all, and how much of it at a time
        - **kept_bytes:** what autograd keeps for the backward pass at a time, inputs included
    """
    run()
    with _without_collector():
        counts = _Counting()
        with counts.everything():
            run()
        kept = _Kept()
        with torch.autograd.graph.saved_tensors_hooks(kept.pack, _Saved.unpack):
            run()
    return {
        "operators": dict(sorted(counts.operators.items())),
        "kernels": dict(sorted(counts.kernels.items())),
        "waits": dict(sorted(counts.waits.items())),
        "allocations": counts.memory.allocations,
        "bytes": counts.memory.total,
        "peak_bytes": counts.memory.peak,
        "kept_bytes": kept.memory.peak,
    }


class _Memory:
    """Sizes of what is alive."""

    def __init__(self) -> None:
        self.sizes: Counter[int] = Counter()
        self.allocations = self.total = self.now = self.peak = 0

    def add(self, key: int, size: int) -> None:
        self.sizes[key] = size
        self.allocations += 1
        self.total += size
        self.now += size
        self.peak = max(self.peak, self.now)

    def free(self, key: int) -> None:
        self.now -= self.sizes.pop(key)


class _Counting(TorchDispatchMode):
    """Sees each operator, in forward and backward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.operators: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.memory = _Memory()
        self.arrays: set[int] = set()  # addresses of NumPy's
        self._within = False  # an operator, where the mode does not hold

    @contextlib.contextmanager
    def everything(self) -> Iterator[None]:
        """Counts all there is to count."""
        with contextlib.ExitStack() as stack:
            for name in READS:
                method = getattr(Tensor, name)
                counted = self._counted(method, name)
                stack.enter_context(patch.object(Tensor, name, counted))
            call = self._counted_kernel(CPUDispatcher.__call__)
            stack.enter_context(patch.object(CPUDispatcher, "__call__", call))
            stack.enter_context(patch.object(launch, "_empty", self._counted_array(launch._empty)))
            for name, function in inspect.getmembers(launch, inspect.isfunction):
                if function.__module__ == launch.__name__ and not name.startswith("_"):
                    stack.enter_context(patch.object(launch, name, self._inside(function)))
            stack.enter_context(self)
            yield

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        self.operators[str(func.name())] += 1
        if _waits(func, args, kwargs):
            self.waits[str(func.name())] += 1
        before, self._within = self._within, True
        try:
            out = func(*args, **kwargs)
        finally:
            self._within = before
        given = {_key(tensor) for tensor in _tensors((args, kwargs))}
        for tensor in _tensors(out):
            key, storage = _key(tensor), tensor.untyped_storage()
            known = key in given or key in self.memory.sizes
            if not known and storage.data_ptr() not in self.arrays:
                self.memory.add(key, storage.nbytes())
                weakref.finalize(storage, self.memory.free, key)
        return out

    def _counted(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        @wraps(method)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.waits[name] += 1
            return method(*args, **kwargs)

        return counted

    def _counted_kernel(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(kernel: Any, *args: Any, **kwargs: Any) -> Any:
            self.kernels[f"{kernel.__module__.removeprefix('lgcn.')}.{kernel.__name__}"] += 1
            return call(kernel, *args, **kwargs)

        return counted

    def _counted_array(self, empty: Callable[..., Any]) -> Callable[..., Any]:
        """Arrays that become results; as such they are not counted a second time."""

        def counted(*args: Any) -> Any:
            array = empty(*args)
            address = array.ctypes.data
            self.memory.add(-address, array.nbytes)
            self.arrays.add(address)
            weakref.finalize(array.base, self._free_array, address)
            return array

        return counted

    def _free_array(self, address: int) -> None:
        self.arrays.remove(address)
        self.memory.free(-address)

    def _inside(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function of our operators, within which the mode holds again."""

        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            if not self._within:
                return function(*args, **kwargs)
            self._within = False
            try:
                with self:
                    return function(*args, **kwargs)
            finally:
                self._within = True

        return inside


def _waits(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    """Whether the result, or its size, depends on values of a tensor."""
    if func is aten.index.Tensor:  # of places, or of a mask
        return any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
    if func is aten.repeat_interleave.Tensor and kwargs.get("output_size") is not None:
        return False
    tags = func.tags
    return torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags


class _Kept:
    """Hooks that see what autograd keeps. A storage that is kept twice counts once."""

    def __init__(self) -> None:
        self.memory = _Memory()
        self.holders: Counter[int] = Counter()

    def pack(self, tensor: Tensor) -> _Saved:
        key = _key(tensor)
        if self.holders[key] == 0:
            self.memory.add(key, tensor.untyped_storage().nbytes())
        self.holders[key] += 1
        # Without its history, or an output would keep itself alive.
        return _Saved(tensor.detach(), self._let_go)

    def _let_go(self, key: int) -> None:
        self.holders[key] -= 1
        if self.holders[key] == 0:
            self.memory.free(key)


class _Saved:
    def __init__(self, tensor: Tensor, let_go: Callable[[int], None]) -> None:
        self.tensor = tensor
        self.let_go = let_go

    def unpack(self) -> Tensor:
        return self.tensor

    def __del__(self) -> None:
        self.let_go(_key(self.tensor))


def _tensors(values: Any) -> list[Tensor]:
    """The tensors that have memory: of a sparse one, those that it consists of."""
    found = []
    for value in tree_leaves(values):
        if not isinstance(value, Tensor):
            continue
        if value.layout == torch.strided:
            found.append(value)
        elif value.layout == torch.sparse_csr:
            found += [value.crow_indices(), value.col_indices(), value.values()]
        else:
            found += [value._indices(), value._values()]
    return found


def _key(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """When Python's collector frees cycles depends on what ran before."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
