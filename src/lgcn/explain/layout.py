"""Where the nodes of a small graph are drawn, the same on every call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STEPS = 300
PULL = 0.4  # towards the middle, so that separate parts stay in the picture


def spring_layout(num_nodes: int, edges: Sequence[tuple[int, int]]) -> list[tuple[float, float]]:
    """Places in the unit square: edges pull their ends together, nodes push each other away.

    The forces are those of Fruchterman and Reingold. Nodes start on a circle, not by chance.

    Args:
        num_nodes: How many nodes there are, at least one.
        edges: Pairs of node numbers.
    """
    if num_nodes == 1:
        return [(0.5, 0.5)]
    turn = 2 * np.pi * np.arange(num_nodes) / num_nodes
    place = np.stack([np.sin(turn), -np.cos(turn)], axis=1)
    joined = np.zeros((num_nodes, num_nodes))
    for source, target in edges:
        joined[source, target] = joined[target, source] = 1.0
    length = 2 / np.sqrt(num_nodes)
    for step in range(STEPS):
        apart = place[:, None] - place[None]
        distance = np.maximum(np.linalg.norm(apart, axis=2), 1e-3)
        force = length**2 / distance**2 - joined * distance / length
        move = (apart * force[:, :, None]).sum(1) - PULL * place
        size = np.maximum(np.linalg.norm(move, axis=1, keepdims=True), 1e-9)
        place += move / size * np.minimum(size, 0.1 * (1 - step / STEPS))
    low, high = place.min(0), place.max(0)
    scaled = (place - low) / np.maximum(high - low, 1e-9)
    # A line, such as two nodes, is drawn through the middle.
    scaled = np.where(high - low < 1e-6, 0.5, scaled)
    return [(float(x), float(y)) for x, y in scaled.round(4)]
