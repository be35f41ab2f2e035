"""What a store on disk looks like.

A store is a folder of plain little-endian arrays, each in its own file (`rowptr.bin`), and
`header.json`, which says how long they are. It may come from a stranger, so nothing in it is
trusted: names of files follow from the names of arrays, which are those of `ARRAYS` and no
others, types and shapes must be the ones listed there, and all numbers that are used as an index
are read and compared with what they point into (`lgcn.store.checked_files`).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcn.errors import DataError
from lgcn.utils.stored_json import fields, strings, truth

FORMAT = 1
HEADER = "header.json"
FIELDS = (
    "format",
    "name",
    "num_nodes",
    "num_edges",
    "num_features",
    "directed",
    "label_names",
    "multi_label",
    "encoder",
    "source",
    "arrays",
    "sha256",
)

# How the numbers lie in the file. NumPy has no bfloat16: it sees the bits.
DTYPES: dict[str, Any] = {
    "bool": np.dtype(np.bool_),
    "uint8": np.dtype(np.uint8),
    "int32": np.dtype("<i4"),
    "int64": np.dtype("<i8"),
    "float16": np.dtype("<f2"),
    "bfloat16": np.dtype("<u2"),
    "float32": np.dtype("<f4"),
    "float64": np.dtype("<f8"),
}

_Shapes = dict[str, tuple[str, ...]]
_VECTOR: _Shapes = {"float32": ("N",)}
_MASK: _Shapes = {"bool": ("N",)}
_COLUMNS = ("int32", "int64")
# The arrays there can be, the types of each, and the shape it has then. N, E and F are nodes,
# entries of the adjacency and features; any other letter stands for one number throughout.
ARRAYS: dict[str, _Shapes] = {
    "rowptr": {"int64": ("N+1",)},
    "col": dict.fromkeys(_COLUMNS, ("E",)),
    "edge_weight": {"float32": ("E",)},
    "degree": _VECTOR,
    "x": dict.fromkeys(("float32", "float16", "bfloat16", "uint8"), ("N", "F")),
    "x_scale": {"float32": ("F",)},
    "x_offset": {"float32": ("F",)},
    "x_rowptr": dict.fromkeys(_COLUMNS, ("N+1",)),
    "x_col": dict.fromkeys(_COLUMNS, ("Z",)),
    "x_values": dict.fromkeys(("float32", "float16", "bfloat16"), ("Z",)),
    # Classes, labels, or the targets of a regression.
    "y": {"int64": ("N",), "uint8": ("N", "L"), "float64": ("N",)},
    "sample_weight": _VECTOR,
    "train_mask": _MASK,
    "val_mask": _MASK,
    "test_mask": _MASK,
    "ptr": {"int64": ("G",)},
    "ids": {"int64": ("N",)},
    "ids_offsets": {"int64": ("N+1",)},
    "ids_bytes": {"uint8": ("B",)},
    # Of a part of a graph (`lgcn.partition`): the numbers of the nodes in the whole graph, and the
    # part that owns each.
    "n_id": {"int64": ("N",)},
    "owner": {"int32": ("N",)},
}
# Version 0.1.0 wrote these for directed graphs. Nothing reads them, not even to check them.
UNUSED: dict[str, _Shapes] = {
    "transpose_rowptr": {"int64": ("N+1",)},
    "transpose_col": dict.fromkeys(_COLUMNS, ("E",)),
    "transpose_edge_weight": {"float32": ("E",)},
}
# Arrays that come together or not at all.
TOGETHER = (
    ("x_scale", "x_offset"),
    ("x_rowptr", "x_col", "x_values"),
    ("ids_offsets", "ids_bytes"),
    ("n_id", "owner"),
)
# What each list of offsets points into; ptr counts nodes.
OFFSETS = {
    "rowptr": "col",
    "x_rowptr": "x_col",
    "ids_offsets": "ids_bytes",
    "ptr": "rowptr",
}


class Array(NamedTuple):
    """One array of a store: its type as named in `DTYPES`, its shape, its checksum."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * int(DTYPES[self.dtype].itemsize)


def file_of(folder: Path, array: str) -> Path:
    return folder / f"{array}.bin"


def is_store(path: str | Path) -> bool:
    """Whether `path` looks like a store; `open_store` checks whether it is valid."""
    folder = Path(path)
    return (folder / HEADER).is_file() and file_of(folder, "rowptr").is_file()


def header_digest(header: Mapping[str, Any]) -> str:
    """The checksum of all other fields."""
    rest = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def check_header(header: Mapping[str, Any], where: str) -> dict[str, Array]:
    """The arrays of a header, after a check of its fields, also against each other."""
    for key in ("name", "sha256"):
        if not isinstance(header[key], str) or not header[key].isprintable():
            raise DataError(f"{key} of {where} must be a printable string")
    sizes = {}
    for key, letter in (("num_nodes", "N"), ("num_edges", "E"), ("num_features", "F")):
        sizes[letter] = _count(header[key], f"{key} of {where}")
    sizes["N+1"] = sizes["N"] + 1
    truth(header["directed"], f"directed of {where}")
    multi_label = truth(header["multi_label"], f"multi_label of {where}")
    if header["source"] is not None and not isinstance(header["source"], dict):
        raise DataError(f"source of {where} must be an object or null")
    listed = header["arrays"]
    known = ARRAYS | UNUSED
    if not isinstance(listed, dict) or not {"rowptr", "col"} <= set(listed) <= set(known):
        got = ", ".join(listed) if isinstance(listed, dict) else type(listed).__name__
        raise DataError(
            f"arrays of {where} must be rowptr, col and others of {', '.join(ARRAYS)}, "
            f"got {got!r:.300}"
        )
    arrays = {name: _array(name, listed[name], sizes, where) for name in listed if name in ARRAYS}
    if header["label_names"] is not None:
        names = strings(header["label_names"], f"label_names of {where}")
        if sizes.setdefault("L", len(names)) != len(names):
            raise DataError(f"{where} has {len(names)} label_names, but y has {sizes['L']} columns")
    _check_company(header, arrays, multi_label, sizes, where)
    return arrays


def _check_company(
    header: Mapping[str, Any],
    arrays: Mapping[str, Array],
    multi_label: bool,
    sizes: Mapping[str, int],
    where: str,
) -> None:
    """Checks that arrays that need one another are there, and none that exclude one another."""

    def refuse(wrong: bool, what: str) -> None:
        if wrong:
            raise DataError(f"{where}: {what}")

    for group in TOGETHER:
        there = [name for name in group if name in arrays]
        missing = ", ".join(set(group) - set(there))
        refuse(0 < len(there) < len(group), f"{', '.join(there)} must come with {missing}")
    x = arrays.get("x")
    refuse(x is not None and "x_col" in arrays, "features must be dense or sparse, not both")
    refuse(x is None and "x_scale" in arrays, "x_scale must come with x")
    refuse(
        x is not None and (x.dtype == "uint8") != ("x_scale" in arrays),
        "x must be uint8 if and only if there is x_scale",
    )
    refuse(
        x is None and "x_col" not in arrays and sizes["F"] > 0,
        f"num_features must be 0 if there are no features, got {sizes['F']}",
    )
    refuse("ids" in arrays and "ids_bytes" in arrays, "ids must be numbers or strings, not both")
    y = arrays.get("y")
    refuse(
        multi_label != (y is not None and y.dtype == "uint8"),
        "multi_label must be true if and only if y is a matrix of labels",
    )
    refuse(
        y is not None and y.dtype == "float64" and header["label_names"] is not None,
        "label_names must be null if y holds numbers",
    )
    for name, count in (("col", sizes["N"]), ("x_col", sizes["F"])):
        refuse(
            name in arrays and arrays[name].dtype == "int32" and count > 2**31,
            f"{name} must be int64 from 2**31 on",
        )
    refuse("ptr" in arrays and arrays["ptr"].shape[0] < 2, "ptr must have two entries or more")
    refuse(header["encoder"] is not None and sizes["F"] == 0, "an encoder must come with features")


def _array(name: str, listed: Any, sizes: dict[str, int], where: str) -> Array:
    what = f"{name} in {where}"
    fields(listed, what, "dtype", "shape", "sha256")
    dtype, shape, digest = listed["dtype"], listed["shape"], listed["sha256"]
    if not isinstance(dtype, str) or dtype not in ARRAYS[name]:
        raise DataError(f"{what} must be {' or '.join(ARRAYS[name])}, got {dtype!r:.80}")
    dims = ARRAYS[name][dtype]
    if not isinstance(shape, list) or len(shape) != len(dims):
        raise DataError(f"{what} must have a shape of {len(dims)} numbers, got {shape!r:.80}")
    if not isinstance(digest, str):
        raise DataError(f"{what} must have a string as sha256")
    for letter, size in zip(dims, shape, strict=True):
        _count(size, f"shape of {what}")
        if sizes.setdefault(letter, size) != size:
            raise DataError(
                f"{what} must have shape {[sizes.get(d, d) for d in dims]} to fit the other "
                f"arrays, got {shape}"
            )
    array = Array(dtype, tuple(shape), digest)
    if array.num_bytes >= 2**62:
        raise DataError(f"{what} has a shape that no disk can hold: {shape}")
    return array


def _count(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise DataError(f"{what} must be a whole number from 0 on, got {value!r:.80}")
    return value
