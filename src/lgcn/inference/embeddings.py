"""Files of node embeddings, written block by block."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from lgcn.inference.output_file import check_output
from lgcn.utils.files import atomic

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.utils.choices import Unit
    from lgcn.utils.progress import OnProgress

SUFFIXES = (".npy", ".parquet")


def embeddings_format(path: str | Path) -> str:
    """The format of a file of embeddings, see `lgcn.inference.output_file.check_output`."""
    return check_output(path, "embeddings", SUFFIXES)


def write_embeddings(
    embeddings: Tensor,
    path: str | Path,
    *,
    node_ids: Callable[[int, int], Any] | None = None,
    on_progress: OnProgress | None = None,
    unit: Unit = "node",
) -> None:
    """Writes one row per node to a `.npy` or a Parquet file; replaces a file there.

    A `.npy` file is a matrix with the nodes in their order, without ids. A Parquet file has the
    columns `node` and `embedding`, a list of numbers. The file appears once it is complete.

    Args:
        embeddings: One row per node, see `lgcn.nn.layerwise.layerwise`.
        path: The file.
        node_ids: Gives the ids of the nodes from `start` up to `stop`, as
            `lgcn.store.open_store.Store.node_ids` does. (default: their numbers)
        on_progress: Called after every block. (default: none)
        unit: What has embeddings, which is the name of the first column: `"node"`, or `"graph"`
            for whole graphs. (default: `"node"`)
    """
    suffix = embeddings_format(path)
    with atomic(Path(path)) as temporary, temporary.open("wb") as file:
        if suffix == ".npy":
            _write_npy(embeddings, file, on_progress)
        else:
            _write_parquet(embeddings, file, node_ids, on_progress, unit)


def _write_npy(embeddings: Tensor, file: IO[bytes], on_progress: OnProgress | None) -> None:
    from lgcn.nn.layerwise import read_blocks

    num_rows, width = embeddings.shape
    dtype = embeddings[:0].numpy().dtype
    header = {
        "descr": np.lib.format.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": (num_rows, width),
    }
    np.lib.format.write_array_header_1_0(file, header)
    for _, stop, rows in read_blocks(embeddings):
        file.write(rows.contiguous().numpy().data)
        _tell(on_progress, stop, num_rows)


def _write_parquet(
    embeddings: Tensor,
    file: IO[bytes],
    node_ids: Callable[[int, int], Any] | None,
    on_progress: OnProgress | None,
    unit: Unit,
) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    from lgcn.nn.layerwise import read_blocks

    writer = None
    try:
        for start, stop, rows in read_blocks(embeddings):
            ids = np.arange(start, stop) if node_ids is None else node_ids(start, stop)
            values = pa.array(rows.reshape(-1).numpy())
            column = pa.FixedSizeListArray.from_arrays(values, embeddings.shape[1])
            table = pa.table({unit: ids, "embedding": column})
            if writer is None:
                writer = parquet.ParquetWriter(file, table.schema)
            writer.write_table(table)
            _tell(on_progress, stop, embeddings.shape[0])
    finally:
        if writer is not None:
            writer.close()


def _tell(on_progress: OnProgress | None, done: int, total: int) -> None:
    if on_progress is not None:
        on_progress("embeddings", done, total)
