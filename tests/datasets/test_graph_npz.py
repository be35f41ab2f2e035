"""Sets of graphs in one `.npz` file of plain arrays."""

import io
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn import load_graphs
from lgcn.datasets.graph_npz import ARRAYS, read_graph_npz
from lgcn.errors import DataError
from lgcn.utils import arrays as arrays_module
from lgcn.utils import memory

from .tu_files import edges_of, expected_edges

GRAPHS = [nx.path_graph(3), nx.star_graph(1)]


def arrays_of(graphs: list[nx.Graph], labels: list[int]) -> dict[str, Any]:
    """The arrays of graphs whose nodes are 0, 1, ..."""
    pairs = [pair for graph in graphs for pair in graph.edges()]
    targets = np.array([b for _, b in pairs], np.int64)
    return {
        "node_ptr": np.cumsum([0, *(len(graph) for graph in graphs)]),
        "edge_ptr": np.cumsum([0, *(graph.number_of_edges() for graph in graphs)]),
        "source": np.array([a for a, _ in pairs], np.int64),
        "target_difference": np.diff(targets, prepend=0),
        "graph_labels": np.array(labels, np.int64),
    }


def write(path: Path, **changed: Any) -> Path:
    """Two graphs; `None` leaves an array out."""
    arrays = arrays_of(GRAPHS, [3, -1]) | changed
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize("kind", ["i1", "i2", "<i4", ">i4", "i8"])
def test_arrays_of_any_whole_numbers_are_read(kind: str, tmp_path: Path) -> None:
    arrays = {name: array.astype(kind) for name, array in arrays_of(GRAPHS, [3, -1]).items()}
    graphs = read_graph_npz(write(tmp_path / "mine.npz", **arrays))
    assert graphs.name == "mine"
    assert graphs.sizes.tolist() == [3, 2]
    assert edges_of(graphs) == expected_edges(GRAPHS)
    assert graphs.y is not None
    assert graphs.y.tolist() == [1, 0]
    assert graphs.targets.label_names == ("-1", "3")
    assert graphs.graph.x is None


def test_self_loops_are_left_out_and_duplicates_merged(tmp_path: Path) -> None:
    many = nx.MultiGraph([(0, 1), (0, 1), (1, 1), (2, 2)])
    changed = arrays_of([many, nx.empty_graph(1)], [0, 1])
    graphs = read_graph_npz(write(tmp_path / "a.npz", **changed))
    assert edges_of(graphs) == [{(0, 1)}, set()]


def test_other_arrays_are_not_read(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz", more=np.array([{}], dtype=object))
    assert len(read_graph_npz(path)) == 2


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[nx.Graph], list[int]]:
    graphs = []
    for size in draw(st.lists(st.integers(0, 5), max_size=6)):
        graph = nx.empty_graph(size, nx.MultiGraph)
        if size:
            node = st.integers(0, size - 1)
            graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=8)))
        graphs.append(graph)
    count = len(graphs)
    return graphs, draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))


@given(sets())
@pytest.mark.hypothesis
def test_random_sets_are_read_as_they_were_written(drawn: tuple[list[nx.Graph], list[int]]) -> None:
    single, labels = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.npz", **arrays_of(single, labels))
        graphs = read_graph_npz(path)
    plain = [nx.Graph(graph.edges()) for graph in single]
    assert graphs.sizes.tolist() == [len(graph) for graph in single]
    assert edges_of(graphs) == expected_edges(plain)
    assert graphs.y is not None
    assert graphs.targets.label_names is not None
    assert [int(graphs.targets.label_names[number]) for number in graphs.y] == labels


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda array: None, "missing"),
        (lambda array: array.astype(float), "integers"),
        (lambda array: array[None], "shape"),
        (lambda array: array[0], "shape"),
        (lambda array: array.astype(str), "integers"),
        (lambda array: array.astype(bool), "integers"),
        (lambda array: array.astype(object), "cannot read.*Object"),
    ],
    ids=["missing", "floats", "matrix", "number", "strings", "booleans", "pickled"],
)
def test_arrays_of_another_kind_are_named(
    name: str, made: Any, message: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "a.npz", **{name: made(arrays_of(GRAPHS, [3, -1])[name])})
    with pytest.raises(DataError, match=rf"a\.npz.*{message}") as error:
        read_graph_npz(path)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def numbers(*values: int) -> Any:
    return np.array(values)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"node_ptr": numbers(0, 5)}, r"node_ptr must .*\[3\]"),
        ({"node_ptr": numbers(0, 6, 5)}, "node_ptr must rise from 0"),
        ({"node_ptr": numbers(1, 3, 5)}, "node_ptr must rise from 0"),
        ({"node_ptr": numbers(0, -3, 5)}, r"node_ptr must be from 0"),
        ({"node_ptr": numbers(0, 3, 2**40)}, r"node_ptr must end .*got 1099511627776"),
        ({"node_ptr": numbers(0, 3, 3)}, r"source of edge 2 .*got 0"),
        ({"edge_ptr": numbers(0, 4, 3)}, "edge_ptr must rise from 0"),
        ({"edge_ptr": numbers(0, 2, 2)}, r"edge_ptr must end .*\(3\), got 2"),
        ({"edge_ptr": numbers(0, 3, 3), "source": numbers(0, 1, 3)}, r"source of edge 2.*got 3"),
        ({"edge_ptr": np.full(3, 2**64 - 1, np.uint64)}, r"edge_ptr must be from 0"),
        ({"source": numbers(0, 1)}, r"target_difference must .*\[2\]"),
        ({"source": numbers(0, 3, 0)}, r"source of edge 1 .*0 to 2, got 3"),
        ({"source": numbers(0, -1, 0)}, r"source of edge 1 .*0 to 2, got -1"),
        ({"source": np.full(3, 2**64 - 1, np.uint64)}, r"source of edge 0 .*got 18446744073709551"),
        ({"target_difference": numbers(1, 1, 0)}, r"target of edge 2 .*0 to 1, got 2"),
        ({"target_difference": numbers(2**62, 2**62, 2**62)}, r"target of edge 0 "),
        ({"graph_labels": numbers(1)}, r"node_ptr must .*\[2\]"),
    ],
)
def test_numbers_that_do_not_fit_are_named(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=rf"a\.npz.*{message}"):
        read_graph_npz(write(tmp_path / "a.npz", **changed))


def test_more_nodes_than_fit_in_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.npz", node_ptr=numbers(0, 3, 2**31 - 1))
    monkeypatch.setattr(memory, "machine_memory", lambda: 16 * 10**9)
    with pytest.raises(DataError, match=r"a\.npz: 2147483647 nodes would need"):
        read_graph_npz(path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04garbage"])
def test_what_is_no_npz_file_is_said_so(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz is not a readable"):
        read_graph_npz(path)


def test_damage_in_an_array_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "a.npz")
    data = bytearray(path.read_bytes())
    data[data.index(b"NUMPY") + 130] ^= 255  # in the numbers of the first array
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"a\.npz: cannot read the array node_ptr"):
        read_graph_npz(path)


def test_arrays_that_unpack_to_far_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez_compressed(tmp_path / "a.npz", **arrays_of(GRAPHS, [0, 1]), more=np.zeros(10**6))
    assert len(read_graph_npz(tmp_path / "a.npz")) == 2  # a few MB are no bomb
    monkeypatch.setattr(arrays_module, "MAX_UNPACKED", 10**6)
    with pytest.raises(DataError, match=r"a\.npz unpacks to .* 200 times"):
        read_graph_npz(tmp_path / "a.npz")


def test_an_array_that_claims_more_than_its_file_has_is_refused(tmp_path: Path) -> None:
    header = {"descr": "<i8", "fortran_order": False, "shape": (2**40,)}
    claim = io.BytesIO()
    np.lib.format.write_array_header_1_0(claim, header)
    path = write(tmp_path / "a.npz", source=None)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("source.npy", claim.getvalue())
    with pytest.raises(DataError, match=r"a\.npz.*source.*claims 8796093022208 bytes"):
        read_graph_npz(path)


def test_collab_has_the_published_sizes(real_data: Path) -> None:
    path = real_data / "tu" / "COLLAB.npz"
    if not path.is_file():
        pytest.skip("LGCN_DATA lacks COLLAB")
    graphs = load_graphs("COLLAB", root=real_data)
    assert (len(graphs), graphs.num_classes, graphs.num_features) == (5000, 3, 0)
    with np.load(path) as arrays:
        loops = int((arrays["source"] == np.cumsum(arrays["target_difference"].astype(int))).sum())
        assert graphs.graph.num_edges == 2 * (len(arrays["source"]) - loops)
        assert graphs.sizes.tolist() == np.diff(arrays["node_ptr"]).tolist()
