"""Sets of graphs with random damage are read, or refused with a clear error."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.datasets.graph_npz import read_graph_npz
from lgcn.datasets.tu import read_tu
from lgcn.errors import DataError
from lgcn.graph import GraphSet

from .test_graph_npz import write as write_npz
from .tu_files import lines, parts_of, write_folder, write_zip

PARTS = parts_of([nx.cycle_graph(4), nx.path_graph(3)], [0, 2]) | {
    "node_labels": lines([1, 2, 3, 1, 2, 3, 1]),
    "node_attributes": lines([place / 3, -1.5] for place in range(7)),
}
PIECES = [
    b"\n",
    b",",
    b", ",
    b" ",
    b"-",
    b".",
    b"e9",
    b"0",
    b"1",
    b"9" * 30,
    b"nan",
    b"\0",
    b"\xff",
]


def outcome(read: Callable[[], GraphSet]) -> GraphSet | DataError:
    try:
        return read()
    except DataError as error:
        return error


def check(found: GraphSet | DataError) -> None:
    """The set was refused with a message, or fits together."""
    if isinstance(found, DataError):
        assert str(found)
        return
    assert int(found.ptr[-1]) == found.num_nodes
    assert found.graph.x is None or len(found.graph.x) == found.num_nodes
    assert found.y is None or len(found.y) == len(found)


damage = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 3), st.sampled_from(PIECES)), min_size=1, max_size=4
)


def damaged(data: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    """Replaces some bytes at each place by others."""
    for share, length, piece in changes:
        place = int(share * len(data))
        data = data[:place] + piece + data[place + length :]
    return data


@given(st.sampled_from(sorted(PARTS)), damage)
@settings(max_examples=100)
@pytest.mark.hypothesis
def test_damaged_texts_are_read_or_refused(
    part: str, changes: list[tuple[float, int, bytes]]
) -> None:
    parts = {**PARTS, part: damaged(PARTS[part].encode(), changes)}
    with tempfile.TemporaryDirectory() as folder:
        check(outcome(lambda: read_tu(write_folder(Path(folder), parts))))


@given(damage)
@settings(max_examples=100)
@pytest.mark.hypothesis
def test_damaged_targets_are_read_or_refused(changes: list[tuple[float, int, bytes]]) -> None:
    numbers = damaged(b"0.5\n-1e3\n", changes)
    parts = {**PARTS, "graph_labels": None, "graph_attributes": numbers}
    with tempfile.TemporaryDirectory() as folder:
        check(outcome(lambda: read_tu(write_folder(Path(folder), parts), target=0)))


@given(damage)
@settings(max_examples=100)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.hypothesis
def test_damaged_archives_are_read_or_refused(changes: list[tuple[float, int, bytes]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        packed, arrays = write_zip(Path(folder) / "a.zip", PARTS), Path(folder) / "a.npz"
        write_npz(arrays)
        for path, read in ((packed, read_tu), (arrays, read_graph_npz)):
            path.write_bytes(damaged(path.read_bytes(), changes))
            check(outcome(partial(read, path)))
