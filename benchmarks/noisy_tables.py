"""Two CSV files of a large graph that is hard enough to learn slowly.

Degrees follow a power law, a third of the edges are noise, communities and classes agree only
mostly, classes are unequal, and the columns say little about a node without its neighbours.
`lgcn generate` makes stores that are as hard, of any size; this makes tables with names, numbers
and categories.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

CLASSES = 10
COMMUNITY_NODES = 400  # on average
NUMERIC = 50


def write_tables(
    folder: Path, num_nodes: int, num_edges: int, *, labelled: float = 1.0, seed: int = 0
) -> tuple[Path, Path]:
    """Writes nodes.csv and edges.csv, and returns their paths.

    Args:
        folder: Where to write them.
        num_nodes, num_edges: The size. Fewer edges remain, without duplicates and loops.
        labelled: Share of the nodes that have a label. (default: 1)
        seed: Random seed. (default: 0)
    """
    rng = np.random.default_rng(seed)
    community = rng.integers(max(CLASSES, num_nodes // COMMUNITY_NODES), size=num_nodes)
    share = 0.75 ** np.arange(CLASSES)
    share /= share.sum()
    class_of = rng.choice(CLASSES, size=community.max() + 1, p=share)
    y = class_of[community]
    strays = rng.random(num_nodes) < 0.15
    y[strays] = rng.choice(CLASSES, size=strays.sum(), p=share)

    source, target = _edges(rng, community, num_edges)
    folder.mkdir(parents=True, exist_ok=True)
    nodes, edges = folder / "nodes.csv", folder / "edges.csv"
    csv.write_csv(pa.table({"source": _ids(source), "target": _ids(target)}), edges)
    columns: dict[str, Any] = {"id": _ids(np.arange(num_nodes))}
    centres = rng.normal(size=(CLASSES, NUMERIC))
    for column in range(NUMERIC):
        values = 0.25 * centres[y, column] + rng.normal(size=num_nodes)
        columns[f"x{column}"] = np.round(values * 10 ** (column % 4), 3)
    region = np.where(rng.random(num_nodes) < 0.3, y, rng.integers(20, size=num_nodes))
    columns["region"] = np.char.add("region ", region.astype(str))
    known = rng.random(num_nodes) < labelled
    names = np.char.add("class ", y.astype(str))
    columns["label"] = pa.array(names, mask=~known)
    csv.write_csv(pa.table(columns), nodes)
    return nodes, edges


def _ids(numbers: Any) -> Any:
    return np.char.add("n", numbers.astype(str))


def _edges(rng: np.random.Generator, community: Any, num_edges: int) -> tuple[Any, Any]:
    """Distinct pairs: two thirds of them within a community, nodes drawn by power-law weights."""
    num_nodes = community.size
    weight = rng.pareto(2.0, size=num_nodes) + 1
    weight = np.minimum(weight, 100)
    order = np.argsort(community, kind="stable")
    ends = np.cumsum(weight[order])
    sizes = np.bincount(community, minlength=community.max() + 1)
    last = np.cumsum(sizes)
    top, bottom = ends[last - 1], np.concatenate([[0.0], ends[last - 1][:-1]])

    def draw(low: Any, high: Any) -> Any:
        at = np.searchsorted(ends, low + rng.random(num_edges) * (high - low), side="right")
        return order[np.minimum(at, num_nodes - 1)]

    source = draw(0.0, ends[-1])
    near = rng.random(num_edges) < 2 / 3
    home = community[source]
    target = draw(np.where(near, bottom[home], 0.0), np.where(near, top[home], ends[-1]))
    low, high = np.minimum(source, target), np.maximum(source, target)
    pairs = np.unique(low[low != high] * num_nodes + high[low != high])
    return pairs // num_nodes, pairs % num_nodes
