r"""Start nodes that are not drawn uniformly, and the weights that correct for it.

An epoch draws as many start nodes as there are training nodes, R. It draws node i c_i times on
average, and the c_i sum to R. The loss of a batch of n draws is

    1/n * sum over i of (m_i / c_i) * loss_i,

where m_i counts how often node i was drawn for the batch. After shuffling, each of the n draws is
node i with probability c_i / R. Hence the expectation of m_i is n c_i / R, and that of the loss is
the mean of loss_i over the training nodes, whatever the c_i are (the Horvitz-Thompson estimator).
Training nodes that are reached by growth have weight zero, since their probability is unknown.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.utils.choices import START_NODES


def expected_counts(graph: Graph, roots: Tensor, kind: str) -> Any:
    """How often an epoch draws each of `roots` on average. The sum is the number of roots.

    Args:
        graph: The graph.
        roots: Node numbers.
        kind: `"balanced"`, each class equally often; or `"degree"`, in proportion to the number
            of neighbours plus one, so that isolated nodes are drawn too.
    """
    if kind == "balanced":
        if graph.y is None or graph.task != "classification":
            kinds = {"multilabel": "several labels per node", "regression": "a number per node"}
            found = "no labels" if graph.y is None else kinds[graph.task]
            raise UsageError(
                f"start_nodes=balanced needs one class per node, {graph.name} has {found}: use "
                "start_nodes=uniform or start_nodes=degree"
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
    """Draws positions in `counts`, as many as it has, position i counts[i] times on average.

    Systematic sampling: points at equal distances along a line on which position i is counts[i]
    long, so that it is drawn counts[i] times, rounded down or up. Independent draws would vary
    more. The result is shuffled.
    """
    order = rng.permutation(counts.size)
    ends = np.cumsum(counts[order])
    points = (rng.random() + np.arange(counts.size)) * (ends[-1] / counts.size)
    drawn = order[np.minimum(np.searchsorted(ends, points, side="right"), counts.size - 1)]
    return rng.permutation(drawn)


def start_weights(nodes: Tensor, drawn: Any, counts: Any, draws: int) -> Tensor:
    """The weight of each node of a sub-graph in the loss of its batch.

    Args:
        nodes: The nodes of the sub-graph, sorted.
        drawn: Its start nodes, possibly with repetitions.
        counts: How often an epoch draws each of them on average.
        draws: Number of draws for all sub-graphs of the batch.
    """
    weight = np.zeros(nodes.numel())
    np.add.at(weight, np.searchsorted(nodes.numpy(), drawn), 1.0 / (counts * draws))
    return torch.from_numpy(weight.astype(np.float32))


def root_weights(nodes: Tensor, roots: Any, weights: Any) -> Tensor:
    """The weight of each of `nodes`: that of the root it is, or zero.

    Args:
        nodes: The nodes of a sub-graph.
        roots: Sorted node numbers.
        weights: One weight per root.
    """
    index = nodes.numpy()
    place = np.minimum(np.searchsorted(roots, index), roots.size - 1)
    weight = np.where(roots[place] == index, weights[place], 0.0)
    return torch.from_numpy(weight.astype(np.float32))
