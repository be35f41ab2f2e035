"""Two tables that can be learned in a moment, and the flags that name them."""

import csv
from pathlib import Path
from typing import Any

import pytest

NUM_NODES = 60
CLASSES = ("art", "law", "zoo")
WORDS = {"art": "paint brush canvas", "law": "court judge trial", "zoo": "lion tiger zebra"}
Columns = dict[str, list[Any]]
OWN = ("--edges", "edges.csv", "--nodes", "nodes.csv")
TOPIC = (*OWN, "--label-column", "topic")
FEW = ("--set", "max_epochs=5")
RUN = ("--out", "run", *FEW)

# The command line prints the library's warnings, which are errors elsewhere in the tests.
PRINTS_WARNINGS = pytest.mark.filterwarnings("always::UserWarning")


def label(i: int) -> str:
    return CLASSES[i % 3]


def node_columns(size: int = NUM_NODES, prefix: str = "p") -> Columns:
    """Every fourth node has no label."""
    return {
        "id": [f"{prefix}{i}" for i in range(size)],
        "age": [10 * (i % 3) + i % 7 for i in range(size)],
        "country": [("de", "fr", "us")[i * 7 % 5 % 3] for i in range(size)],
        "title": [f"{WORDS[label(i)]} {('more', 'less')[i % 2]}" for i in range(size)],
        "topic": [label(i) if i % 4 else "" for i in range(size)],
    }


def edge_columns(size: int = NUM_NODES, prefix: str = "p") -> Columns:
    """Each node with two others of its class and one of another."""
    pairs = [(i, (i + step) % size) for i in range(size) for step in (3, 6, 10)]
    return {
        "source": [f"{prefix}{i}" for i, _ in pairs],
        "target": [f"{prefix}{j}" for _, j in pairs],
    }


def rich_nodes() -> Columns:
    """A column for every flag."""
    size = NUM_NODES
    return node_columns() | {
        "code": [i + 100 for i in range(size)],
        "tags": [("", "a", "b", "a;b")[i % 4] for i in range(size)],
        "is_a": [i % 2 for i in range(size)],
        "is_b": [("true", "False", "")[i % 3] for i in range(size)],
        "part": [("", "train", "VAL", "Test")[i % 4] for i in range(size)],
    }


def rich_edges() -> Columns:
    edges = edge_columns()
    codes = {end: [int(id[1:]) + 100 for id in edges[end]] for end in edges}
    strength = [i % 4 + 0.5 for i in range(3 * NUM_NODES)]
    return edges | {"a_code": codes["source"], "b_code": codes["target"], "strength": strength}


def write(
    path: str, columns: Columns, delimiter: str = ",", encoding: str = "utf-8", newline: str = "\n"
) -> None:
    Path(path).parent.mkdir(exist_ok=True)
    with Path(path).open("w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def rows(path: str, delimiter: str = ",") -> list[dict[str, str]]:
    with Path(path).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))
