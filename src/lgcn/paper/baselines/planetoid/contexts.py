# mypy: disable-error-code="untyped-decorator"
"""The pairs of nodes that Planetoid learns its embeddings from."""

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.sampling.algorithm1 import adjacency_arrays, random_below
from lgcn.utils.jit import jit
from lgcn.utils.splitmix import STEP, mix


class Contexts(NamedTuple):
    """Pairs (i, c), with sign +1 if c is a context of i, and -1 if not."""

    node: Tensor
    context: Tensor
    sign: Tensor


class ContextSampler:
    r"""Samples contexts from graph and labels: Algorithm 1 of the ["Revisiting Semi-Supervised
    Learning with Graph Embeddings"](https://arxiv.org/abs/1603.08861) paper.

    The sign of a pair is drawn first. A pair from the graph is two nodes of a random walk, at most
    ``window`` steps apart; with sign -1, a random node replaces the second. A pair from the labels
    is two training nodes, of the same class with sign +1 and of different classes with -1. Labels
    of other nodes are not read.

    Walks start at nodes with neighbours and end at a node without. A node is paired with itself
    only if a walk returns to it, or if it is the only one of its class.

    Args:
        graph: The graph, with classes and a training mask.
        positive_share: The paper's $r_1$, the probability of the sign +1. (default: 5/6)
        graph_share: The paper's $r_2$, the probability of a pair from the graph.
            (default: 0.5)
        walk_length: The paper's q, steps of a walk. (default: 10)
        window: The paper's d. (default: 3)
        seed: The same seed and number give the same contexts. (default: 0)
    """

    def __init__(
        self,
        graph: Graph,
        *,
        positive_share: float = 5 / 6,
        graph_share: float = 0.5,
        walk_length: int = 10,
        window: int = 3,
        seed: int = 0,
    ) -> None:
        for name, share in (("positive_share", positive_share), ("graph_share", graph_share)):
            if not 0 <= share <= 1:
                raise ValueError(f"{name} must be a probability from 0 to 1, got {share}")
        for name, steps in (("walk_length", walk_length), ("window", window)):
            if steps < 1:
                raise ValueError(f"{name} must be at least 1, got {steps}")
        if graph.y is None or graph.train_mask is None:
            raise UsageError(f"{graph.name} must have classes (y) and a train_mask")
        if graph.multi_label:
            raise UsageError(
                f"Planetoid needs one class per node, but the nodes of {graph.name} can have "
                f"several labels: y has shape {tuple(graph.y.shape)}"
            )
        nodes = graph.train_mask.cpu().nonzero().squeeze(1).numpy()
        classes = graph.y.cpu().numpy()[nodes]
        order = np.argsort(classes, kind="stable")
        self._labelled = nodes[order]
        self._first, self._last = (
            np.searchsorted(classes[order], classes[order], side) for side in ("left", "right")
        )
        if graph_share < 1 and (nodes.size == 0 or classes.min() == classes.max()):
            raise UsageError(
                f"train_mask of {graph.name} must have nodes of two classes or more, "
                "or graph_share must be 1"
            )
        self._rowptr, self._col = adjacency_arrays(graph)
        self._starts = np.flatnonzero(np.diff(self._rowptr))
        if graph_share > 0 and self._starts.size == 0:
            raise UsageError(f"{graph.name} must have edges, or graph_share must be 0")
        self._bounds = np.array([_bound(positive_share), _bound(graph_share)])
        self._walk_length, self._window = walk_length, min(window, walk_length)
        self.seed = seed

    def sample(self, count: int, number: int = 0) -> Contexts:
        """Draws ``count`` contexts. Each ``number`` gives another sample."""
        entropy = np.random.SeedSequence([self.seed, number])
        node, context, sign = _sample(
            self._rowptr,
            self._col,
            self._starts,
            self._labelled,
            self._first,
            self._last,
            self._bounds,
            self._walk_length,
            self._window,
            count,
            entropy.generate_state(1, np.uint64)[0],
        )
        return Contexts(*map(torch.from_numpy, (node, context, sign)))


def _bound(share: float) -> Any:
    """The bound that 32 random bits are below with this probability."""
    return np.uint64(round(share * 2**32))


@jit
def _sample(
    rowptr: Any,
    col: Any,
    starts: Any,
    labelled: Any,
    first: Any,
    last: Any,
    bounds: Any,
    length: int,
    window: int,
    count: int,
    state: Any,
) -> Any:
    """Nodes, contexts and signs. ``labelled`` is sorted by class; the class of its i-th node has
    the places from first[i] up to last[i]."""
    node, context = np.empty(count, np.int64), np.empty(count, np.int64)
    sign = np.empty(count, np.float32)
    num_nodes = rowptr.shape[0] - 1
    walk = np.empty(length + 1, np.int64)
    for at in range(count):
        state += STEP
        bits = mix(state)
        positive = bits >> np.uint64(32) < bounds[0]
        sign[at] = 1 if positive else -1
        if bits & np.uint64(0xFFFFFFFF) < bounds[1]:
            state, size = _walk(rowptr, col, starts, walk, state)
            state, i, c = _places(size, window, state)
            node[at], context[at] = walk[i], walk[c]
            if not positive:
                state += STEP
                context[at] = random_below(state, num_nodes)
        else:
            state += STEP
            i = np.int64(random_below(state, labelled.shape[0]))
            inside = last[i] - first[i]
            state += STEP
            if not positive:  # a node of another class, counted from the end of this one
                c = last[i] + np.int64(random_below(state, labelled.shape[0] - inside))
                c -= labelled.shape[0] if c >= labelled.shape[0] else 0
            elif inside > 1:
                c = first[i] + np.int64(random_below(state, inside - 1))
                c += 1 if c >= i else 0
            else:
                c = i
            node[at], context[at] = labelled[i], labelled[c]
    return node, context, sign


@jit
def _walk(rowptr: Any, col: Any, starts: Any, walk: Any, state: Any) -> Any:
    """Fills ``walk``; returns the state of the random numbers and how many nodes were visited."""
    state += STEP
    walk[0] = starts[random_below(state, starts.shape[0])]
    for step in range(1, walk.shape[0]):
        start, stop = rowptr[walk[step - 1]], rowptr[walk[step - 1] + 1]
        if start == stop:
            return state, step
        state += STEP
        walk[step] = col[start + np.int64(random_below(state, stop - start))]
    return state, walk.shape[0]


@jit
def _places(size: int, window: int, state: Any) -> Any:
    """Two different places of a walk. All pairs within the window are equally likely."""
    while True:
        state += STEP
        i = np.int64(random_below(state, size))
        state += STEP
        c = i - window + np.int64(random_below(state, 2 * window))
        c += 1 if c >= i else 0
        if 0 <= c < size:
            return state, i, c
