"""True labels and splits of nodes, as columns of a table of predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.graph import Graph
    from lgcn.training.split_file import Split

SEPARATOR = ";"  # between the labels of a node that has several


class Truth(NamedTuple):
    """What is known of the nodes.

    Args:
        y: Classes with -1 if unknown, zeros and ones per label, or numbers with NaN if unknown.
            (default: none, and no column of the true labels)
        unknown: With several labels per node, a mask of the nodes whose labels are unknown.
            (default: none)
        split: The masks of training, validation and test nodes, as in
            `lgcn.training.split_file`. (default: none, and no column of the split)
    """

    y: Tensor | None = None
    unknown: Tensor | None = None
    split: Mapping[str, np.ndarray[Any, Any]] | None = None

    def rows(self, start: int, stop: int) -> Truth:
        """That of the nodes from `start` up to `stop`."""
        y, unknown = (None if part is None else part[start:stop] for part in self[:2])
        split = None if self.split is None else {k: v[start:stop] for k, v in self.split.items()}
        return Truth(y, unknown, split)

    def take(self, nodes: np.ndarray[Any, Any]) -> Truth:
        """That of some nodes, by their numbers."""
        y, unknown = (None if part is None else part[nodes] for part in self[:2])
        split = None if self.split is None else {k: v[nodes] for k, v in self.split.items()}
        return Truth(y, unknown, split)

    @classmethod
    def of(cls, graph: Graph, split: Split | None = None) -> Truth:
        """What is known of the nodes of a graph.

        Args:
            graph: The graph.
            split: Its split. (default: none)
        """
        return cls(graph.y, graph.unlabelled() if graph.multi_label else None, split)

    def columns(self, names: Sequence[Any]) -> dict[str, pa.Array]:
        """The columns `true` and `split`, as far as they are known.

        Args:
            names: The names of the classes or labels.
        """
        columns = {}
        if self.y is not None:
            y = self.y.detach().cpu()
            if y.dim() == 2:
                unknown = None if self.unknown is None else self.unknown.cpu().numpy()
                columns["true"] = pa.array(joined(y > 0.5, names), pa.string(), mask=unknown)
            elif y.is_floating_point():
                columns["true"] = pa.array(y.double().numpy(), mask=y.isnan().numpy())
            else:
                columns["true"] = named(y, names, (y < 0).numpy())
        if self.split is not None:
            number = np.full(len(next(iter(self.split.values()))), -1)
            for place, mask in enumerate(self.split.values()):
                number[(number < 0) & (mask != 0)] = place
            columns["split"] = pa.array(list(self.split)).take(pa.array(number, mask=number < 0))
        return columns


def named(classes: Tensor, names: Sequence[Any], unknown: Any) -> pa.Array:
    """The names of classes; null where they are unknown."""
    index = pa.array(classes.numpy(), mask=unknown)
    return pa.array(np.asarray(names).tolist()).take(index)


def joined(marked: Tensor, names: Sequence[Any]) -> np.ndarray[Any, Any]:
    """The marked labels of each node, joined to one string."""
    texts = [str(name) for name in names]
    counts = marked.sum(dim=1).tolist()
    labels = iter(marked.nonzero()[:, 1].tolist())
    rows = [SEPARATOR.join(texts[next(labels)] for _ in range(count)) for count in counts]
    return np.array(rows, dtype=object)
