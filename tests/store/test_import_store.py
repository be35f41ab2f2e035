"""Imports into a store: bad rows, wrong arguments, a full disk, a memory limit.

That an import can be killed is shown in tests/crash.
"""

import errno
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from lgcn.errors import DataError, UsageError
from lgcn.store import edge_buckets
from lgcn.store.import_store import import_store

from .stores import ROOMY, imported

pytestmark = pytest.mark.usefixtures("small_pieces")


LINES = ["source,target,weight", "a,b,1", "b,c,2", "c,a,1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a,b", r"line 5: must have 3 cells .* got 'a,b'"),
        (b"a,b,1,2", r"line 5: must have 3 cells"),
        (b",b,1", r"line 5: column 'source': the id is missing"),
        (b"a,b,heavy", r"line 5: column 'weight' must .* got 'heavy'"),
        (b"a,b,-1", r"line 5: column 'weight': a weight must be .* got -1"),
        (b"a,b,", r"line 5: column 'weight': a weight must be .* got none"),
        (b"a,b,1e60", r"line 5: column 'weight'.* got 1e\+60"),
        (b"a,\xff,1", r"line 5: column 'target' .*utf-8"),
    ],
)
def test_bad_rows_of_text(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "edges.csv"
    lines = [text.encode() for text in LINES]
    path.write_bytes(b"\n".join([*lines, line, b"a,c,4", line, line, b"a,d,5", b""]))
    options: dict[str, Any] = {"weight_column": "weight"}
    with pytest.raises(DataError, match=message) as raised:
        imported(tmp_path / "store", path, skip_bad_rows=2, **options)
    assert "2 more rows are wrong" in str(raised.value)
    assert "skip_bad_rows=3" in str(raised.value)
    assert not (tmp_path / "store").exists()
    store, counts = imported(tmp_path / "store", path, skip_bad_rows=3, **options)
    assert (counts["rows"], counts["bad_rows"], counts["edges"]) == (8, 3, 4)
    assert "3 bad rows of edges are skipped: " in counts["notes"][0]
    assert store.node_ids(0, 4).to_pylist() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("cell", ["x", "1.5", "9223372036854775808", "", "NA"])
def test_mixed_types(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("s,t\n0,1\n1,2\n" + "2,0\n" * 9, encoding="utf-8")
    other = tmp_path / "more.csv"
    other.write_text(f"s,t\n0,2\n1,{cell}\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"more\.csv, line 3.*'t'.*Correct the rows"):
        imported(tmp_path / "store", [path, other])
    _, counts = imported(tmp_path / "store", [path, other], skip_bad_rows=1)
    assert (counts["bad_rows"], counts["rows"], counts["nodes"]) == (1, 13, 3)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, 2, None]), "row 2: column 'target': the id is missing"),
        (pa.array([1, 2.5, 3]), r"row 1: column 'target' must .* got 2\.5"),
        (pa.array([1, 2, 2**63], pa.uint64()), r"row 2: column 'target'.*below 2\*\*63"),
        (pa.array([1, 2.0, float("nan")]), "row 2: column 'target': the id is missing"),
    ],
)
def test_bad_rows_of_other_tables(tmp_path: Path, column: Any, message: str) -> None:
    table = pa.table({"source": [0, 0, 0], "target": column})
    pyarrow.parquet.write_table(table, tmp_path / "edges.parquet")
    with pytest.raises(DataError, match=message):
        imported(tmp_path / "store", tmp_path / "edges.parquet")
    _, counts = imported(tmp_path / "store", tmp_path / "edges.parquet", skip_bad_rows=1)
    assert (counts["rows"], counts["bad_rows"], counts["edges"]) == (3, 1, 2)


def test_ids_that_are_in_no_node_table(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n1,2\n1,9\n8,9\n2,3\n8,1\n")
    nodes = {"id": [1, 2, 3], "f": [1, 2, 3]}
    message = r"line 3: column 'target' names 9, which is not in nodes.*2 more rows.*line 4.*line 6"
    with pytest.raises(DataError, match=message):
        imported(tmp_path / "store", path, nodes)
    _, counts = imported(tmp_path / "a", path, nodes, skip_bad_rows=3)
    assert (counts["rows"], counts["bad_rows"], counts["unknown_endpoints"]) == (5, 3, 0)
    _, counts = imported(tmp_path / "b", path, nodes, unknown_nodes="drop")
    assert (counts["rows"], counts["bad_rows"], counts["unknown_endpoints"]) == (5, 0, 3)
    with pytest.raises(DataError, match="No edge fits: check that id_column"):
        imported(tmp_path / "store", path, {"id": [101, 102], "f": [1, 2]})
    with pytest.raises(DataError, match="there are no edges"):
        imported(tmp_path / "c", path, {"id": [101, 102], "f": [1, 2]}, unknown_nodes="drop")


def test_an_edge_where_names_should_be(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("a,b\nb,c\nc,a\n")
    with pytest.raises(DataError, match="first line must be column names, got the edge 'a' to 'b'"):
        imported(tmp_path / "store", path)
    _, counts = imported(tmp_path / "store", path, source_column="a", target_column="b")
    assert counts["edges"] == 2


PAIR = np.array([[1, 2]])


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        (PAIR, {"memory": "much"}, "memory must be a size"),
        (PAIR, {"memory": "1MB"}, "memory must be at least .*B, got 1 MB"),
        (PAIR, {"skip_bad_rows": -1}, "skip_bad_rows"),
        (PAIR, {"features": "int8"}, "features must be one of"),
        (PAIR, {"unknown_nodes": "ask"}, "unknown_nodes"),
        (PAIR, {"label_column": "l"}, "Give nodes"),
        (PAIR, {"labels_column": "l"}, r"labels_column .*option .*label_column"),
        (PAIR, {"source_column": "s"}, "together"),
        (None, {}, "nothing to import"),
        (3, {}, "edges must be a path"),
        ([], {}, "gave no arrays"),
        ([(np.zeros(2), np.zeros(3))], {}, "arrays of one length"),
        ([np.zeros((3, 3))], {}, r"shape \[n, 2\]"),
        ("nothing.csv", {}, "does not exist"),
        ("edges.xls", {}, "must end in one of"),
    ],
)
def test_wrong_arguments(tmp_path: Path, edges: Any, options: Any, message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        import_store(tmp_path / "store", edges, **({"memory": ROOMY} | options))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(edge_buckets, "_write_at", full)
    monkeypatch.setattr("lgcn.store.import_store._load_kernels", lambda *_: None)
    with pytest.raises(DataError, match="not enough room on the disk"):
        imported(tmp_path / "store", np.array([[0, 1]]))
    assert list(tmp_path.iterdir()) == []


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_the_memory_ceiling_holds(tmp_path: Path) -> None:
    # Sorting these edges in memory takes more than the 130 MB that are allowed here.
    code = """
    import sys
    import numpy as np
    from lgcn.store.import_store import import_store
    from lgcn.utils.memory import PeakMemory, anonymous_memory

    def edges():
        rng = np.random.default_rng(0)
        for _ in range(50):
            yield rng.integers(0, 500_000, (100_000, 2))

    # Compiles all there is to compile, which takes memory of its own.
    import_store(sys.argv[1], np.array([[0, 1], [1, 2]]))
    ceiling = anonymous_memory() + 130 * 10**6
    with PeakMemory(every=0.002) as peak:
        counts = import_store(sys.argv[1], edges(), memory=ceiling, overwrite=True)
    print(counts["rows"], counts["peak_memory"], peak.peak, ceiling)
    """
    done = run(code, str(tmp_path / "store"))
    assert done.returncode == 0, done.stderr
    rows, reported, peak, ceiling = map(int, done.stdout.split())
    assert rows == 5_000_000
    assert max(reported, peak) <= ceiling
