import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lgcn.datasets.pickles import read_pickle
from lgcn.errors import DataError

from .planetoid_files import python2_pickle

MATRIX = scipy.sparse.csr_matrix(np.array([[0, 1.5, 0], [2, 0, 3]], dtype=np.float32))
GRAPH = defaultdict(list, {0: [1, 300], 1: [70000], 2: []})
ARRAYS = [
    np.arange(6, dtype=np.int32).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.float64).reshape(2, 3)),
    np.arange(4, dtype=">i8"),
    np.array([True, False]),
]


class Payload:
    """A pickle of this makes the file ``marker`` when it is loaded without care."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        import os

        return os.system, (f'echo 1 > "{self.marker}"',)


@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype.str}{a.shape}")
@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_arrays(array: Any, protocol: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(array, protocol=protocol))
    value = read_pickle(path)
    assert isinstance(value, np.ndarray)
    assert value.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(value, array)


def test_empty_array(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(np.zeros((0, 3), dtype=np.float32), protocol=4))
    assert read_pickle(path).shape == (0, 3)


@pytest.mark.parametrize("data", [python2_pickle(MATRIX), pickle.dumps(MATRIX, protocol=4)])
def test_matrix(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    value = read_pickle(path)
    np.testing.assert_array_equal(value.toarray(), MATRIX.toarray())


def test_graph(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(python2_pickle(GRAPH))
    assert read_pickle(path) == GRAPH


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("wrap", [lambda p: p, lambda p: {0: [p]}], ids=["bare", "nested"])
def test_payload_is_refused_and_not_run(wrap: Any, protocol: int, tmp_path: Path) -> None:
    path, marker = tmp_path / "ind.cora.graph", tmp_path / "marker"
    data = pickle.dumps(wrap(Payload(marker)), protocol=protocol)
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"ind\.cora\.graph.*(posix|nt)\.system.*refused"):
        read_pickle(path)
    assert not marker.exists()
    pickle.loads(data)
    assert marker.exists(), "the payload must work where it is not refused"


@pytest.mark.parametrize(
    "name", [b"builtins\neval", b"numpy\nload", b"copyreg\n_reconstructor", b"os\nlist"]
)
def test_other_names_are_refused(name: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x80\x02c" + name + b"\n.")
    with pytest.raises(DataError, match=name.decode().replace("\n", r"\.")):
        read_pickle(path)


def test_state_of_an_admitted_class_cannot_be_set(tmp_path: Path) -> None:
    """BUILD on the class itself would change it for all later files."""
    path = tmp_path / "file"
    path.write_bytes(b"\x80\x02cnumpy\nndarray\nN}X\x04\x00\x00\x00argsK\x01s\x86b.")
    with pytest.raises(DataError, match="damaged"):
        read_pickle(path)
    path.write_bytes(python2_pickle(ARRAYS[0]))
    np.testing.assert_array_equal(read_pickle(path), ARRAYS[0])


@pytest.mark.parametrize("value", [[1], 3, "text", None])
def test_other_values_are_refused(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(pickle.dumps(value, protocol=2))
    with pytest.raises(DataError, match="must hold an array"):
        read_pickle(path)


@pytest.mark.parametrize(
    ("key", "array"),
    [
        ("indptr", np.array([0, 9, 3], dtype=np.int32)),
        ("indptr", np.array([0, 3], dtype=np.int32)),
        ("indices", np.array([1, 0, 3], dtype=np.int32)),
        ("indices", np.array([1, -1, 2], dtype=np.int32)),
        ("indices", np.array([1.0, 0.0, 2.0])),
        ("data", np.array([1.0, 2.0])),
        ("data", np.array([1.0, np.nan, 2.0])),
    ],
)
def test_matrix_with_wrong_arrays(key: str, array: Any, tmp_path: Path) -> None:
    matrix = MATRIX.copy()
    matrix.__dict__[key] = array
    path = tmp_path / "ind.cora.allx"
    path.write_bytes(python2_pickle(matrix))
    with pytest.raises(DataError, match=r"ind\.cora\.allx"):
        read_pickle(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        read_pickle(tmp_path / "nowhere")


def test_a_huge_memo_number_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\x80\x02}r\xff\xff\xff\xff.")
    assert read_pickle(path) == {}


SAMPLES = [python2_pickle(value) for value in (MATRIX, GRAPH, ARRAYS[0])]


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damage_is_a_data_error(data: st.DataObject, tmp_path: Path) -> None:
    """Whatever bytes are cut off or changed, there is a value or an error that names the file."""
    content = bytearray(data.draw(st.sampled_from(SAMPLES)))
    places = st.integers(0, len(content) - 1)
    flips = st.dictionaries(places, st.integers(0, 255), max_size=4)
    for place, byte in data.draw(flips).items():
        content[place] = byte
    end = data.draw(st.one_of(st.just(len(content)), places))
    path = tmp_path / "damaged-file"
    path.write_bytes(content[:end])
    try:
        value = read_pickle(path)
    except DataError as error:
        message = str(error)
    else:
        message = f"damaged-file is readable: {value}"
        assert isinstance(value, np.ndarray | dict) or scipy.sparse.issparse(value)
    assert "damaged-file" in message


def test_a_pickle_cannot_copy_lists_without_limit(tmp_path: Path) -> None:
    path = tmp_path / "ind.cora.graph"
    # A dict of one long list, and of copies that list() makes of it, at a few bytes each.
    copies = b"".join(b"K" + bytes([i]) + b"c__builtin__\nlist\n(h\x01tR" for i in range(200))
    numbers = b"K\x01" * 10_000
    path.write_bytes(b"\x80\x02}(K\xff](" + numbers + b"eq\x01" + copies + b"u.")
    value = read_pickle(path)
    assert sum(isinstance(entry, list) for entry in value.values()) == 1
