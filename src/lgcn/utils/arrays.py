"""Reading NumPy files from untrusted sources: no code in them runs, and damage is reported."""

from __future__ import annotations

import math
import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from lgcn.errors import DataError, first_line_of
from lgcn.utils.files import open_plain
from lgcn.utils.limits import MAX_UNPACKED, MAX_UNPACKED_RATIO


def read_npy(path: Path) -> Any:
    """The array in a `.npy` file."""
    try:
        with open_plain(path) as file:
            if file.read(2) != b"PK":
                file.seek(0)
                _check_header(file, os.fstat(file.fileno()).st_size)
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # np.load raises many kinds on damaged files
        raise DataError(
            f"{path} is not a readable .npy file: {first_line_of(error)}. Fetch it again"
        ) from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} must hold a single array, got a .npz archive")
    return array


def read_npz(
    path: Path,
    required: Sequence[str],
    optional: Sequence[str] = (),
    *,
    limit: int | None = None,
) -> dict[str, Any]:
    """The named arrays in a `.npz` file; missing optional ones are omitted.

    Args:
        path: The file.
        required, optional: The names.
        limit: Bytes that the contents may have. (default: 200 times the size of the file, at least
            256 MiB)
    """
    try:
        open_plain(path).close()
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # as above
        raise DataError(
            f"{path} is not a readable .npz file: {first_line_of(error)}. Fetch it again"
        ) from error
    if isinstance(archive, np.ndarray):
        raise DataError(f"{path} must be an .npz archive, got a single array")
    arrays = {}
    with archive:
        _check_unpacked(path, archive.zip, limit)
        absent = [name for name in required if name not in archive.files]
        if absent:
            raise DataError(
                f"{path} must hold the arrays {', '.join(required)}; {', '.join(absent)} missing, "
                f"got {', '.join(archive.files) or 'none'}"
            )
        for name in (*required, *optional):
            if name in archive.files:
                try:
                    _check_member(archive.zip, name)
                    arrays[name] = archive[name]
                except Exception as error:  # as above
                    raise DataError(
                        f"{path}: cannot read the array {name}: {first_line_of(error)}. "
                        "Fetch the file again"
                    ) from error
    return arrays


def _check_unpacked(path: Path, archive: zipfile.ZipFile, known: int | None) -> None:
    """Refuses an archive whose contents are far larger than its file, or than is known."""
    limit = max(MAX_UNPACKED, MAX_UNPACKED_RATIO * path.stat().st_size) if known is None else known
    size = sum(member.file_size for member in archive.infolist())
    if size > limit and known is not None:
        raise DataError(f"{path} unpacks to {size} bytes, but should to at most {limit}")
    if size > limit:
        raise DataError(
            f"{path} unpacks to {size / 1e9:.1f} GB, more than {MAX_UNPACKED_RATIO} times its size "
            f"and {MAX_UNPACKED / 1e9:.2f} GB: it is damaged, or made to fill the memory. If it is "
            "yours, save it with np.savez, without compression"
        )


def _check_member(archive: zipfile.ZipFile, name: str) -> None:
    member = f"{name}.npy" if f"{name}.npy" in archive.namelist() else name
    with archive.open(member) as file:
        _check_header(file, archive.getinfo(member).file_size)


def _check_header(file: IO[bytes], size: int) -> None:
    """Raises ValueError if an array claims more bytes than its file has."""
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    elif version == (2, 0):
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    else:
        return  # NumPy writes other versions only for named fields
    if math.prod(shape) * dtype.itemsize > size:
        raise ValueError(
            f"the array claims {math.prod(shape) * dtype.itemsize} bytes, but there are {size}"
        )


def check_array(
    array: Any,
    name: str,
    path: Path,
    shape: Sequence[int | None],
    *,
    integer: bool = False,
    low: float | None = None,
    high: float | None = None,
) -> Any:
    """Returns `array` if it holds finite numbers of the wanted shape and range.

    Args:
        array: What to check.
        name, path: Named in the error.
        shape: Length of every dimension, `None` for any.
        integer: Whether to accept only integers. (default: all real numbers)
        low, high: Smallest and largest allowed value. (default: any)
    """
    fits = array.ndim == len(shape) and all(
        want in (None, got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits or array.dtype.kind not in ("iu" if integer else "iufb"):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise DataError(
            f"{path}: {name} must hold {'integers' if integer else 'numbers'} in shape [{wanted}], "
            f"got {array.dtype} in shape {list(array.shape)}"
        )
    if array.size:
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise DataError(f"{path}: {name} must hold finite numbers, got NaN or infinity")
        smallest, largest = array.min(), array.max()
        if (low is not None and smallest < low) or (high is not None and largest > high):
            wanted = f"at least {low}" if high is None else f"from {low} to {high}"
            raise DataError(f"{path}: {name} must be {wanted}, got {smallest} to {largest}")
    return array
