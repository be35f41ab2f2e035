r"""Start nodes that are not drawn uniformly, and the weights that make up for it.

An epoch draws as many start nodes as there are training nodes, R. Node i is drawn :math:`c_i` times
on average, with :math:`\sum_i c_i = R`. The loss of a batch of :math:`n` draws is

.. math:: \frac{1}{n} \sum_{i} \frac{m_i}{c_i} \ell_i,

where :math:`m_i` counts how often node i was drawn for the batch. After shuffling, each of the n
draws is node i with probability :math:`c_i / R`, hence the expectation of :math:`m_i` is
:math:`n c_i / R`, and that of the loss is :math:`\frac{1}{R} \sum_i \ell_i`: the mean over the
training nodes, whatever the c (the estimator of Horvitz and Thompson). Training nodes that growth
happens to reach have no weight, since nothing is known about how often it does.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.utils.choices import START_NODES


def expected_counts(graph: Graph, roots: Tensor, kind: str) -> Any:
    """How often an epoch draws each of ``roots`` on average, :math:`c`; the sum is their number.

    Args:
        graph: The graph.
        roots: Node numbers.
        kind: ``"balanced"``, each class as often as any other; or ``"degree"``, in proportion to
            the number of neighbours plus one, so that isolated nodes are drawn too.
    """
    if kind == "balanced":
        if graph.y is None or graph.multi_label:
            raise UsageError(
                "start_nodes=balanced needs one class a node, "
                f"{graph.name} has {'none' if graph.y is None else 'several labels a node'}"
            )
        _, number, count = np.unique(
            graph.y[roots].cpu().numpy(), return_inverse=True, return_counts=True
        )
        share = 1.0 / count[number]
    elif kind == "degree":
        share = (graph.rowptr[roots + 1] - graph.rowptr[roots] + 1).cpu().double().numpy()
    else:
        raise ValueError(f"start_nodes must be one of {', '.join(START_NODES)}, got {kind!r}")
    return share * (share.size / share.sum())


def draw(counts: Any, rng: np.random.Generator) -> Any:
    """Places in ``counts``, as many as it has, place i counts[i] times on average; shuffled.

    Drawn at equal distances along a line on which place i is counts[i] long, so that it comes up
    counts[i] times, rounded down or up. Nodes drawn one by one would differ more from that.
    """
    order = rng.permutation(counts.size)
    ends = np.cumsum(counts[order])
    points = (rng.random() + np.arange(counts.size)) * (ends[-1] / counts.size)
    drawn = order[np.minimum(np.searchsorted(ends, points, side="right"), counts.size - 1)]
    return rng.permutation(drawn)


def start_weights(nodes: Tensor, drawn: Any, counts: Any, draws: int) -> Tensor:
    """The weight of each of ``nodes``, which are sorted, in the loss of a batch of so many draws.

    Args:
        nodes: The nodes of the sub-graph.
        drawn: Its start nodes, some perhaps more than once.
        counts: How often an epoch draws each of them on average.
        draws: The draws for all sub-graphs of the batch.
    """
    weight = np.zeros(nodes.numel())
    np.add.at(weight, np.searchsorted(nodes.numpy(), drawn), 1.0 / (counts * draws))
    return torch.from_numpy(weight.astype(np.float32))


def root_weights(nodes: Tensor, roots: Any, weights: Any) -> Tensor:
    """The weight of each of ``nodes``: that of the root which it is, else zero.

    Args:
        nodes: The nodes of a sub-graph.
        roots: Sorted node numbers.
        weights: One for each root.
    """
    index = nodes.numpy()
    place = np.minimum(np.searchsorted(roots, index), roots.size - 1)
    weight = np.where(roots[place] == index, weights[place], 0.0)
    return torch.from_numpy(weight.astype(np.float32))
