"""NumPy files from strangers: nothing in them is run, and damage is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.errors import DataError, first_line_of


def read_npy(path: Path) -> Any:
    """The array in a ``.npy`` file."""
    try:
        array = np.load(path, allow_pickle=False)
    except Exception as error:  # np.load raises many kinds on damaged files
        raise DataError(
            f"{path} is not a readable .npy file: {first_line_of(error)}. Fetch it again"
        ) from error
    if not isinstance(array, np.ndarray):
        raise DataError(f"{path} must hold a single array, got a .npz archive")
    return array


def read_npz(path: Path, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """The named arrays in a ``.npz`` file; absent optional ones are left out."""
    try:
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # as above
        raise DataError(
            f"{path} is not a readable .npz file: {first_line_of(error)}. Fetch it again"
        ) from error
    if isinstance(archive, np.ndarray):
        raise DataError(f"{path} must be an .npz archive, got a single array")
    arrays = {}
    with archive:
        absent = [name for name in required if name not in archive.files]
        if absent:
            raise DataError(
                f"{path} must hold the arrays {', '.join(required)}; {', '.join(absent)} missing, "
                f"got {', '.join(archive.files) or 'none'}"
            )
        for name in (*required, *optional):
            if name in archive.files:
                try:
                    arrays[name] = archive[name]
                except Exception as error:  # as above
                    raise DataError(
                        f"{path}: cannot read the array {name}: {first_line_of(error)}. "
                        "Fetch the file again"
                    ) from error
    return arrays


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
    """Returns ``array`` if it holds finite numbers of the wanted shape and range.

    Args:
        array: What to check.
        name, path: Named in the error.
        shape: Length of every dimension, ``None`` where any will do.
        integer: Whether only integers will do. (default: any real numbers)
        low, high: Smallest and largest value that is allowed. (default: any)
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
