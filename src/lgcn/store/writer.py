"""Writing a store, so that no partial one ever looks complete."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph.csr import CSR, row_sums
from lgcn.store.checked_files import digests
from lgcn.store.format import (
    ARRAYS,
    DTYPES,
    FORMAT,
    HEADER,
    check_header,
    file_of,
    header_digest,
)
from lgcn.store.new_folder import NewFolder, plain_errors
from lgcn.utils.files import (
    sync,
)
from lgcn.utils.row_blocks import row_blocks_within

_BLOCK = 1 << 22  # values converted at a time


class StoreWriter:
    """Writes a store into a folder beside `path`, which takes that name when it is complete.

    Use it in a `with` statement: if the block ends before `finish`, what was written is
    removed. What a killed writer left is removed by the next one for the same `path`.

    Args:
        path: Folder of the store. Folders above it are created as needed.
        overwrite: Replace an existing store, once the new one is complete.
            (default: `False`)
        shown: The path that messages name. (default: `path`)
    """

    def __init__(
        self, path: str | Path, *, overwrite: bool = False, shown: Path | None = None
    ) -> None:
        self._place = NewFolder(path, overwrite=overwrite, shown=shown)
        self.path, self.folder = self._place.path, self._place.folder
        self._shown = self._place.shown
        self._shapes: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._open: dict[str, Appender] = {}

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for appender in self._open.values():
            appender.close()
        self._place.__exit__(kind, error, trace)

    @property
    def scratch(self) -> Path:
        """A folder for files that are needed until `finish`, on the disk of the store."""
        folder = self.folder / "scratch"
        folder.mkdir(exist_ok=True)
        return folder

    def append(self, name: str, dtype: str, width: int | None = None) -> Appender:
        """A new array that is written from its first entry to its last.

        Args:
            name: One of `lgcn.store.format.ARRAYS`.
            dtype: One that the array may have.
            width: Values per row, for a matrix. (default: a vector)
        """
        path = self._new(name, dtype)
        with plain_errors(self._shown):
            self._open[name] = Appender(path, dtype, width, self._shown)
        return self._open[name]

    def finish(
        self,
        *,
        name: str = "graph",
        directed: bool = False,
        label_names: Sequence[str] | None = None,
        encoder: Any = None,
        num_features: int | None = None,
        source: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Checks and hashes all arrays, writes the header, and gives the store its name.

        Args:
            name: The graph's name.
            directed: Whether an edge does not imply its reverse.
            label_names: See `lgcn.Graph`. (default: none)
            encoder: A `FeatureEncoder`, or what its `to_dict` gives. (default: none)
            num_features: Of sparse features. (default: the columns of `x`)
            source: Anything JSON can hold on where the graph comes from. (default: nothing)

        Returns:
            The header.
        """
        with plain_errors(self._shown):
            self._close_appenders()
            if not {"rowptr", "col"} <= set(self._shapes):
                raise ValueError(
                    f"a store must have rowptr and col, got {', '.join(self._shapes) or 'neither'}"
                )
            if "degree" not in self._shapes:
                self._write_degrees()
            sizes = {key: value[1] for key, value in self._shapes.items()}
            if num_features is None:
                num_features = sizes["x"][1] if "x" in sizes else 0
            header: dict[str, Any] = {
                "format": FORMAT,
                "name": name,
                "num_nodes": sizes["rowptr"][0] - 1,
                "num_edges": sizes["col"][0],
                "num_features": num_features,
                "directed": directed,
                "label_names": None if label_names is None else list(label_names),
                "multi_label": len(sizes.get("y", ())) == 2,
                "encoder": encoder.to_dict() if hasattr(encoder, "to_dict") else encoder,
                "source": source,
                "arrays": {
                    key: {"dtype": dtype, "shape": list(shape), "sha256": ""}
                    for key, (dtype, shape) in self._shapes.items()
                },
                "sha256": "",
            }
            arrays = check_header(header, str(self._shown))
            for key, digest in digests(self.folder, header, arrays).items():
                header["arrays"][key]["sha256"] = digest
            header = json.loads(json.dumps(header, allow_nan=False))  # as a reader will see it
            header["sha256"] = header_digest(header)
            if (self.folder / "scratch").exists():
                shutil.rmtree(self.folder / "scratch")
            text = json.dumps(header, indent=1) + "\n"
            (self.folder / HEADER).write_text(text, encoding="utf-8")
            for path in [*self.folder.iterdir(), self.folder]:
                sync(path)
            self._place.take_name()
        return header

    def _new(self, name: str, dtype: str) -> Path:
        if name not in ARRAYS or name in self._shapes or name in self._open:
            raise ValueError(f"an array must be named once, and be one of {', '.join(ARRAYS)}")
        if dtype not in ARRAYS[name]:
            raise ValueError(f"{name} must be {' or '.join(ARRAYS[name])}, got {dtype}")
        return file_of(self.folder, name)

    def _close_appenders(self) -> None:
        for name, appender in self._open.items():
            appender.close()
            self._shapes[name] = (appender.dtype, appender.shape)
        self._open = {}

    def _write_degrees(self) -> None:
        """The sums of the rows, a block of rows at a time."""
        rowptr, col = self._read("rowptr"), self._read("col")
        weight = self._read("edge_weight") if "edge_weight" in self._shapes else None
        degree = self.append("degree", "float32")
        for start, stop in row_blocks_within(_BLOCK, len(rowptr) - 1, 1, rowptr, 1):
            rows = CSR(rowptr, col, weight).rows(start, stop)
            degree.write(row_sums(rows).float().numpy())
        self._close_appenders()

    def _read(self, name: str) -> Tensor:
        dtype, shape = self._shapes[name]
        if 0 in shape:
            return torch.from_numpy(np.empty(shape, DTYPES[dtype]))
        path = file_of(self.folder, name)
        return torch.from_numpy(np.memmap(path, DTYPES[dtype], "r+", shape=shape))


class Appender:
    """An array that grows, see `StoreWriter.append`."""

    def __init__(self, path: Path, dtype: str, width: int | None, store: Path) -> None:
        self.dtype = dtype
        self._dtype = DTYPES[dtype]
        self.width = width
        self._store = store
        self._length = 0
        self._file = path.open("xb", buffering=0)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self._length,) if self.width is None else (self._length, self.width)

    def write(self, values: Any) -> None:
        """Adds entries, or rows of a matrix, of exactly the array's type."""
        values = np.ascontiguousarray(values)
        width = () if self.width is None else (self.width,)
        if values.dtype != self._dtype or values.shape[1:] != width or values.ndim < 1:
            raise ValueError(
                f"values must be {self._dtype} in shape [n, *{width}], got {values.dtype} in "
                f"shape {values.shape}"
            )
        self._length += values.shape[0]
        view = memoryview(values.reshape(-1).view(np.uint8))
        with plain_errors(self._store):
            while len(view):  # a write may be partial
                view = view[self._file.write(view) :]

    def close(self) -> None:
        self._file.close()
