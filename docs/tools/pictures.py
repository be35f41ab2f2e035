"""The pictures of "How it works" and the README: python docs/tools/pictures.py

Every number and every selected node comes from lgcn itself: :func:`lgcn.k_largest`,
:class:`lgcn.LGConv` and :func:`lgcn.select_subgraph`. A test compares the files with what this
program draws.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))

from svg import INK, LINE, MUTED, Picture

from lgcn import Graph, LGConv, k_largest, select_subgraph

FOLDER = Path(__file__).parents[1] / "pictures"

# One colour per feature, readable in black letters, and the strong form that marks a selection.
PALE = ("#dbe9fb", "#fde6cf", "#d9f0e1")
STRONG = ("#2f6fd0", "#d9730d", "#2a8c55")
OWN = "#fff3bf"
PICKED, NEW, OLD = "#2f6fd0", "#d9730d", "#9dbfec"

# The neighbourhood of the pictures of the layer: node 0 has five neighbours, k = 4, three features.
K = 4
X = torch.tensor([
    [5.0, 2.0, 7.0],
    [8.0, 1.0, 3.0],
    [2.0, 9.0, 4.0],
    [6.0, 6.0, 0.0],
    [1.0, 4.0, 8.0],
    [7.0, 3.0, 5.0],
])  # fmt: skip
EDGES = torch.tensor([[0, 0, 0, 0, 0, 1, 3], [1, 2, 3, 4, 5, 2, 4]])
PLACES = [(170, 195), (80, 90), (255, 85), (315, 215), (220, 320), (72, 285)]


def neighbourhood() -> Graph:
    return Graph.from_edge_index(torch.cat([EDGES, EDGES.flip(0)], 1), 6, x=X)


def selected() -> tuple[Any, Any]:
    """The values that node 0 selects and where they come from, each [k, features]."""
    graph = neighbourhood()
    values, index = k_largest(X, graph.rowptr, graph.col, K)
    return values[0].tolist(), index[0].tolist()


def _row(picture: Picture, x: float, y: float, values: Iterable[float], cell: int = 30) -> None:
    for feature, value in enumerate(values):
        picture.box(x + feature * cell, y, cell, cell, PALE[feature], "#ffffff", 1.5, 4)
        picture.text(x + (feature + 0.5) * cell, y + cell / 2, f"{value:.0f}", size=19)


def _node(picture: Picture, node: int) -> None:
    x, y = PLACES[node]
    fill = OWN if node == 0 else "#ffffff"
    picture.box(x - 51, y - 36, 102, 72, fill, INK if node == 0 else LINE, 2.5, 12)
    picture.text(x, y - 20, "node 0" if node == 0 else f"neighbour {node}", size=15, color=MUTED)
    _row(picture, x - 45, y - 6, X[node].tolist())


def _grid(picture: Picture, x: float, y: float, cell: int) -> None:
    """The node's own values, then the k largest of each feature, as LGConv.select gives them."""
    values, index = selected()
    for position in range(K + 1):
        row = X[0].tolist() if position == 0 else values[position - 1]
        top = y + position * cell
        for feature in range(3):
            fill = OWN if position == 0 else PALE[feature]
            left = x + feature * cell
            picture.box(left, top, cell, cell, fill, "#ffffff", 2, 5)
            middle = top + cell / 2 - (0 if position == 0 else 6)
            picture.text(left + cell / 2, middle, f"{row[feature]:.0f}", size=20, bold=True)
            if position > 0:
                source = f"from {index[position - 1][feature]}"
                picture.text(left + cell / 2, top + cell - 11, source, size=12, color=MUTED)
    labels = ["own", *(f"{i}{_ORDINAL.get(i, 'th')}" for i in range(1, K + 1))]
    for position, label in enumerate(labels):
        middle = y + (position + 0.5) * cell
        picture.text(x - 10, middle, label, size=16, color=MUTED, anchor="end")


_ORDINAL = {1: "st", 2: "nd", 3: "rd"}


def layer() -> Picture:
    """An LGCL in one picture: the graph, the grid, the CNN, the new features."""
    title = (
        "An LGCL: the k largest values of each feature among the neighbours of node 0 become a "
        "grid, on which a 1-D CNN computes the new features of node 0"
    )
    picture = Picture(760, 405, title)
    graph = neighbourhood()
    for node in range(6):
        for other in graph.col[graph.rowptr[node] : graph.rowptr[node + 1]].tolist():
            if node < other:
                near = node == 0
                ends = PLACES[node], PLACES[other]
                picture.line(*ends, MUTED if near else LINE, 3 if near else 2)
    for node in range(6):
        _node(picture, node)
    picture.text(190, 24, "a node and its neighbours", bold=True)
    picture.arrow((378, 205), (420, 205))
    _grid(picture, 470, 70, 54)
    picture.text(545, 24, f"select: k = {K}", bold=True)
    picture.text(551, 50, "each feature for itself", size=15, color=MUTED)
    picture.arrow((642, 205), (676, 205))
    picture.text(705, 24, "convolve", bold=True)
    picture.text(705, 50, "1-D CNN", size=15, color=MUTED)
    for i in range(4):
        picture.box(690, 121 + i * 42, 40, 40, "#e6e0f5", "#ffffff", 2, 5)
    picture.text(710, 308, "new", size=15, color=MUTED)
    picture.text(710, 326, "features", size=15, color=MUTED)
    picture.text(190, 383, "colours: three features", size=15, color=MUTED)
    return picture


def select() -> Picture:
    """Step one alone: which values of the neighbours are selected, feature by feature."""
    title = f"Select: in each column, the {K} largest values of five neighbours, in order"
    picture = Picture(760, 400, title)
    _, index = selected()
    cell = 50
    picture.text(215, 30, "the neighbours' features", bold=True)
    for neighbour in range(1, 6):
        top = 62 + (neighbour - 1) * cell
        label = f"neighbour {neighbour}"
        picture.text(128, top + cell / 2, label, size=17, color=MUTED, anchor="end")
        for feature in range(3):
            rank = [row[feature] for row in index].index(neighbour) if any(
                row[feature] == neighbour for row in index
            ) else None  # fmt: skip
            left = 140 + feature * cell
            chosen = rank is not None
            fill = PALE[feature] if chosen else "#ffffff"
            edge = STRONG[feature] if chosen else LINE
            picture.box(left + 2, top + 2, cell - 4, cell - 4, fill, edge, 2, 5)
            value = f"{X[neighbour, feature]:.0f}"
            color = INK if chosen else MUTED
            picture.text(left + cell / 2, top + cell / 2, value, size=20, color=color, bold=chosen)
            if rank is not None:
                picture.text(
                    left + cell - 10, top + 12, f"{rank + 1}", size=12, color=STRONG[feature]
                )
    picture.text(215, 330, "framed: among the 4 largest of its column", size=15, color=MUTED)
    picture.text(215, 352, "small number: its rank", size=15, color=MUTED)
    picture.arrow((318, 187), (378, 187))
    picture.text(545, 30, "the grid of node 0", bold=True)
    _grid(picture, 450, 52, 58)
    picture.text(640, 81, "node 0's own", size=15, color=MUTED, anchor="start")
    picture.text(640, 139, "largest first", size=15, color=MUTED, anchor="start")
    picture.text(537, 365, "one column per feature, one row per position", size=15, color=MUTED)
    return picture


def convolve() -> Picture:
    """Step two alone: two convolutions take k + 1 positions to one."""
    conv = LGConv(3, 5, k=K)
    weights: list[Any] = [part.weight for part in conv.cnn.children() if hasattr(part, "weight")]
    first, second = (tuple(weight.shape) for weight in weights)
    hidden, middle = first[0], K + 1 - first[2] + 1
    assert middle - second[2] + 1 == 1
    title = f"Convolve: kernels of {first[2]} and {second[2]} take {K + 1} positions to one"
    picture = Picture(760, 330, title)
    cell, top = 38, 72
    columns = ((3, K + 1, 60, PALE), (hidden, middle, 330, None), (second[0], 1, 545, None))
    for channels, positions, left, colors in columns:
        offset = top + (K + 1 - positions) / 2 * cell
        for position in range(positions):
            for channel in range(channels):
                fill = colors[channel] if colors else ("#d3e6e8" if left == 330 else "#e6e0f5")
                x, y = left + channel * cell, offset + position * cell
                picture.box(x, y, cell - 2, cell - 2, fill, "none", 0, 4)
    # What the kernel sees at its first place, and where it writes to.
    seen_first = top, first[2] * cell
    y_middle = top + (K + 1 - middle) / 2 * cell
    picture.box(56, seen_first[0] - 4, 3 * cell + 6, seen_first[1] + 6, "none", INK, 2.5, 7)
    picture.box(326, y_middle - 4, hidden * cell + 6, cell + 6, "none", INK, 2.5, 7)
    start = 56 + 3 * cell + 8
    picture.line((start, seen_first[0] - 2), (324, y_middle - 2), MUTED, 1.5, stroke_dasharray=5)
    picture.line(
        (start, seen_first[0] + seen_first[1]),
        (324, y_middle + cell),
        MUTED,
        1.5,
        stroke_dasharray=5,
    )
    right = 326 + hidden * cell + 8
    y_last = top + K / 2 * cell
    picture.line((right, y_middle - 2), (543, y_last), MUTED, 1.5, stroke_dasharray=5)
    picture.line(
        (right, y_middle + middle * cell), (543, y_last + cell), MUTED, 1.5, stroke_dasharray=5
    )
    for middle_x, words, more in (
        (60 + 1.5 * cell, f"{K + 1} positions", "3 features each"),
        (330 + hidden / 2 * cell, f"{middle} positions", f"{hidden} features each"),
        (545 + second[0] / 2 * cell, "1 position", f"{second[0]} new features"),
    ):
        picture.text(middle_x, 26, words, bold=True)
        picture.text(middle_x, 50, more, size=15, color=MUTED)
    picture.text(250, 290, f"kernel of {first[2]}", size=17)
    picture.text(500, 290, f"kernel of {second[2]}", size=17)
    return picture


# The graph of Algorithm 1: points in the plane, joined where they are near.
N_INIT, N_S, N_M, SEED = 3, 24, 8, 7


def plane() -> tuple[Graph, Any]:
    """70 points on a jittered lattice and the graph of those that are near each other."""
    rng = np.random.default_rng(1)
    lattice = np.stack(np.meshgrid(np.arange(10), np.arange(7)), -1).reshape(-1, 2)
    points = (lattice + rng.uniform(-0.33, 0.33, lattice.shape)) * 62 + 61
    distance = np.linalg.norm(points[:, None] - points[None], axis=2)
    source, target = np.nonzero((distance < 79) & (distance > 0))
    graph = Graph.from_edge_index(torch.from_numpy(np.stack([source, target])), len(points))
    return graph, points


def grow(hops: int) -> set[int]:
    """The sub-graph's nodes after so many iterations of Algorithm 1."""
    graph, _ = plane()
    nodes = select_subgraph(
        graph, n_init=N_INIT, max_nodes=N_S, max_expand=N_M, max_hops=hops, seed=SEED
    )
    return set(nodes.tolist())


def iterations() -> list[set[int]]:
    """The nodes at the start and after each iteration, until nothing is added."""
    sets = [grow(0)]
    while len(sets[-1]) < N_S and (after := grow(len(sets))) != sets[-1]:
        sets.append(after)
    return sets


def step(number: int) -> Picture:
    """The sub-graph after an iteration: what it had, what came, and what it looked at."""
    graph, points = plane()
    sets = iterations()
    now = sets[number]
    before = sets[number - 1] if number else set()
    new = now - before
    edges = graph.edge_index.T.tolist()
    frontier = before - sets[number - 2] if number > 1 else before
    seen = {j for i, j in edges if i in frontier} - now
    if number == 0:
        words = f"{len(now)} start nodes"
    else:
        words = f"iteration {number}: {len(new)} of {len(new | seen)} candidates are added"
    picture = Picture(680, 545, f"Algorithm 1, {words}")
    for i, j in edges:
        if i < j:
            inside = i in now and j in now
            ends = points[i].tolist(), points[j].tolist()
            picture.line(*ends, INK if inside else "#dde3e8", 3 if inside else 2)
    for node, point in enumerate(points.tolist()):
        if node in new:
            picture.circle(point, 14, NEW)
        elif node in now:
            picture.circle(point, 14, PICKED)
        elif node in seen:
            picture.circle(point, 11, "#ffffff", NEW, 3)
        else:
            picture.circle(point, 9, "#ffffff", LINE)
    picture.text(28, 484, words, size=23, anchor="start", bold=True)
    size = f"the sub-graph has {len(now)} of at most {N_S} nodes"
    picture.text(28, 516, size, size=21, anchor="start", color=MUTED)
    return picture


def pictures() -> dict[str, str]:
    """File name and contents of every picture."""
    drawn = {"layer.svg": layer(), "select.svg": select(), "convolve.svg": convolve()}
    drawn |= {f"algorithm1-{i}.svg": step(i) for i in range(len(iterations()))}
    return {name: str(picture) for name, picture in drawn.items()}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pictures().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
