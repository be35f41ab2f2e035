# mypy: disable-error-code="untyped-decorator"
"""Mini-batches of nodes with a sample of their neighbours, as in GraphSAGE."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Unpack

import numpy as np
import torch

from lgcn.graph import SPLITS, Graph
from lgcn.graph.adjacency import Adjacency
from lgcn.graph.csr import one_index_dtype
from lgcn.ops.induced_subgraph import longer, node_hash
from lgcn.sampling.algorithm1 import adjacency_arrays, random_below
from lgcn.sampling.batches import BatchLoader, BatchOptions
from lgcn.utils.jit import jit
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.splitmix import STEP

N_INIT = 512  # if n_init is None


@dataclass(frozen=True, eq=False, repr=False)
class SampledGraph(Graph):
    """A graph whose rows hold sampled neighbours, with nodes in the order of their hops.

    Args:
        hops: How many nodes, counted from the first, are within 0, 1, 2, ... hops of the roots.
    """

    hops: tuple[int, ...] = ()


def rows_of_layers(graph: Graph, num_layers: int) -> list[int]:
    """For how many nodes, counted from the first, each layer must be computed.

    With sampled neighbours, only the roots matter in the end: the last layer needs only the roots,
    the one before it also the nodes of the first hop, and so on. Other graphs need all nodes in
    every layer.
    """
    if not isinstance(graph, SampledGraph):
        return [graph.num_nodes] * num_layers
    last = len(graph.hops) - 1
    return [graph.hops[min(hop, last)] for hop in reversed(range(num_layers))]


class NeighborLoader(BatchLoader):
    """Yields mini-batches of nodes and neighbours sampled around them, as in the
    ["Inductive Representation Learning on Large Graphs"](https://arxiv.org/abs/1706.02216) paper.

    In each epoch, the roots are shuffled and dealt out, so that each serves once. A uniform sample
    of each root's neighbours is taken without replacement, at most `fanout[0]` of them; then at
    most `fanout[1]` of the neighbours of each of these nodes; and so on. As in PyG's loader, the
    neighbours of a node are sampled once, in the hop in which it is first reached. With
    replacement, as in the authors' program, each neighbour is drawn from all of them, so that every
    node with neighbours gets the full number, some of them repeated.

    A batch is a `SampledGraph` in which the roots come first. The row of a node holds its sampled
    neighbours in random order; nodes of the last hop have no neighbours. Masks are true only at the
    roots, since the neighbourhoods of all other nodes are cut.

    Args:
        graph: The graph.
        n_init: Roots per sub-graph. (default: 512)
        fanout: Neighbours sampled in each hop, from the roots outwards. The paper numbers its
            sample sizes in the opposite order, by layers. (default: 25 and 10)
        with_replacement: Sample with replacement. (default: `False`)
        **options: `roots`, and `batch_size`, `resample`, `keep_degree`, `seed`,
            `num_workers`: see `lgcn.SubgraphLoader`.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        n_init: int | None = None,
        fanout: Sequence[int] = (25, 10),
        with_replacement: bool = False,
        **options: Unpack[BatchOptions],
    ) -> None:
        super().__init__(graph, **options)
        n_init = N_INIT if n_init is None else n_init
        if n_init < 1:
            raise ValueError(f"n_init must be at least 1, got {n_init}")
        self.fanout = tuple(map(index, fanout))
        if not self.fanout or min(self.fanout) < 1:
            raise ValueError(f"fanout must be at least 1 in each hop, got {list(self.fanout)}")
        if max(self.fanout) > MAX_INT32:  # the kernel multiplies it by the number of nodes
            raise ValueError(
                f"fanout must be at most {MAX_INT32} in each hop, got {list(self.fanout)}"
            )
        self.roots = torch.from_numpy(np.unique(self.roots.numpy()))
        self.n_init = n_init
        self.with_replacement = with_replacement
        # Node data of a batch are cut from a graph without edges. NumPy's zeros take no memory as
        # long as nothing is written to them.
        rowptr = torch.from_numpy(np.zeros(graph.num_nodes + 1, np.int64))
        col = torch.empty(0, dtype=torch.int64)
        self._nodes = replace(
            graph,
            rowptr=rowptr,
            col=col,
            _adjacency=Adjacency(rowptr, col, trusted=True),  # so that it is not read either
            edge_weight=None,
            edge_attr=None,
            degree=graph.row_degree() if self.keep_degree else None,
        )

    @property
    def _num_subgraphs(self) -> int:
        return -(-self.roots.numel() // self.n_init)

    def _plan(self, epoch: int) -> list[Any]:
        rng = np.random.default_rng([self.seed, epoch])
        return np.array_split(rng.permutation(self.roots.numpy()), self._num_subgraphs)

    def _subgraph(self, start: Any, epoch: int, number: int) -> Graph:
        rowptr, col = adjacency_arrays(self.graph)
        seed = np.uint64(self._random_seed(epoch, number))
        nodes, hops, ends, sampled, entry = _sample(
            rowptr, col, start, np.array(self.fanout, np.int64), self.with_replacement, seed
        )
        part = self._nodes.subgraph(torch.from_numpy(nodes), keep_degree=self.keep_degree)
        new_rowptr, new_col = one_index_dtype(torch.from_numpy(ends), torch.from_numpy(sampled))
        weight, attr = self.graph.edge_weight, self.graph.edge_attr
        is_root = torch.arange(nodes.size) < start.size
        masks = {
            f"{split}_mask": mask & is_root
            for split in SPLITS
            if (mask := part.mask(split)) is not None
        }
        changed = {
            "rowptr": new_rowptr,
            "col": new_col,
            "edge_weight": None if weight is None else weight[torch.from_numpy(entry)],
            "edge_attr": None if attr is None else attr[torch.from_numpy(entry)],
            **masks,
        }
        return SampledGraph(**{**vars(part), **changed}, hops=tuple(hops.tolist()))


@jit
def _find(table: Any, shift: Any, nodes: Any, node: int) -> Any:
    """The slot of a node in an open-addressing hash table of positions in `nodes`."""
    at = node_hash(node, shift)
    while table[at] >= 0 and nodes[table[at]] != node:
        at = (at + np.uint64(1)) & np.uint64(table.shape[0] - 1)
    return at


@jit
def _make_table(nodes: Any, size: int) -> Any:
    """The hash table of nodes[:size]; it is half empty even when `nodes` is full."""
    bits = 2
    while (1 << bits) < 2 * nodes.shape[0]:
        bits += 1
    table, shift = np.full(1 << bits, -1, np.int32), np.uint64(64 - bits)
    for i in range(size):
        table[_find(table, shift, nodes, nodes[i])] = i
    return table, shift


@jit
def _count(rowptr: Any, node: int, size: int, put_back: bool) -> Any:
    """How many neighbours of a node are drawn if `size` are wanted."""
    degree = np.int64(rowptr[node + 1]) - np.int64(rowptr[node])
    return size if put_back and degree > 0 else min(degree, size)


@jit
def _draw(entry: Any, order: Any, start: int, degree: int, put_back: bool, state: Any) -> Any:
    """Fills `entry` with positions in the row that begins at `start`; returns the new state.

    Without replacement, these are the first steps of a shuffle of `order`. It holds 0, 1, 2, ...
    before and after the call, so that the cost is that of the draws, not of the row's length.
    """
    count = entry.shape[0]
    if put_back:
        for j in range(count):
            state += STEP
            entry[j] = start + np.int64(random_below(state, degree))
        return state
    for j in range(count):
        state += STEP
        other = j + np.int64(random_below(state, degree - j))
        order[j], order[other] = order[other], order[j]
    for j in range(count):
        entry[j] = start + order[j]
    for j in range(count):  # only numbers that were drawn, and the first ones, have moved
        order[j] = j
        order[entry[j] - start] = entry[j] - start
    return state


@jit
def _sample(rowptr: Any, col: Any, roots: Any, fanout: Any, put_back: bool, state: Any) -> Any:
    """Nodes, their number after each hop, and the rows: offsets, columns, positions in `col`."""
    nodes, size = roots.copy(), roots.shape[0]
    hops = np.empty(fanout.shape[0] + 1, np.int64)
    hops[0] = size
    ends, sampled, entry = np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.int64)
    order = np.arange(256)
    first = used = 0
    for hop in range(fanout.shape[0]):
        last, room = size, used
        for i in range(first, last):
            room += _count(rowptr, nodes[i], fanout[hop], put_back)
        ends = longer(ends, first + 1, last + 1)
        sampled, entry = longer(sampled, used, room), longer(entry, used, room)
        nodes = longer(nodes, size, size + room - used)
        table, shift = _make_table(nodes, size)
        for i in range(first, last):
            start = np.int64(rowptr[nodes[i]])
            degree = np.int64(rowptr[nodes[i] + 1]) - start
            count = _count(rowptr, nodes[i], fanout[hop], put_back)
            if degree > order.shape[0] and not put_back:
                order = np.arange(2 * degree)
            state = _draw(entry[used : used + count], order, start, degree, put_back, state)
            for j in range(used, used + count):
                node = np.int64(col[entry[j]])
                at = _find(table, shift, nodes, node)
                if table[at] < 0:
                    nodes[size], table[at] = node, size
                    size += 1
                sampled[j] = table[at]
            used += count
            ends[i + 1] = used
        first = last
        hops[hop + 1] = size
    ends = longer(ends, first + 1, size + 1)
    ends[first + 1 :] = used
    return nodes[:size].copy(), hops, ends, sampled, entry
