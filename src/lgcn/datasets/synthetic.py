"""Random graphs of any size, with hubs and with classes that can be learned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.graph.splits import random_split
from lgcn.utils.memory import check_memory
from lgcn.utils.numbers import real_number, whole_number

if TYPE_CHECKING:
    from lgcn.graph import Graph

MAX_ROUNDS = 20


def synthetic(
    *,
    num_nodes: int = 2000,
    mean_degree: float = 10.0,
    num_features: int = 32,
    num_classes: int = 5,
    homophily: float = 0.8,
    skew: float = 0.5,
    noise: float = 3.0,
    labels_per_class: int = 20,
    num_val: int = 500,
    seed: int = 0,
) -> Graph:
    """A graph with planted classes, reproducible by its seed.

    Classes are of equal size, labels are correct, and edges between classes join any two of them.
    The graphs of `lgcn generate` follow another, harder model (`lgcn.store.generate`).

    Args:
        num_nodes: (default: 2000)
        mean_degree: Mean number of neighbours per node. A graph that is too small or too skewed for
            that many distinct edges gets fewer. (default: 10)
        num_features: (default: 32)
        num_classes: Classes of equal size. (default: 5)
        homophily: Share of edges that join nodes of one class. (default: 0.8)
        skew: The node of rank r is drawn with weight r to the power of -`skew`: 0 gives all nodes
            about the same degree, 1 a few large hubs. (default: 0.5)
        noise: Standard deviation of a feature within a class; between classes it is one.
            (default: 3, at which features alone do not separate the classes)
        labels_per_class, num_val: See `lgcn.graph.splits.random_split`.
        seed: Seed of the graph and of its split. (default: 0)
    """
    num_nodes = whole_number("num_nodes", num_nodes, 1)
    mean_degree = real_number("mean_degree", mean_degree, 0)
    num_features = whole_number("num_features", num_features, 1)
    num_classes = whole_number("num_classes", num_classes, 1)
    homophily = real_number("homophily", homophily, 0, 1)
    skew = real_number("skew", skew, 0, 1)
    noise = real_number("noise", noise, 0)
    rng = np.random.default_rng(whole_number("seed", seed, 0))
    drawn = min(mean_degree, num_nodes) * num_nodes
    check_memory(
        int(8 * num_features * (num_nodes + num_classes) + 16 * drawn),
        f"a synthetic graph of num_nodes={num_nodes}, num_features={num_features}, "
        f"num_classes={num_classes} and mean_degree={mean_degree:g}",
    )
    import torch

    from lgcn.graph import Graph

    y = rng.permutation(num_nodes) % num_classes
    weight = rng.permutation(np.arange(1, num_nodes + 1, dtype=np.float64)) ** -skew
    num_edges = round(min(num_nodes * mean_degree / 2, num_nodes * (num_nodes - 1) / 2))
    edges = _draw_edges(rng, y, weight, num_edges, homophily)

    centre = rng.standard_normal((num_classes, num_features), dtype=np.float32)
    x = rng.standard_normal((num_nodes, num_features), dtype=np.float32)
    x *= noise
    x += centre[y]
    x /= np.float32(np.sqrt(1 + noise**2))  # features of about unit size whatever the noise

    train_mask, val_mask, test_mask = random_split(y, labels_per_class, num_val, seed)
    return Graph.from_edge_index(
        torch.from_numpy(edges),
        x=torch.from_numpy(x),
        y=torch.from_numpy(y),
        train_mask=train_mask,
        val_mask=val_mask,
        test_mask=test_mask,
        name="synthetic",
    )


def _draw_edges(rng: Any, y: Any, weight: Any, num_edges: int, homophily: float) -> Any:
    """[2, E] distinct pairs of different nodes, each drawn in proportion to its weight.

    Nodes are laid out on a line by class, each as long as its weight. A class is then an interval,
    and a point on the line is a node.
    """
    order = np.argsort(y, kind="stable")
    line = np.concatenate([[0.0], np.cumsum(weight[order])])
    border = line[np.searchsorted(y[order], np.arange(y.max() + 2))]

    def node_at(point: Any) -> Any:
        # Rounding can put a point at the very end of the line.
        return order[np.minimum(np.searchsorted(line, point, side="right") - 1, len(order) - 1)]

    pairs = np.empty(0, dtype=np.int64)
    for _ in range(MAX_ROUNDS):  # each round replaces duplicates and self-loops
        if (count := num_edges - len(pairs)) == 0:
            break
        u = node_at(rng.random(count) * line[-1])
        start, end = border[y[u]], border[y[u] + 1]
        elsewhere = line[-1] - (end - start)
        inside = (rng.random(count) < homophily) | (elsewhere <= 0)
        point = rng.random(count)
        outside_point = point * elsewhere
        outside_point += np.where(outside_point >= start, end - start, 0)
        v = node_at(np.where(inside, start + point * (end - start), outside_point))
        low, high = np.minimum(u, v), np.maximum(u, v)
        new = (low * len(order) + high)[low != high]
        # Like np.unique, which hashes and is far slower here.
        pairs = np.sort(np.concatenate([pairs, new]))
        pairs = pairs[np.diff(pairs, prepend=-1) != 0]
    return np.stack(np.divmod(pairs, len(order)))
