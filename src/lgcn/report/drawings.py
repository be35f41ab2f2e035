"""The pictures of whole graphs: which nodes and edges are drawn, where, and in which colours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lgcn.graph.structural import is_symmetric
from lgcn.report.names import shown_name
from lgcn.report.picture_layout import Array, nearest_part, picture_layout
from lgcn.report.sample import Listed

if TYPE_CHECKING:
    from lgcn.graph import GraphSet
    from lgcn.training.model_spec import ModelSpec
    from lgcn.utils.progress import OnProgress

MOST_NODES, MOST_EDGES = 150, 800  # of one picture
MOST_DRAWN = 250_000  # nodes and edges of all pictures together: about two megabytes
MOST_CELLS = 50_000_000  # of the features in which labels of nodes are looked for


@dataclass(frozen=True)
class NodeLabels:
    """The labels of drawn nodes.

    Args:
        column: The user's column that has them; `None` if features have no names.
        names: The names of the labels.
        number: The label of each node, -1 for none.
    """

    column: str | None
    names: list[str]
    number: Array


@dataclass(frozen=True)
class Drawings:
    """Pictures of sampled graphs. A graph with nodes but without drawn nodes has no picture.

    Args:
        sizes, edges: The nodes and edges of each graph, drawn or not.
        ptr: Where the drawn nodes of each graph start, [graphs + 1].
        nodes: The places of the drawn nodes within their graphs.
        points: Their coordinates, [drawn nodes, 2].
        edge_ptr: Where the drawn edges of each graph start, [graphs + 1].
        ends: Their ends, as numbers of the drawn nodes of their graph, [drawn edges, 2].
        labels: The labels of the drawn nodes; `None` if there are none.
        node_ids: The ids of the drawn nodes; `None` if they have none.
    """

    sizes: Array
    edges: Array
    ptr: Array
    nodes: Array
    points: Array
    edge_ptr: Array
    ends: Array
    labels: NodeLabels | None
    node_ids: list[str] | None

    def data(self) -> dict[str, Any]:
        """What the page's scripts need."""
        labels = self.labels
        ranks: list[int] = []
        if labels is not None:
            counts = np.bincount(labels.number + 1, minlength=len(labels.names) + 1)[1:]
            order = np.argsort(-counts, kind="stable")
            ranks = np.argsort(order, kind="stable").tolist()
        return {
            "size": self.sizes.tolist(),
            "edges": self.edges.tolist(),
            "ptr": self.ptr.tolist(),
            "node": self.nodes.tolist() if self.node_ids is None else self.node_ids,
            "x": self.points[:, 0].tolist(),
            "y": self.points[:, 1].tolist(),
            "edgePtr": self.edge_ptr.tolist(),
            "ends": self.ends.reshape(-1).tolist(),
            "label": None if labels is None else labels.number.tolist(),
            "column": None if labels is None else labels.column,
            "names": [] if labels is None else labels.names,
            "ranks": ranks,
        }


def drawings(
    graphs: GraphSet,
    sampled: Array,
    listed: Listed,
    spec: ModelSpec,
    on_progress: OnProgress | None = None,
) -> Drawings:
    """Lays out the sampled graphs. Of a large graph, a part is drawn.

    Args:
        graphs: The graphs, with features as the model takes them.
        sampled: The numbers of the sampled graphs, rising.
        listed: The graphs of the tables, which are drawn first, as a page has limited room.
        spec: What the model was built for.
        on_progress: Called now and then. (default: none)
    """
    some = graphs.select(torch.from_numpy(sampled))
    ptr, rowptr, col = (part.numpy() for part in (some.ptr, some.graph.rowptr, some.graph.col))
    undirected = is_symmetric(some.graph)
    first = np.flatnonzero(np.isin(sampled, np.concatenate(listed)))
    order = np.concatenate([first, np.setdiff1d(np.arange(len(sampled)), first)])
    count = len(sampled)
    edges = np.zeros(count, dtype=np.int64)
    none = np.zeros(0, dtype=np.int64)
    nodes, points, ends = [none] * count, [np.zeros((0, 2), int)] * count, [none] * count
    room = MOST_DRAWN
    for done, place in enumerate(order.tolist(), 1):
        start, stop = int(ptr[place]), int(ptr[place + 1])
        entries = slice(int(rowptr[start]), int(rowptr[stop]))
        row = np.repeat(np.arange(stop - start), np.diff(rowptr[start : stop + 1]))
        pairs = np.column_stack([row, col[entries].astype(np.int64) - start])
        simple = _simple(pairs)
        loops = int((pairs[:, 0] == pairs[:, 1]).sum())
        edges[place] = len(simple) + loops if undirected else len(pairs)
        if min(stop - start, MOST_NODES) > room:
            continue  # a smaller one may still have room
        kept = nearest_part(stop - start, simple, MOST_NODES, MOST_EDGES)
        number = np.full(stop - start, -1)
        number[kept] = np.arange(len(kept))
        inside = number[simple].reshape(-1, 2)
        inside = inside[(inside >= 0).all(axis=1)]
        if len(kept) + len(inside) > room:
            continue
        room -= len(kept) + len(inside)
        nodes[place], ends[place] = kept, inside
        points[place] = picture_layout(len(kept), inside)
        if on_progress is not None and done % 50 == 0:
            on_progress("pictures of graphs", done, count)
    every = np.concatenate([ptr[place] + part for place, part in enumerate(nodes)])
    ids = some.graph.node_ids
    return Drawings(
        sizes=np.diff(ptr),
        edges=edges,
        ptr=_offsets(nodes),
        nodes=np.concatenate([none, *nodes]),
        points=np.concatenate([np.zeros((0, 2), int), *points]),
        edge_ptr=_offsets(ends),
        ends=np.concatenate([np.zeros((0, 2), int), *(part.reshape(-1, 2) for part in ends)]),
        labels=_labels(some, every, spec),
        node_ids=None if ids is None else [shown_name(one) for one in ids[every].tolist()],
    )


def _simple(pairs: Array) -> Array:
    """Each pair of different nodes once, the smaller one first."""
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).reshape(-1, 2)


def _offsets(parts: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])


def _labels(some: GraphSet, nodes: Array, spec: ModelSpec) -> NodeLabels | None:
    """The first category of the nodes: a column of the user's, or a block of one-hot features."""
    width = spec.given_features
    if not width or not len(nodes) or len(nodes) * some.num_features > MOST_CELLS:
        return None
    x = some.graph.features(torch.from_numpy(nodes))
    values = (x.to_dense() if x.layout != torch.strided else x)[:, :width].numpy()
    encoder = some.graph.encoder
    start = 0
    if encoder is not None and encoder.num_features == width:
        for column in encoder.columns:
            stop = start + column.width
            if column.kind == "category":
                block = values[:, start:stop] > 0
                names = [
                    shown_name(text.removeprefix(f"{column.name}="))
                    for text in encoder.feature_names[start:stop]
                ]
                number = np.where(block.any(axis=1), block.argmax(axis=1), -1)
                return NodeLabels(shown_name(column.name), names, number)
            start = stop
        return None
    found = one_hot_block(values)
    if found is None:
        return None
    names = [str(number) for number in range(found[1] - found[0])]
    return NodeLabels(None, names, values[:, slice(*found)].argmax(axis=1))


def one_hot_block(values: Array) -> tuple[int, int] | None:
    """The first columns side by side of which each row has a one in exactly one, zeros elsewhere.

    Args:
        values: The features, [nodes, width].

    Returns: Where they start and stop; `None` if there are none.
    """
    binary = ((values == 0) | (values == 1)).all(axis=0)
    total = np.zeros(len(values), dtype=np.int64)
    starts: dict[bytes, int] = {}
    for place in range(values.shape[1]):
        if not binary[place]:
            starts.clear()
            total[:] = 0
            continue
        starts.setdefault(total.tobytes(), place)
        total += values[:, place].astype(np.int64)
        start = starts.get((total - 1).tobytes())
        if start is not None and place > start:
            return start, place + 1
    return None
