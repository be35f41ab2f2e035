"""Writing the arrays of several shards at once, each in one sequential pass over the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lgcn.partition.halo import Halos
from lgcn.store.format import ARRAYS, DTYPES
from lgcn.store.open_store import Store
from lgcn.store.writer import Appender, StoreWriter
from lgcn.utils.progress import OnProgress
from lgcn.utils.row_blocks import row_blocks, row_blocks_within

_MASKS = ("train_mask", "val_mask", "test_mask")
_PER_NODE = ("x", "y", "sample_weight", *_MASKS, "ids")
_WHOLE = ("x_scale", "x_offset")  # of a column, not of a node
# Offsets and what they point into.
_RAGGED = {"x_rowptr": ("x_col", "x_values"), "ids_offsets": ("ids_bytes",)}
_ENTRY_BYTES = 32  # of working memory per entry of a block of rows


class ShardFiles:
    """Writes what neighbouring parts need of a store.

    An array of a shard has the rows of owned nodes first and then those of the halo, so each is
    read twice.

    Args:
        store: The whole graph.
        halos: Those of the parts.
        writers: One for each part.
        block: Bytes to read at a time.
        on_progress: Called with the progress.

    Attributes:
        train: The number of training nodes of each part.
    """

    def __init__(
        self,
        store: Store,
        halos: Halos,
        writers: Sequence[StoreWriter],
        block: int,
        on_progress: OnProgress,
    ) -> None:
        self._store, self._halos, self._writers = store, halos, writers
        self._block, self._progress = block, on_progress
        self._num_nodes = len(halos.part)
        self.train = np.zeros(len(writers), np.int64)

    def write(self) -> None:
        """Writes all arrays."""
        arrays, graph = self._store.arrays, self._store.graph
        self._write_rows()
        # The degrees of the whole graph, which a store need not have.
        degree = arrays["degree"] if "degree" in arrays else graph.row_degree().float().numpy()
        self._write_nodes("degree", "float32", lambda start, stop: degree[start:stop])
        self._write_nodes("n_id", "int64", lambda start, stop: np.arange(start, stop))
        part = self._halos.part
        self._write_nodes("owner", "int32", lambda start, stop: part[start:stop])
        for name in _PER_NODE:
            if name in arrays:
                self._write_nodes(name, self._store.dtypes[name], self._reader(name))
        for offsets, values in _RAGGED.items():
            if offsets in arrays:
                self._write_ragged(offsets, values)
        for name in _WHOLE:
            if name in arrays:
                for file in self._files(name):
                    file.write(arrays[name])
                    file.close()

    def _reader(self, name: str) -> Callable[[int, int], Any]:
        array = self._store.arrays[name]
        return lambda start, stop: array[start:stop]

    def _files(self, name: str) -> list[Appender]:
        array, dtype = self._store.arrays.get(name), self._store.dtypes.get(name)
        dtype = dtype or next(iter(ARRAYS[name]))
        width = None if array is None or array.ndim == 1 else array.shape[1]
        return [writer.append(name, dtype, width) for writer in self._writers]

    def _write_rows(self) -> None:
        arrays = self._store.arrays
        rowptr, col, weight = arrays["rowptr"], arrays["col"], arrays.get("edge_weight")
        offsets, cols = self._files("rowptr"), self._files("col")
        weights = [] if weight is None else self._files("edge_weight")
        written = np.zeros(len(offsets), np.int64)
        for file in offsets:
            file.write(np.zeros(1, np.int64))
        none = np.empty(0, np.float32)
        blocks = list(row_blocks_within(self._block, self._num_nodes, 32, rowptr, _ENTRY_BYTES))
        for owned in (True, False):
            for start, stop in blocks:
                part = np.array(rowptr[start : stop + 1])
                entries = slice(part[0], part[-1])
                found = self._halos.rows(
                    start,
                    part,
                    col[entries],
                    none if weight is None else weight[entries],
                    owned=owned,
                )
                for p, (lengths, new_col, new_weight) in enumerate(found):
                    offsets[p].write(written[p] + np.cumsum(lengths))
                    written[p] += len(new_col)
                    cols[p].write(new_col)
                    if weights:
                        weights[p].write(new_weight)
                step = "write own rows" if owned else "write rows of the halos"
                self._progress(step, stop, self._num_nodes)
        for file in (*offsets, *cols, *weights):
            file.close()

    def _nodes(self, p: int, start: int, stop: int, *, owned: bool) -> Any:
        """The nodes of a part, or of its halo, from `start` up to `stop`, less `start`."""
        number = self._halos.first + p
        if owned:
            return np.flatnonzero(self._halos.part[start:stop] == number)
        return self._halos.nodes(number, start, stop)

    def _write_nodes(self, name: str, dtype: str, read: Callable[[int, int], Any]) -> None:
        """Writes an array with one row per node."""
        files = self._files(name)
        width = files[0].width or 1
        row_bytes = width * int(DTYPES[dtype].itemsize) + 16
        for owned in (True, False):
            for start, stop in row_blocks(self._num_nodes, self._block // row_bytes):
                values = read(start, stop)
                for p, file in enumerate(files):
                    chosen = values[self._nodes(p, start, stop, owned=owned)]
                    if name in _MASKS and not owned:
                        chosen = np.zeros_like(chosen)  # the split belongs to the owner
                    elif name == "train_mask":
                        self.train[p] += chosen.sum()
                    file.write(chosen)
                step = "write own nodes" if owned else "write nodes of the halos"
                self._progress(f"{step}: {name}", stop, self._num_nodes)
        for file in files:
            file.close()

    def _write_ragged(self, offsets: str, values: tuple[str, ...]) -> None:
        """Writes rows of different lengths: sparse features, or ids that are strings."""
        rowptr = self._store.arrays[offsets]
        arrays = [self._store.arrays[name] for name in values]
        starts, files = self._files(offsets), [self._files(name) for name in values]
        written = np.zeros(len(starts), np.int64)
        for file in starts:
            file.write(np.zeros(1, rowptr.dtype))
        blocks = list(row_blocks_within(self._block, self._num_nodes, 32, rowptr, _ENTRY_BYTES))
        for owned in (True, False):
            for start, stop in blocks:
                bounds = np.array(rowptr[start : stop + 1], np.int64)
                pieces = [array[bounds[0] : bounds[-1]] for array in arrays]
                bounds -= bounds[0]
                for p, file in enumerate(starts):
                    nodes = self._nodes(p, start, stop, owned=owned)
                    lengths = bounds[nodes + 1] - bounds[nodes]
                    ends = np.cumsum(lengths)
                    total = int(ends[-1]) if len(ends) else 0
                    entry = np.arange(total) + np.repeat(bounds[nodes] - ends + lengths, lengths)
                    file.write((written[p] + ends).astype(rowptr.dtype))
                    written[p] += total
                    for piece, to in zip(pieces, files, strict=True):
                        to[p].write(piece[entry])
                step = "write own nodes" if owned else "write nodes of the halos"
                self._progress(f"{step}: {values[0]}", stop, self._num_nodes)
        for file in (*starts, *(one for many in files for one in many)):
            file.close()
