"""Three small tables of molecules: graphs, nodes and edges, as columns in plain Python."""

from typing import Any

Table = dict[str, list[Any]]


def graph_table(**changed: list[Any]) -> Table:
    """Four molecules of two classes."""
    return {"graph": ["a", "b", "c", "d"], "kind": ["p", "q", "p", "q"], **changed}


def node_table(**changed: list[Any]) -> Table:
    """Two atoms of each, numbered 0 and 1."""
    graph = [name for name in "abcd" for _ in range(2)]
    return {
        "graph": graph,
        "id": [0, 1] * 4,
        "element": list("CNCNCNCN"),
        "charge": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
        **changed,
    }


def edge_table(**changed: list[Any]) -> Table:
    """A bond between the two."""
    return {"graph": list("abcd"), "source": [0] * 4, "target": [1] * 4, **changed}


def without(table: Table, *names: str) -> Table:
    return {name: column for name, column in table.items() if name not in names}
