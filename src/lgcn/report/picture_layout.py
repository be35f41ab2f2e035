"""Where the nodes of a small graph are drawn, so that near nodes of the graph lie near each other.

Each connected component is laid out alone by stress majorization (Gansner, Koren and North,
"Graph Drawing by Stress Majorization", 2004): distances in the picture approach the numbers of
steps between nodes. It starts from classical scaling, so equal graphs get equal pictures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, shortest_path

from lgcn.report.layout import SEED, principal

Array = np.ndarray[Any, Any]
EDGE = 100  # the length of an edge, about: coordinates are whole numbers
STEPS = 100
ENOUGH = 1e-3  # a step that lessens the stress by a smaller share is the last one


def picture_layout(num_nodes: int, ends: Array) -> Array:
    """Coordinates of nodes, from 0, [nodes, 2].

    Args:
        num_nodes: Number of nodes.
        ends: The edges, each pair once, [edges, 2].
    """
    if not num_nodes:
        return np.zeros((0, 2), dtype=np.int64)
    links = adjacency(num_nodes, ends)
    count, part = connected_components(links, directed=False)
    places = [np.flatnonzero(part == number) for number in range(count)]
    pictures = []
    for place in places:
        points = _component(links[place][:, place]) if len(place) > 1 else np.zeros((1, 2))
        pictures.append(points - points.min(axis=0))
    found = np.zeros((num_nodes, 2))
    for place, points, corner in zip(places, pictures, _packed(pictures), strict=True):
        found[place] = points + corner
    return np.asarray(np.rint(EDGE * found), dtype=np.int64)


def adjacency(num_nodes: int, ends: Array) -> Any:
    """The undirected adjacency as a matrix of ones."""
    both = np.concatenate([ends, ends[:, ::-1]])
    return csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(num_nodes, num_nodes))


def nearest_part(num_nodes: int, ends: Array, most_nodes: int, most_edges: int) -> Array:
    """The nodes around the one with the most edges, as many as may be drawn, in rising order.

    Args:
        num_nodes: Number of nodes.
        ends: The edges, each pair once, [edges, 2].
        most_nodes, most_edges: How many nodes, and edges between them, there may be.
    """
    if num_nodes <= most_nodes and len(ends) <= most_edges:
        return np.arange(num_nodes)
    links = adjacency(num_nodes, ends)
    degree = np.bincount(ends.reshape(-1), minlength=num_nodes)
    order = np.zeros(0, dtype=np.int64)
    left = np.ones(num_nodes, dtype=bool)
    while len(order) < min(num_nodes, most_nodes):
        start = np.flatnonzero(left)[degree[left].argmax()]
        near = breadth_first_order(links, start, directed=False, return_predecessors=False)
        order = np.append(order, near)
        left[near] = False
    order = order[:most_nodes]
    rank = np.full(num_nodes, num_nodes)
    rank[order] = np.arange(len(order))
    # With the node of this rank, an edge gets its second end.
    complete = np.sort(rank[ends].max(axis=1))
    if len(complete) > most_edges:
        order = order[: complete[most_edges]]
    return np.sort(order)


def _component(links: Any) -> Array:
    """The coordinates of a connected graph, whose longer side is the first axis."""
    steps = shortest_path(links, directed=False, unweighted=True)
    size = len(steps)
    weight = np.divide(1, steps**2, out=np.zeros_like(steps), where=steps > 0)
    balance = np.diag(weight.sum(axis=1)) - weight
    inverse = np.linalg.inv(balance + 1 / size) - 1 / size
    pull = weight * steps
    points = _scaled(steps)
    before = np.inf
    for _ in range(STEPS):
        apart = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2))
        stress = float((weight * (apart - steps) ** 2).sum())
        if before - stress < ENOUGH * before:
            break
        before = stress
        ratio = np.divide(pull, apart, out=np.zeros_like(apart), where=apart > 1e-9)
        points = inverse @ ((np.diag(ratio.sum(axis=1)) - ratio) @ points)
    return principal(points - points.mean(axis=0))[0]


def _scaled(steps: Array) -> Array:
    """Classical scaling. A little noise parts nodes that would lie in one place and stay there."""
    square = steps**2
    centred = square - square.mean(axis=0) - square.mean(axis=1, keepdims=True) + square.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0))
    noise = np.random.default_rng(SEED).normal(scale=0.01, size=points.shape)
    return np.asarray(points + noise)


def _packed(pictures: list[Array]) -> list[Array]:
    """The lower left corners of pictures in rows, the highest first."""
    boxes = np.array([points.max(axis=0) + 1 for points in pictures])  # with room between
    width = max(boxes[:, 0].max(), 1.3 * np.sqrt(boxes.prod(axis=1).sum()))
    corners = [np.zeros(2)] * len(pictures)
    x = y = height = 0.0
    for number in np.lexsort((np.arange(len(boxes)), -boxes[:, 1])).tolist():
        if x + boxes[number, 0] > width + 1e-9:
            x, y, height = 0.0, y + height, 0.0
        corners[number] = np.array([x, y])
        x, height = x + boxes[number, 0], max(height, boxes[number, 1])
    return corners
