"""Compiles all Numba kernels before they are needed, so that no training waits for it.

Numba keeps compiled kernels in ``$NUMBA_CACHE_DIR`` if that is set, else beside the source files of
the package, else, if those folders cannot be written to, in the user's cache folder
(``~/.cache/numba`` on Linux). Later processes load them from there, until the source files, Numba
or the processor change. If none of these folders is writable, each process compiles the kernels
that are not there yet.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from lgcn.graph import Graph
from lgcn.graph.csr import has_self_loop
from lgcn.graph.padded import Form, sizes_of
from lgcn.ops import k_largest, spmm
from lgcn.ops.dropout import dropout
from lgcn.ops.k_largest import k_largest_grid
from lgcn.ops.structure import INDEX_DTYPES
from lgcn.sampling import NeighborLoader, RandomWalkLoader, select_subgraph
from lgcn.utils.progress import OnProgress

# Smaller types are computed in float32.
FLOAT_DTYPES = (torch.float32, torch.float64)
# Positions in a row are stored in 8, 16 or 32 bits, depending on the largest degree.
DEGREES = (2, 1 << 8, 1 << 16)
# Few features are selected by a kernel of their own.
CHANNELS = (1, 32)


class Warmup(NamedTuple):
    """What a warm-up did: the type signatures of each kernel, the folders, the time.

    ``folders`` is empty if no folder is writable: then nothing is kept.
    """

    compiled: dict[str, list[str]]
    cached: dict[str, list[str]]
    folders: list[str]
    seconds: float


def warmup(
    float_dtypes: Sequence[torch.dtype] = FLOAT_DTYPES,
    index_dtypes: Sequence[torch.dtype] = INDEX_DTYPES,
    on_progress: OnProgress | None = None,
) -> Warmup:
    """Compiles all kernels, or loads those that an earlier process compiled.

    Args:
        float_dtypes: Types of features and weights. (default: float32 and float64)
        index_dtypes: Types of ``rowptr`` and ``col``. (default: int32 and int64)
        on_progress: Called before each step, and once after the last. (default: none)
    """
    steps = list(_steps(float_dtypes, index_dtypes))
    tell = on_progress if on_progress is not None else lambda text, number, total: None
    start = time.perf_counter()
    for number, (text, run) in enumerate(steps):
        tell(text, number, len(steps))
        run()
    tell("done", len(steps), len(steps))
    stats = {name: kernel.stats for name, kernel in kernels().items()}
    return Warmup(
        compiled={name: [*map(str, s.cache_misses)] for name, s in stats.items() if s.cache_misses},
        cached={name: [*map(str, s.cache_hits)] for name, s in stats.items() if s.cache_hits},
        folders=sorted({s.cache_path for s in stats.values() if s.cache_path is not None}),
        seconds=time.perf_counter() - start,
    )


def kernels() -> dict[str, Any]:
    """All imported functions of this package that Numba compiles, by full name."""
    return {
        f"{module_name}.{name}": value
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith("lgcn.")
        for name, value in vars(module).items()
        if _is_kernel(value) and value.__module__ == module_name
    }


def _is_kernel(value: Any) -> bool:
    """Whether this is a kernel, and not a part of kernels, which is compiled and kept with them."""
    return isinstance(value, Dispatcher) and type(getattr(value, "_cache", None)) is not NullCache


def _steps(
    float_dtypes: Sequence[torch.dtype], index_dtypes: Sequence[torch.dtype]
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Calls of library functions that use the kernels with the types that occur in practice."""
    yield "tables", _tables
    for index_dtype in index_dtypes:
        yield f"sub-graphs, {_name(index_dtype)}", partial(_subgraph, *_rows(1, index_dtype))
        if torch.cuda.is_available():  # which alone takes padded sub-graphs
            yield f"padded sub-graphs, {_name(index_dtype)}", partial(_padded, index_dtype)
    rowptr, col = _rows(1, torch.int64)
    yield "sub-graphs of a store", partial(_subgraph, rowptr, col.int())
    for dtype in float_dtypes:
        yield f"dropout, {_name(dtype)}", partial(_dropout, dtype)
        for index_dtype in index_dtypes:
            types = f"{_name(dtype)}, {_name(index_dtype)}"
            yield f"sparse product, {types}", partial(_spmm, dtype, index_dtype)
            for degree in DEGREES:
                yield (
                    f"k largest, {types}, rows of up to {degree}",
                    partial(_k_largest, dtype, index_dtype, degree),
                )


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _rows(degree: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """rowptr and col of two nodes: the first has ``degree`` entries, the second none."""
    return torch.tensor([0, degree, degree], dtype=dtype), torch.ones(degree, dtype=dtype)


def _tables() -> None:
    import pyarrow as pa  # takes a while

    from lgcn.tables.edges import to_adjacency
    from lgcn.tables.ids import NodeIndex

    for ids in (pa.array([0, 1]), pa.array([0, 1 << 40]), pa.array(["a", "b"])):
        NodeIndex(ids).find(ids)
    start, end = np.zeros(2, np.int32), np.ones(2, np.int32)  # the same edge twice: one is dropped
    for weights in (None, [np.ones(2, np.float32)]):
        to_adjacency([start], [end], weights, 2, directed=False)


def _subgraph(rowptr: torch.Tensor, col: torch.Tensor) -> None:
    graph = Graph._trusted(rowptr, col)
    graph.subgraph(select_subgraph(graph, n_init=1, max_nodes=2, seed=0))
    next(iter(RandomWalkLoader(graph, n_init=1, max_nodes=2, walk_length=1, num_workers=0)))
    next(iter(NeighborLoader(graph, num_workers=0)))
    has_self_loop(rowptr, col)


def _padded(index_dtype: torch.dtype) -> None:
    rowptr, col = _rows(1, index_dtype)
    for x in (torch.ones(2, 1), torch.ones(2, 1).to_sparse_csr()):
        sizes_of(Graph._trusted(rowptr, col, x=x), [Form(False, True, True)])


def _dropout(dtype: torch.dtype) -> None:
    for overwrite in (False, True):
        dropout(torch.ones(2, dtype=dtype), 0.5, overwrite=overwrite)


def _spmm(dtype: torch.dtype, index_dtype: torch.dtype) -> None:
    rowptr, col = _rows(1, index_dtype)
    value = torch.ones(1, dtype=dtype, requires_grad=True)
    dense = torch.ones(2, 1, dtype=dtype, requires_grad=True)
    spmm(rowptr, col, value, dense).sum().backward()  # type: ignore[no-untyped-call]


def _k_largest(dtype: torch.dtype, index_dtype: torch.dtype, degree: int) -> None:
    rowptr, col = _rows(degree, index_dtype)
    for channels in CHANNELS:
        x = torch.ones(2, channels, dtype=dtype, requires_grad=True)
        for weight in (None, torch.ones(degree, dtype=dtype, requires_grad=True)):
            values, _ = k_largest(x, rowptr, col, 2, edge_weight=weight)
            grid = k_largest_grid(x, x, rowptr, col, 2, edge_weight=weight)
            (values.sum() + grid.sum()).backward()  # type: ignore[no-untyped-call]
