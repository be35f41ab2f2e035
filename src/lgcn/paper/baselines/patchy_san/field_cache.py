"""Receptive fields of many graphs. Those that were computed are kept, as they come every epoch."""

from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.graph.structural import undirected
from lgcn.nn.pooling.kept import offsets_of_graphs
from lgcn.paper.baselines.patchy_san.receptive_fields import Shape, receptive_fields
from lgcn.utils.limits import MIB

Array = np.ndarray[Any, Any]


class BoundedCache:
    """Arrays by the content that they were computed from, the last used up to a size.

    Several threads may use it. Two that miss the same key at once both compute it.

    Args:
        most: Bytes to keep at most.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._found: OrderedDict[Any, Array] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: Any, make: Callable[[], Array]) -> Array:
        """The array with this key, computed if it is not kept."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
        found = make()
        with self._lock:
            if key not in self._found:
                self._found[key] = found
                self.size += found.nbytes
            while self.size > self.most:
                self.size -= self._found.popitem(last=False)[1].nbytes
        return found


# Of all models, so that those trained one after the other on the same graphs share it, and none has
# it in its state. The fields of the 2,000 graphs of REDDIT-BINARY take 20 MiB.
CACHE = BoundedCache(256 * MIB)


def fields_of_graphs(graph: Graph, shape: Shape, cache: BoundedCache = CACHE) -> Tensor:
    """The nodes of each receptive field of each graph, -1 for none.

    They are computed on the CPU, and moved to the device of the graph. Direction and weights of
    edges, self-loops and duplicates do not count.

    Args:
        graph: The graphs.
        shape: The number and size of the fields.
        cache: Where fields are kept. (default: one for all models)

    Shapes:
        - **output:** node numbers $(G, w, k)$, int64
    """
    ptr = offsets_of_graphs(graph).tolist()
    rowptr, col = (part.cpu().numpy() for part in (graph.rowptr, graph.col))
    index = np.full((len(ptr) - 1, shape.width, shape.field), -1, np.int64)
    for number, (first, last) in enumerate(pairwise(ptr)):
        own = _rows(rowptr, col, first, last)
        make = partial(_compute, graph, first, last, shape)
        found = cache.get((_digest(*own), shape), make)
        index[number, : len(found)] = np.where(found < 0, -1, found + first)
    return torch.from_numpy(index).to(graph.rowptr.device)


def _rows(rowptr: Array, col: Array, first: int, last: int) -> tuple[Array, Array]:
    """The adjacency of the nodes from `first` to `last` (exclusive), which have edges to
    themselves alone."""
    own = rowptr[first : last + 1].astype(np.int64)
    return own - own[0], col[own[0] : own[-1]].astype(np.int64) - first


def _digest(rowptr: Array, col: Array) -> bytes:
    # The first number says where the rows end.
    parts = (np.int64(len(rowptr)), rowptr, np.ascontiguousarray(col))
    return blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).digest()


def _compute(graph: Graph, first: int, last: int, shape: Shape) -> Array:
    matrix = undirected(graph)  # once per batch, and only if one of its graphs is new
    return receptive_fields(*_rows(matrix.indptr, matrix.indices, first, last), shape)
