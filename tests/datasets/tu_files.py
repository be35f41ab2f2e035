"""Sets of graphs in TU's layout, written in plain Python, and the edges of a set that was read."""

import zipfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import networkx as nx

from lgcn.graph import GraphSet

Parts = dict[str, str]


def lines(rows: Iterable[Any]) -> str:
    """One line per row, with commas between the numbers of a row."""
    texts = (row if isinstance(row, tuple | list) else [row] for row in rows)
    return "".join(", ".join(map(str, text)) + "\n" for text in texts)


def parts_of(graphs: Sequence[nx.Graph], labels: Iterable[Any], *, both: bool = True) -> Parts:
    """The texts of a set whose graphs have the nodes 0, 1, ...

    The node attributes `labels` and `attributes` become files of their own if all nodes have them.
    """
    first = [0, *accumulate(len(graph) for graph in graphs)]
    edges = [
        (first[place] + a + 1, first[place] + b + 1)
        for place, graph in enumerate(graphs)
        for a, b in graph.edges
    ]
    if both:
        edges = [pair for a, b in edges for pair in ((a, b), (b, a))]
    parts = {
        "A": lines(edges),
        "graph_indicator": lines(place + 1 for place, graph in enumerate(graphs) for _ in graph),
        "graph_labels": lines(labels),
    }
    nodes = [data for graph in graphs for _, data in sorted(graph.nodes(data=True))]
    for name in ("labels", "attributes"):
        if nodes and all(name in data for data in nodes):
            parts[f"node_{name}"] = lines(data[name] for data in nodes)
    return parts


def write_folder(folder: Path, parts: Mapping[str, str | bytes | None], name: str = "S") -> Path:
    """Writes the files of a set; `None` leaves one out."""
    folder.mkdir(parents=True, exist_ok=True)
    for part, text in parts.items():
        if text is not None:
            content = text if isinstance(text, bytes) else text.encode()
            (folder / f"{name}_{part}.txt").write_bytes(content)
    return folder


def write_zip(
    path: Path,
    parts: Mapping[str, str],
    prefix: str = "S_",
    more: Mapping[str, str | bytes] | None = None,
    kind: int = zipfile.ZIP_DEFLATED,
) -> Path:
    """Writes the files of a set into a zip file, with `more` members."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", kind) as archive:
        for part, text in parts.items():
            archive.writestr(f"{prefix}{part}.txt", text)
        for member, content in (more or {}).items():
            archive.writestr(member, content)
    return path


def edges_of(graphs: GraphSet) -> list[set[tuple[int, int]]]:
    """The edges of each graph by its own node numbers; fails if one is listed twice, or one way."""
    ptr = graphs.ptr.tolist()
    found: list[set[tuple[int, int]]] = [set() for _ in graphs.ptr[1:]]
    owner = [place for place, size in enumerate(graphs.sizes.tolist()) for _ in range(size)]
    pairs = [tuple(pair) for pair in graphs.graph.edge_index.T.tolist()]
    assert len(set(pairs)) == len(pairs)
    assert {(b, a) for a, b in pairs} == set(pairs)
    for a, b in pairs:
        assert owner[a] == owner[b]
        if a < b:
            found[owner[a]].add((a - ptr[owner[a]], b - ptr[owner[b]]))
    return found


def expected_edges(graphs: Sequence[nx.Graph]) -> list[set[tuple[int, int]]]:
    """What `edges_of` finds in these graphs."""
    return [{(min(a, b), max(a, b)) for a, b in graph.edges if a != b} for graph in graphs]
