"""A temporary list of edges on disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.utils.limits import MAX_INT32
from lgcn.utils.row_blocks import row_blocks


class EdgeSpool:
    """Edges on disk in the order they came, to be read again: numbers of nodes, or ids.

    Numbers take four bytes each until one comes that needs eight.

    Args:
        folder: Where its files are.
        weighted: Whether edges have weights.
        name: Begins the files' names. (default: "spool")
    """

    def __init__(self, folder: Path, *, weighted: bool, name: str = "spool") -> None:
        parts = ("source", "target", "weight") if weighted else ("source", "target")
        self._paths = [folder / f"{name}-{part}" for part in parts]
        self._files = [path.open("wb") for path in self._paths]
        self.dtype: Any = np.dtype(np.int32)
        self.weighted = weighted
        self.num_edges = 0

    def add(self, source: Any, target: Any, weight: Any = None) -> None:
        """Writes edges: integers, and finite weights of at least 0 if the spool has weights."""
        if self.dtype == np.int32 and not (_is_narrow(source) and _is_narrow(target)):
            self._widen()
        ends = [np.ascontiguousarray(end, self.dtype) for end in (source, target)]
        parts = [*ends, np.ascontiguousarray(weight, np.float32)] if self.weighted else ends
        for file, part in zip(self._files, parts, strict=True):
            file.write(part.data.cast("B"))
        self.num_edges += len(source)

    def _widen(self) -> None:
        self.dtype = np.dtype(np.int64)
        for i in range(2):
            self._files[i].close()
            narrow = self._paths[i].with_suffix(".narrow")
            self._paths[i].rename(narrow)
            self._files[i] = self._paths[i].open("wb")
            with narrow.open("rb") as file:
                while len(part := np.fromfile(file, np.int32, 1 << 18)):
                    self._files[i].write(part.astype(np.int64).data.cast("B"))
            narrow.unlink()

    def chunks(self, size: int) -> Iterator[tuple[Any, Any, Any]]:
        """(sources, targets, weights) of `size` edges at a time; `None` for no weights."""
        for file in self._files:
            file.flush()
        readers = [path.open("rb") for path in self._paths]
        kinds = (self.dtype, self.dtype, np.float32)
        try:
            for start, stop in row_blocks(self.num_edges, size):
                files = zip(readers, kinds, strict=False)
                parts = [np.fromfile(file, kind, stop - start) for file, kind in files]
                yield parts[0], parts[1], parts[2] if self.weighted else None
        finally:
            for reader in readers:
                reader.close()

    def remove(self) -> None:
        """Deletes the files."""
        for file, path in zip(self._files, self._paths, strict=True):
            file.close()
            path.unlink(missing_ok=True)


def _is_narrow(numbers: Any) -> bool:
    if numbers.dtype.itemsize < 4 or numbers.dtype == np.int32 or len(numbers) == 0:
        return True
    return int(numbers.min()) >= -MAX_INT32 and int(numbers.max()) <= MAX_INT32
