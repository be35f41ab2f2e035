"""Numba's compiler with the options that all kernels share."""

# mypy: disable-error-code="untyped-decorator"

import warnings
from collections.abc import Callable
from typing import Any

import numba
from numba.core.caching import FunctionCache

_told = False


def jit(function: Callable[..., Any]) -> Any:
    """Compiles a kernel on first use and keeps it in Numba's cache folder, where there is one."""
    return _compiled(function, parallel=False)


def jit_parallel(function: Callable[..., Any]) -> Any:
    """The same for a kernel whose ``prange`` loops run on several threads."""
    return _compiled(function, parallel=True)


def _compiled(function: Callable[..., Any], *, parallel: bool) -> Any:
    kernel = numba.njit(nogil=True, parallel=parallel)(function)
    try:
        kernel._cache = _Cache(function)
    except RuntimeError:  # Numba found no folder that it can write to
        _tell("no folder for Numba's cache can be written to")
    return kernel


class _Cache(FunctionCache):  # type: ignore[misc]
    """A cache that a full disk or a folder that became read-only does not turn into an error."""

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(f"Numba's cache cannot be written ({error})")


def _tell(why: str) -> None:
    global _told
    if _told:
        return
    _told = True
    warnings.warn(
        f"{why}: kernels are compiled anew in every process, which takes some seconds. "
        "Set NUMBA_CACHE_DIR to a folder that can be written to",
        stacklevel=2,
    )
