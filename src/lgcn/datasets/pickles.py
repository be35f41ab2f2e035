"""Reads the pickles of the Planetoid files without running anything that is in them.

A pickle is a program that may call any function by name. The few names that these files need map to
classes that only keep their arguments. Arrays are then built from these after checks, so that not
even NumPy sees unchecked input. Every other name is refused.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.errors import DataError, one_line
from lgcn.graph.features import checked_csr


class _Kept:
    """Keeps the arguments and the state that the pickle gives to a class or function."""

    args: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *args: Any) -> None:
        self.args = args

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Matrix(_Kept):
    pass


class _Array(_Kept):
    pass


class _DType(_Kept):
    pass


class _Dict(dict[Any, Any]):
    """A dict that the pickle fills; its constructor ignores all arguments."""

    def __init__(self, *args: Any) -> None:
        super().__init__()


class _List(_Kept):
    """The factory of a defaultdict. If it were called, it would copy lists without limit."""


class _Bytes(_Kept):
    """How Python 3 writes bytes for Python 2: a string, and the encoding that gives the bytes."""


ADMITTED: dict[str, type] = {
    "scipy.sparse.csr.csr_matrix": _Matrix,
    "scipy.sparse._csr.csr_matrix": _Matrix,
    "numpy.core.multiarray._reconstruct": _Array,
    "numpy._core.multiarray._reconstruct": _Array,
    "numpy.ndarray": _Array,
    "numpy.dtype": _DType,
    "_codecs.encode": _Bytes,
    "collections.defaultdict": _Dict,
    "__builtin__.list": _List,
    "builtins.list": _List,
}


# The unpickler written in Python: the one in C allocates memory by numbers in the file, so four
# damaged bytes could ask for 64 GB.
class _Unpickler(pickle._Unpickler):
    path: Path

    def find_class(self, module: str, name: str) -> Any:
        full_name = f"{module}.{name}"
        if full_name not in ADMITTED:
            raise DataError(
                f"{self.path} asks for {full_name}, which is not needed to store a graph and could "
                "run code. It was refused; fetch the file again from a source that you trust"
            )
        return ADMITTED[full_name]


def read_pickle(path: Path) -> Any:
    """A NumPy array, a SciPy CSR matrix, or a dict, whichever the file holds."""
    try:
        unpickler = _Unpickler(io.BytesIO(path.read_bytes()), encoding="latin1")
        unpickler.path = path
        value = unpickler.load()
        if isinstance(value, _Array):
            return _to_array(value)
        if isinstance(value, _Matrix):
            return _to_matrix(value, path)
    except DataError:
        raise
    except Exception as error:  # a damaged pickle can raise anything
        raise DataError(
            f"{path} is damaged or not a Planetoid file "
            f"({type(error).__name__}: {one_line(error)}). Fetch it again"
        ) from error
    if isinstance(value, dict):
        return value
    raise DataError(
        f"{path} must hold an array, a sparse matrix or a dict, got {type(value).__name__}"
    )


def _to_array(kept: Any) -> Any:
    _, shape, dtype, fortran_order, data = kept.state
    (code, *_), byte_order = dtype.args, dtype.state[1]
    if not re.fullmatch("[<>=|]", byte_order) or not re.fullmatch("f[48]|[iu][1248]|b1", code):
        raise ValueError(f"unknown array type {byte_order}{code}")
    if isinstance(data, _Bytes):
        data, encoding = data.args
        if encoding != "latin1":
            raise ValueError(f"unknown encoding {encoding}")
    if isinstance(data, str):
        data = data.encode("latin1")
    wanted = math.prod(shape) * np.dtype(code).itemsize
    if min(shape, default=0) < 0 or len(data) != wanted:
        raise ValueError(f"an array of shape {shape} needs {wanted} bytes, got {len(data)}")
    array = np.frombuffer(data, byte_order + code).reshape(
        shape, order="F" if fortran_order else "C"
    )
    return array.astype(array.dtype.newbyteorder("="))


def _to_matrix(kept: Any, path: Path) -> Any:
    state = kept.state
    rows, columns = state["_shape"]
    indptr, indices, values = (_to_array(state[key]) for key in ("indptr", "indices", "data"))
    return checked_csr(indptr, indices, values, (rows, columns), path)
