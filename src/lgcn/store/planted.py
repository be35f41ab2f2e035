"""The formulas of a random graph with planted classes: which node is what, edges, features.

Every random number is a function of a key and of the edge, node or feature it is for. Nodes are
drawn by closed formulas, not by tables of all nodes. Each node has a rank. The ranks of a class
follow one another, and the rank within the class decides how often a node is drawn. A permutation,
also a formula, spreads ranks over the nodes, since nodes of similar degree and class should not
lie side by side. `lgcn.store.generate` describes the graphs.
"""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from lgcn.utils.jit import jit, jit_parallel
from lgcn.utils.share import share
from lgcn.utils.splitmix import STEP, mix

_REGION_NODES = (
    1000  # at least; and so many times the mean degree, so that few edges are drawn twice
)
_REGION_DEGREES = 200
_PARTNER = 0.75  # share of the edges between classes that join a class and its partner
_WEIGHT_UNITS = 10**9  # of class weights: whole numbers are the same on every machine


class Permutation(NamedTuple):
    """Number i goes to (factor * i + shift) modulo size, and back."""

    factor: int
    shift: int
    inverse: int
    size: int


def draw_permutation(rng: np.random.Generator, size: int) -> Permutation:
    """A permutation that takes numbers that are close far apart, and back."""
    # By the golden ratio, at which any run of numbers is spread most evenly.
    factor = round(size * (math.sqrt(5) - 1) / 2)
    while not _spreads(factor, size):
        factor += 1
    factor %= size
    return Permutation(factor, int(rng.integers(0, size)), pow(factor, -1, size), size)


def _spreads(factor: int, size: int) -> bool:
    if math.gcd(factor, size) != 1:
        return False
    inverse = pow(factor, -1, size)
    return min(inverse, size - inverse) >= size // 8


class Planted(NamedTuple):
    """The classes of a graph, as the kernels read them.

    Attributes:
        start: Ranks start[c] to start[c + 1] are the nodes of class c.
        inside: Share of the edges drawn from a class that stay in it.
        partner: The class that most other edges lead to; -1 for none.
        regions: Number of regions. Rank r of a class is in region r modulo this.
        locality: Share of edges that stay in a region.
        skew: Exponent by which the weight of a node falls with its rank in its class.
    """

    start: Any
    inside: Any
    partner: Any
    regions: int
    locality: float
    skew: float


def planted_classes(
    num_nodes: int,
    num_edges: int,
    num_classes: int,
    *,
    homophily: float,
    imbalance: float,
    locality: float,
    skew: float,
) -> Planted:
    """The classes of a graph; see `lgcn.store.generate.generate_store` for the arguments."""
    start = class_starts(num_nodes, num_classes, imbalance)
    number = np.arange(num_classes)
    partner = number ^ 1
    partner[partner >= num_classes] = -1
    # Of the pairs 0-1, 2-3, 4-5, ... every second one prefers the partner to the own class. What
    # they have less than the mean, the others have more.
    mixed = (number % 4 >= 2) & (partner >= 0)
    share = float(np.diff(start)[mixed].sum()) / num_nodes
    room = min(homophily, 1 - homophily)
    inside = np.where(mixed, homophily - room * (1 - share), homophily + room * share)
    size = max(_REGION_NODES, _REGION_DEGREES * 2 * num_edges // num_nodes)
    return Planted(start, inside, partner, max(1, num_nodes // size), locality, skew)


def class_starts(num_nodes: int, num_classes: int, imbalance: float) -> Any:
    """[C + 1] the first rank of each class, of which each has at least one."""
    weights = [
        max(1, round(_WEIGHT_UNITS * (label + 1) ** -imbalance)) for label in range(num_classes)
    ]
    total, starts = sum(weights), [0]
    for label, end in enumerate(accumulate(weights), 1):
        rounded = (2 * num_nodes * end + total) // (2 * total)
        # One node for this class, and one for each that follows.
        starts.append(min(max(rounded, starts[-1] + 1), num_nodes - num_classes + label))
    return np.array(starts, np.int64)


def accuracy_ceiling(start: Any, label_noise: float) -> float:
    """The expected accuracy of a prediction that knows the planted class of every node.

    A share of `label_noise` of the labels is drawn anew, from all classes in proportion to their
    sizes. No model can know these.
    """
    share = np.diff(start) / start[-1]
    kept = 1 - label_noise + label_noise * share
    # With nearly all labels drawn anew, the largest class is the better answer.
    return float(share @ np.maximum(kept, label_noise * share.max()))


@jit
def _uniform(bits: Any) -> Any:
    """A number from 0 to below 1."""
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


@jit
def _below(bits: Any, bound: int) -> Any:
    return np.int64(((bits >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@jit
def _rank(node: Any, inverse: int, shift: int, num_nodes: int) -> Any:
    """The rank that a permutation puts at a node. Products stay below 2**62."""
    return (node - shift + num_nodes) % num_nodes * inverse % num_nodes


@jit
def _class_of(rank: Any, start: Any) -> Any:
    low, high = 0, start.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if rank < start[middle]:
            high = middle
        else:
            low = middle
    return low


@jit
def _draw_rank(bits: Any, size: int, skew: float) -> Any:
    """A rank r < size, with density (r + 1) to the power of -skew, by the inverse of its integral.

    Multiplication is exact on every machine; powers may differ in the last bit.
    """
    u = _uniform(bits)
    if skew == 0:
        place = u * size
    elif skew == 0.5:
        root = 1 + u * (math.sqrt(size + 1.0) - 1)
        place = root * root - 1
    elif skew == 1:
        place = math.exp(u * math.log(size + 1.0)) - 1
    else:
        power = 1 - skew
        place = (1 + u * ((size + 1.0) ** power - 1)) ** (1 / power) - 1
    return min(np.int64(place), size - 1)


@jit_parallel
def draw_edges(
    first: int, classes: Planted, spread: Permutation, key: Any, source: Any, target: Any, part: Any
) -> None:
    """Draws edges number `first` and on: two classes, and a node of each."""
    start = classes.start
    num_nodes, num_classes = spread.size, start.shape[0] - 1
    for i in share(source.shape[0], part):
        state = key + np.uint64(first + i) * np.uint64(7) * STEP
        a = _class_of(_below(mix(state), num_nodes), start)
        begin, end = start[a], start[a + 1]
        b = a
        if num_classes > 1 and _uniform(mix(state + STEP)) >= classes.inside[a]:
            b = classes.partner[a]
            if b < 0 or _uniform(mix(state + np.uint64(2) * STEP)) >= _PARTNER:
                # Any node of another class.
                bits = mix(state + np.uint64(3) * STEP)
                place = _below(bits, num_nodes - (end - begin))
                b = _class_of(place + (end - begin if place >= begin else 0), start)
        r = _draw_rank(mix(state + np.uint64(4) * STEP), end - begin, classes.skew)
        source[i] = ((begin + r) * spread.factor + spread.shift) % num_nodes

        begin, size = start[b], start[b + 1] - start[b]
        step, offset = 1, 0  # the target is one of ranks offset, offset + step, ...
        local = _uniform(mix(state + np.uint64(5) * STEP)) < classes.locality
        if local and r % classes.regions < size:
            step, offset = classes.regions, r % classes.regions
        bits = mix(state + np.uint64(6) * STEP)
        r = _draw_rank(bits, (size - offset + step - 1) // step, classes.skew) * step + offset
        target[i] = ((begin + r) * spread.factor + spread.shift) % num_nodes


class Splits(NamedTuple):
    """The splits of each class, as the kernel reads them.

    Rank r of a class goes to place (factor * r + shift) modulo the size of the class. The first
    places are training nodes, the next ones validation nodes.
    """

    factor: Any
    shift: Any
    train: Any
    val: Any


@jit_parallel
def draw_labels(
    first: int,
    start: Any,
    spread: Permutation,
    splits: Splits,
    noise: float,
    key: Any,
    y: Any,
    split: Any,
    part: Any,
) -> None:
    """Labels of nodes number `first` and on, and their splits: 0, 1, 2 for train, val, test."""
    for i in share(y.shape[0], part):
        rank = _rank(first + i, spread.inverse, spread.shift, spread.size)
        label = _class_of(rank, start)
        size = start[label + 1] - start[label]
        place = ((rank - start[label]) * splits.factor[label] + splits.shift[label]) % size
        split[i] = 0
        if place >= splits.train[label]:
            split[i] = 1 if place < splits.train[label] + splits.val[label] else 2
        state = key + np.uint64(first + i) * np.uint64(2) * STEP
        if _uniform(mix(state)) < noise:
            label = _class_of(_below(mix(state + STEP), spread.size), start)
        y[i] = label


@jit_parallel
def draw_features(
    first: int,
    start: Any,
    spread: Permutation,
    centre: Any,
    noise: float,
    key: Any,
    x: Any,
    part: Any,
) -> None:
    """The centre of a node's class and normal noise, by Box and Muller: two numbers at a time."""
    width = centre.shape[1]
    for i in share(x.shape[0], part):
        node = first + i
        label = _class_of(_rank(node, spread.inverse, spread.shift, spread.size), start)
        state = key + np.uint64(node) * np.uint64(2 * ((width + 1) // 2)) * STEP
        for j in range(0, width, 2):
            # Above 0, so that it has a logarithm, and at most 1.
            radius = math.sqrt(-2 * math.log(1 - _uniform(mix(state + np.uint64(j) * STEP))))
            angle = 2 * math.pi * _uniform(mix(state + np.uint64(j + 1) * STEP))
            x[i, j] = centre[label, j] + noise * np.float32(radius * math.cos(angle))
            if j + 1 < width:
                x[i, j + 1] = centre[label, j + 1] + noise * np.float32(radius * math.sin(angle))
