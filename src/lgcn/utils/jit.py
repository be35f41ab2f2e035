"""Numba's compiler with the options that all kernels share, and a cache that cannot fail.

Compiled kernels are kept on disk (`lgcn.training.warmup` says where). If no folder can be
written to, or the disk is full, each process compiles them again, with one warning. A damaged file
is ignored.

The logger `lgcn.compile` is told of each kernel before it is compiled and kept.
"""

# mypy: disable-error-code="untyped-decorator"

import contextlib
import functools
import hashlib
import inspect
import logging
import pickle
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    NullCache,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.core.registry import CPUDispatcher

from lgcn.utils import ahead
from lgcn.utils.share import ALL, VERSION

_log = logging.getLogger("lgcn.compile")
_told = False


def jit(function: Callable[..., Any]) -> Any:
    """Compiles a kernel on first use and keeps it in Numba's cache folder, if there is one."""
    return _compiled(function)


def jit_part(function: Callable[..., Any]) -> Any:
    """A part of kernels in the same file, which alone call it: neither wrapped nor kept."""
    return numba.njit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)


def jit_inlined(function: Callable[..., Any]) -> Any:
    """As `jit_part`, put where it is called before anything is compiled, which is faster."""
    return numba.njit(nogil=True, inline="always")(function)


def jit_parallel(function: Callable[..., Any]) -> Any:
    """Like `jit`, for a kernel that runs on several threads, and changes arrays.

    Its last parameter is `part`, which callers leave out. Its loop over tasks is
    ``for task in share(count, part)`` (see `lgcn.utils.share`). What is before the loop is run by
    every call. There is one such loop, and nothing behind it.
    """
    if [*inspect.signature(function).parameters][-1] != "part":
        raise TypeError(f"the last parameter of {function.__qualname__} must be part")
    _start_threads()
    kernel = _compiled(function)
    kernel.__class__ = _ParallelKernel
    return kernel


@functools.cache
def _start_threads() -> None:
    """Starts Numba's threads, once, and keeps torch's number of threads.

    Numba and torch share one OpenMP, and Numba sets its number of threads when it starts. That
    would change torch's summation order, and with it the last bits of all results.
    """
    import torch  # takes a second

    torch_threads = torch.get_num_threads()
    numba.get_num_threads()
    torch.set_num_threads(torch_threads)


def _compiled(function: Callable[..., Any]) -> Any:
    kernel = numba.njit(nogil=True)(function)
    try:
        kernel._cache = _Cache(function)
    except RuntimeError:  # Numba found no folder that it can write to
        kernel._cache = _NoCache()
    return kernel


class _ParallelKernel(CPUDispatcher):  # type: ignore[misc]
    """A kernel that several Python threads may call.

    Numba's threading layer "workqueue", used if neither OpenMP nor TBB is installed, aborts the
    process when two kernels run at once.
    """

    def __call__(self, *args: Any) -> Any:
        everything = (ALL, numba.get_num_threads())
        if _thread_safe():
            return super().__call__(*args, everything)
        with _one_at_a_time:
            return super().__call__(*args, everything)


_one_at_a_time = threading.Lock()


def _thread_safe() -> bool:
    try:
        layer = numba.threading_layer()
    except ValueError:  # its threads have not started
        numba.get_num_threads()  # starts them
        layer = numba.threading_layer()
    return bool(layer != "workqueue")


class _ReadOnlyLocator:
    """A cache folder that can be read but not written to, as in a container image."""

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> Any:
        for kind in (UserProvidedCacheLocator, InTreeCacheLocator, UserWideCacheLocator):
            if kind is UserProvidedCacheLocator and not numba.config.CACHE_DIR:
                continue
            locator = kind(function, path)
            if any(Path(locator.get_cache_path()).glob(f"*.{function.__qualname__}-*.nbi")):
                return locator
        return None


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (*CompileResultCacheImpl._locator_classes, _ReadOnlyLocator)

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        """Our own names, since the format differs from Numba's."""
        base: str = super().get_filename_base(fullname, abiflags)
        return f"{base}-checked-{VERSION}"


class _CacheFile(IndexDataCacheFile):  # type: ignore[misc]
    """Files whose key and hash are checked before they are used.

    Numba runs whatever it finds. After a power failure, or if two processes wrote an index at the
    same time, that may be another kernel or garbage.
    """

    def save(self, key: Any, data: Any) -> None:
        super().save(key, (key, data))

    def load(self, key: Any) -> Any:
        found = super().load(key)
        return found[1] if found is not None and found[0] == key else None

    def _save_data(self, name: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(self._data_path(name)) as file:
            file.write(hashlib.sha256(content).digest() + content)

    def _load_data(self, name: str) -> Any:
        stored = Path(self._data_path(name)).read_bytes()
        digest, content = stored[:32], stored[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        return pickle.loads(content)


class _NoCache(NullCache):  # type: ignore[misc]
    def save_overload(self, sig: Any, data: Any) -> None:
        _tell("no folder for Numba's cache can be written to")


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache that no state of the disk turns into an error."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(
            cache_path=self._cache_path,
            filename_base=self._impl.filename_base,
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._load(sig, target_context)
        if found is None and ahead.wait(self._py_func.__module__):
            found = self._load(sig, target_context)
        if found is None:
            _log.info("compiling %s", self._py_func.__qualname__)
        return found

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged pickle can raise anything
            with contextlib.suppress(OSError):
                self.flush()  # the damaged index, which saving would read as well
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(f"Numba's cache cannot be written ({error})")


def worth_compiling_ahead(file: Path, kernel: str) -> bool:
    """Whether a kernel of a source file is missing in a cache folder that can be written to.

    Reads names and times alone, and imports nothing: the file may have changed since, or the
    kernel may be there for other types.
    """

    def stand_in() -> None:
        pass

    stand_in.__qualname__ = kernel
    for kind in _CacheImpl._locator_classes:
        locator = kind.from_function(stand_in, str(file))
        if locator is not None:
            break
    else:
        return False
    indices = Path(locator.get_cache_path()).glob(f"{file.stem}.{kernel}-*.nbi")
    changed = file.stat().st_mtime
    missing = all(index.stat().st_mtime < changed for index in indices)
    return missing and not isinstance(locator, _ReadOnlyLocator)


def _tell(why: str) -> None:
    global _told
    if _told:
        return
    _told = True
    warnings.warn(
        f"{why}: kernels are compiled again in every process, which takes some seconds. "
        "Set NUMBA_CACHE_DIR to a folder that can be written to",
        stacklevel=2,
    )
