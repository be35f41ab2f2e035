"""Opening a graph store on disk without reading it into memory."""

from __future__ import annotations

import mmap
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import DataError
from lgcn.graph import Graph
from lgcn.graph.csr import sparse_features
from lgcn.graph.cut import NODE_TENSORS
from lgcn.store.checked_files import check_end, check_size, digests, open_file, read_header
from lgcn.store.format import DTYPES, OFFSETS, Array, file_of
from lgcn.utils.limits import FEATURE_BYTES
from lgcn.utils.memory import check_memory

_MAP_NORESERVE = 0x4000  # on Linux; Python names it from 3.13 on


class Store:
    """A graph on disk, opened by `open_store`.

    Attributes:
        path: The folder.
        header: The content of `header.json`.
        graph: The graph. Its tensors are memory maps of the files. Writing to a tensor does not
            change the files, and the files must not change while the graph is in use. Its
            `node_ids` is `None`; use the method `node_ids` of the store.
        arrays: The arrays as the files have them, mapped; bfloat16 as its bits in uint16.
        dtypes: The type of each array by name, see `lgcn.store.format`.
    """

    def __init__(self, path: Path, header: dict[str, Any], arrays: dict[str, Array]) -> None:
        self.path = path
        self.header = header
        self.arrays = {name: _map(path, name, array) for name, array in arrays.items()}
        self.dtypes = {name: array.dtype for name, array in arrays.items()}
        self.graph = self._graph()

    def _graph(self) -> Graph:
        names = self.header["label_names"]
        scale = None
        if "x_scale" in self.arrays:
            scale = torch.stack([self._tensor("x_scale"), self._tensor("x_offset")])
        same = (*NODE_TENSORS, "edge_weight", "degree", "ptr", "n_id")
        tensors: dict[str, Any] = {name: self._tensor(name) for name in same if name in self.arrays}
        return Graph._trusted(
            self._tensor("rowptr"),
            self._tensor("col"),
            x=self._features(),
            feature_scale=scale,
            label_names=None if names is None else tuple(names),
            encoder=self._encoder(),
            name=self.header["name"],
            **tensors,
        )

    def _features(self) -> Tensor | None:
        if "x" in self.arrays:
            return self._tensor("x")
        if "x_col" not in self.arrays:
            return None
        parts = [self._tensor(name) for name in ("x_rowptr", "x_col", "x_values")]
        return sparse_features(parts[0], parts[1], parts[2], self.header["num_features"])

    def _encoder(self) -> Any:
        stored = self.header["encoder"]
        if stored is None:
            return None
        from lgcn.tables.encoder import FeatureEncoder  # imports pyarrow

        encoder = FeatureEncoder.from_dict(stored)
        if encoder.num_features != self.header["num_features"]:
            raise DataError(
                f"{self.path}: the encoder makes {encoder.num_features} features, but there are "
                f"{self.header['num_features']}"
            )
        return encoder

    def _tensor(self, name: str) -> Tensor:
        tensor = torch.from_numpy(self.arrays[name])
        return tensor.view(torch.bfloat16) if self.dtypes[name] == "bfloat16" else tensor

    def node_ids(self, start: int, stop: int) -> Any:
        """The user's ids of the nodes from `start` up to `stop`, as an Arrow array.

        Its type is int64 or large_string. If a store has no ids, they are node numbers.
        """
        import pyarrow as pa

        if not 0 <= start <= stop <= self.graph.num_nodes:
            raise ValueError(
                f"nodes must lie between 0 and {self.graph.num_nodes}, got start {start} and "
                f"stop {stop}"
            )
        if "ids" in self.arrays:
            return pa.array(self.arrays["ids"][start:stop])
        if "ids_bytes" not in self.arrays:
            return pa.array(np.arange(start, stop))
        offsets = np.array(self.arrays["ids_offsets"][start : stop + 1])
        data = np.array(self.arrays["ids_bytes"][offsets[0] : offsets[-1]])
        offsets -= offsets[0]
        ids = pa.LargeStringArray.from_buffers(
            len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(data)
        )
        try:
            ids.validate(full=True)
        except pa.ArrowInvalid as error:
            raise DataError(
                f"{file_of(self.path, 'ids_bytes')} must hold strings in UTF-8: {error}"
            ) from None
        return ids

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, {self.graph!r})"


def open_store(path: str | Path, *, verify: bool = True) -> Store:
    """Opens a graph store without reading it into memory.

    Args:
        path: Folder of the store.
        verify: Read all files once, compare them with their checksums, and check every number that
            is used as an index. With `False`, only the header and the file sizes are checked. Use
            that only for a store that you wrote yourself and that nobody else had access to: a
            wrong number in it leads to invalid memory reads. (default: `True`)
    """
    folder = Path(path)
    header, arrays = read_header(folder)
    features = header["num_features"]
    check_memory(FEATURE_BYTES * features, f"{folder}: training on {features} features", DataError)
    for name, array in arrays.items():
        with open_file(file_of(folder, name)) as (_, size):
            check_size(file_of(folder, name), size, array)
    if verify:
        for name, digest in digests(folder, header, arrays).items():
            if digest != arrays[name].sha256:
                raise DataError(
                    f"{file_of(folder, name)} was altered: its checksum does not fit. "
                    "Write the store again"
                )
    store = Store(folder, header, arrays)
    for name, target in OFFSETS.items():
        if name in arrays:  # cheap, and so done without verify too
            length = arrays[target].shape[0] - (name == "ptr")
            check_end(folder, name, int(store.arrays[name][-1]), length)
    return store


def _map(folder: Path, name: str, array: Array) -> Any:
    """The array as the file has it, read from disk as it is used."""
    path = file_of(folder, name)
    if array.num_bytes == 0:  # nothing can be mapped
        return np.empty(array.shape, DTYPES[array.dtype])
    with open_file(path) as (handle, size):
        check_size(path, size, array)
        # Private: what a user writes to a tensor stays in memory; writing to a read-only map would
        # kill the process. No memory is reserved, since the file may be larger than that.
        if sys.platform == "linux":
            flags = mmap.MAP_PRIVATE | _MAP_NORESERVE
            mapped = mmap.mmap(handle, size, flags, mmap.PROT_READ | mmap.PROT_WRITE)
        else:
            mapped = mmap.mmap(handle, size, access=mmap.ACCESS_COPY)
        return np.frombuffer(mapped, DTYPES[array.dtype]).reshape(array.shape)
