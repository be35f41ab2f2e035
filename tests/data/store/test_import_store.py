"""Stores from tables, against the import in memory."""

import errno
import gzip
import itertools
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.csr import CSR
from lgcn.data.store import edge_buckets, edge_stream, text_blocks
from lgcn.data.store.import_store import import_store
from lgcn.data.store.node_stream import NodeStream
from lgcn.data.store.open_store import Store, open_store
from lgcn.data.tables.files import open_table
from lgcn.data.tables.import_tables import import_tables
from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph
from lgcn.memory import anonymous_memory

ROOMY = anonymous_memory() + 2 * 10**9  # the tests' process may be large already


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Any:
    """Many buckets and batches, though the tables are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_buckets, "BUCKET", 7)
        patch.setattr(edge_buckets, "CHUNK", 11)
        patch.setattr(edge_stream, "ROWS", 13)
        yield


def imported(path: Path, *args: Any, **options: Any) -> tuple[Store, dict[str, Any]]:
    counts = import_store(path, *args, **({"memory": ROOMY} | options))
    assert not list(path.parent.glob(f"{path.name}.partial-*"))
    return open_store(path), counts


def assert_same(found: Graph, expected: Graph) -> None:
    assert torch.equal(found.rowptr, expected.rowptr.long())
    assert torch.equal(found.col, expected.col)
    for name in ("edge_weight", "x", "y", "train_mask", "val_mask", "test_mask"):
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is None:
            continue
        assert torch.equal(a.to_dense().to(b.dtype), b.to_dense()), name
    assert found.label_names == expected.label_names
    if expected.encoder is not None:
        assert found.encoder is not None
        assert found.encoder.to_dict() == expected.encoder.to_dict()


def random_tables(seed: int, num_nodes: int, num_edges: int, text: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(3 * num_nodes)[:num_nodes] - num_nodes
    names = np.array([f"n{id}" for id in ids], dtype=object) if text else ids
    ends = rng.integers(0, num_nodes, (2, num_edges))
    edges = {
        "source": names[ends[0]],
        "target": names[ends[1]],
        "weight": rng.integers(0, 4, num_edges) / 4,
    }
    nodes = {
        "id": names,
        "age": rng.normal(size=num_nodes),
        "color": rng.choice(["red", "green", "blue"], num_nodes).astype(object),
        "label": np.where(np.arange(num_nodes) % 2, "a", "b").astype(object),
    }
    return edges, nodes


def matrix_of(rows: CSR) -> Any:
    parts = rows.values().numpy() + 1, rows.col.numpy(), rows.rowptr.numpy()
    return scipy.sparse.csr_matrix(parts, (len(parts[2]) - 1,) * 2)


@pytest.mark.filterwarnings("ignore:column 'color' has categories")
@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(4, 30),
    st.integers(1, 120),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_the_graph_is_that_of_the_import_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    num_nodes: int,
    num_edges: int,
    text: bool,
    weighted: bool,
    directed: bool,
) -> None:
    edges, nodes = random_tables(seed, num_nodes, num_edges, text)
    if (edges["source"] == edges["target"]).all():
        return
    options: dict[str, Any] = {
        "label_column": "label",
        "weight_column": "weight" * weighted or None,
    }
    expected = import_tables(edges, nodes, directed=directed, **options)
    path = tmp_path_factory.mktemp("import") / "store"
    store, counts = imported(path, edges, nodes, undirected=not directed, **options)
    assert_same(store.graph, expected.graph)
    assert store.node_ids(0, num_nodes).to_pylist() == list(nodes["id"])
    for name in ("self_loops", "duplicates", "unknown_endpoints"):
        assert counts[name] == expected.counts[name]
    assert counts["rows"] == num_edges
    assert counts["nodes"] == num_nodes
    assert counts["entries"] == expected.graph.num_edges
    assert store.header["directed"] == directed
    transposed = store.transpose()
    if not directed:
        assert transposed is None
    else:
        assert transposed is not None
        rows = CSR(store.graph.rowptr, store.graph.col, store.graph.edge_weight)
        assert (matrix_of(transposed) != matrix_of(rows).T).nnz == 0


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=60),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_what_is_kept_if_told(
    tmp_path_factory: pytest.TempPathFactory,
    pairs: list[tuple[int, int]],
    undirected: bool,
    duplicates: bool,
    loops: bool,
) -> None:
    wanted = [(a, b) for a, b in pairs if loops or a != b]
    if not wanted:
        return
    rows = [(b, a) for a, b in wanted]
    if undirected:
        rows += [(a, b) for a, b in wanted if a != b]
    rows = sorted(rows if duplicates else set(rows))
    edges = {(min(p), max(p)) if undirected else p for p in wanted}
    nodes = {"id": list(range(7)), "f": list(range(7))}
    store, counts = imported(
        tmp_path_factory.mktemp("kept") / "store",
        np.array(pairs),
        nodes,
        undirected=undirected,
        keep_duplicates=duplicates,
        keep_self_loops=loops,
    )
    graph = store.graph
    entry = torch.repeat_interleave(torch.arange(7), graph.rowptr.diff())
    assert list(zip(entry.tolist(), graph.col.tolist(), strict=True)) == rows
    assert graph.degree is not None
    assert graph.degree.tolist() == graph.rowptr.diff().tolist()
    assert counts["entries"] == len(rows)
    assert counts["edges"] == (len(wanted) if duplicates else len(edges))
    assert counts["duplicates"] == len(wanted) - counts["edges"]
    assert counts["self_loops"] == sum(a == b for a, b in pairs)


def test_numbers_are_nodes_where_half_of_them_occur(tmp_path: Path) -> None:
    pairs = np.array([[0, 5], [5, 3]])
    store, counts = imported(tmp_path / "dense", pairs)
    assert counts["nodes"] == 6
    assert store.graph.rowptr.tolist() == [0, 1, 1, 1, 2, 2, 4]
    assert store.node_ids(0, 6).to_pylist() == list(range(6))
    # Three of seven numbers: the order is that of rows, the source first.
    store, counts = imported(tmp_path / "sparse", np.array([[0, 6], [6, 3]]))
    assert store.node_ids(0, counts["nodes"]).to_pylist() == [0, 6, 3]
    ends = np.array([7, 7, -2]), np.array([2**40, -2, 7])
    store, counts = imported(
        tmp_path / "any", [(ends[0][:2], ends[1][:2]), (ends[0][2:], ends[1][2:])]
    )
    assert store.node_ids(0, counts["nodes"]).to_pylist() == [7, 2**40, -2]
    assert store.graph.rowptr.tolist() == [0, 2, 3, 4]
    assert store.graph.col.tolist() == [1, 2, 0, 0]
    assert (counts["edges"], counts["duplicates"]) == (2, 1)


def test_a_node_that_only_has_a_self_loop_is_a_node(tmp_path: Path) -> None:
    _, counts = imported(tmp_path / "store", {"source": ["a", "c"], "target": ["b", "c"]})
    assert (counts["nodes"], counts["edges"], counts["self_loops"]) == (3, 1, 1)


@settings(max_examples=20)
@given(st.lists(st.tuples(*[st.text(min_size=1, max_size=2)] * 2), min_size=1, max_size=60))
def test_texts_are_numbered_as_they_come(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    if all(a == b for a, b in pairs):
        return
    ids = list(dict.fromkeys(itertools.chain.from_iterable(pairs)))
    folder = tmp_path_factory.mktemp("texts")
    columns = {"source": [a for a, _ in pairs], "target": [b for _, b in pairs]}
    store, _ = imported(folder / "store", columns)
    assert store.node_ids(0, len(ids)).to_pylist() == ids
    expected = import_tables(columns, {"id": ids, "f": list(range(len(ids)))}).graph
    assert torch.equal(store.graph.rowptr, expected.rowptr.long())
    assert torch.equal(store.graph.col, expected.col)


def edge_files(folder: Path, table: Any) -> dict[str, Any]:
    """The same edges in all forms; those in two files are half each."""
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    pairs = np.stack([columns["source"], columns["target"]], 1)
    pyarrow.csv.write_csv(table, folder / "e.csv")
    tabs = pyarrow.csv.WriteOptions(delimiter="\t")
    pyarrow.csv.write_csv(table, folder / "e.tsv", tabs)
    (folder / "e.csv.gz").write_bytes(gzip.compress((folder / "e.csv").read_bytes()))
    pyarrow.parquet.write_table(table, folder / "e.parquet")
    np.savez(folder / "e.npz", **columns)
    np.savez_compressed(folder / "p.npz", edges=pairs, weight=columns["weight"])
    np.save(folder / "e.npy", pairs)
    half = len(table) // 2
    pyarrow.parquet.write_table(table.slice(0, half), folder / "1.parquet")
    pyarrow.csv.write_csv(table.slice(half), folder / "2.csv")
    files = ("e.csv", "e.tsv", "e.csv.gz", "e.parquet", "e.npz", "p.npz")
    forms: dict[str, Any] = {name: folder / name for name in files}
    forms["two"] = [str(folder / "1.parquet"), folder / "2.csv"]
    forms["arrow"] = table
    forms["pandas"] = table.to_pandas()
    forms["stream"] = (
        (
            columns["source"][i : i + 9],
            list(columns["target"][i : i + 9]),
            columns["weight"][i : i + 9],
        )
        for i in range(0, len(table), 9)
    )
    return forms


def test_all_forms_of_edges(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "source": rng.integers(0, 20, 100),
            "target": rng.integers(0, 20, 100),
            "weight": rng.integers(0, 9, 100) / 8,
        }
    )
    expected = import_tables(
        table, {"id": list(range(20)), "f": list(range(20))}, weight_column="weight"
    )
    for name, edges in edge_files(tmp_path, table).items():
        weight = None if name == "stream" else "weight"
        store, counts = imported(tmp_path / f"store {name}", edges, weight_column=weight)
        assert counts["rows"] == 100, name
        assert torch.equal(store.graph.rowptr, expected.graph.rowptr.long()), name
        assert torch.equal(store.graph.col, expected.graph.col), name
        assert store.graph.edge_weight is not None
        assert torch.equal(store.graph.edge_weight, expected.graph.edge_weight), name  # type: ignore[arg-type]
    for edges in (tmp_path / "e.npy", torch.from_numpy(np.load(tmp_path / "e.npy"))):
        store, _ = imported(tmp_path / "store", edges, overwrite=True)
        assert torch.equal(store.graph.col, expected.graph.col)


LINES = ["source,target,weight", "a,b,1", "b,c,2", "c,a,1"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a,b", r"line 5: must have 3 cells .* got 'a,b'"),
        (b"a,b,1,2", r"line 5: must have 3 cells"),
        (b",b,1", r"line 5: column 'source': the id is missing"),
        (b"a,b,heavy", r"line 5: column 'weight' must be a number, got 'heavy'"),
        (b"a,b,-1", r"line 5: column 'weight': a weight must be .* got -1"),
        (b"a,b,", r"line 5: column 'weight': a weight must be .* got none"),
        (b"a,b,1e60", r"line 5: column 'weight'.* got 1e\+60"),
        (b"a,\xff,1", r"line 5: column 'target' is not in utf-8"),
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
        (pa.array([1, 2.5, 3]), r"row 1: column 'target' must be a whole number.* got 2\.5"),
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
    with pytest.raises(DataError, match="None fits: check that id_column"):
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


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "uint8"])
def test_kinds_of_features(tmp_path: Path, kind: Any) -> None:
    edges, nodes = random_tables(0, 50, 100, True)
    expected = import_tables(edges, nodes, label_column="label", val=0, test=0).graph
    store, _ = imported(
        tmp_path / "store", edges, nodes, label_column="label", val=0, test=0, features=kind
    )
    assert store.graph.x is not None
    assert store.graph.x.dtype == getattr(torch, kind)
    assert store.graph.encoder is not None
    step = {"float16": 2e-3, "bfloat16": 2e-2, "uint8": 2e-2}[kind]
    assert torch.allclose(store.graph.features(), expected.x, atol=step)  # type: ignore[arg-type]


def test_sparse_features(tmp_path: Path) -> None:
    edges, nodes = random_tables(0, 300, 500, False)
    nodes["many"] = np.array([f"c{i // 2}" for i in range(300)], dtype=object)
    nodes["more"] = np.array([f"c{i // 2}" for i in range(300)], dtype=object)
    options: dict[str, Any] = {"categorical_columns": ["many", "more"], "ignore_columns": "label"}
    expected = import_tables(edges, nodes, **options).graph
    assert expected.x is not None
    assert expected.x.layout == torch.sparse_csr
    store, _ = imported(tmp_path / "store", edges, nodes, **options)
    assert_same(store.graph, expected)
    with pytest.raises(UsageError, match="features must not be uint8 here"):
        imported(tmp_path / "other", edges, nodes, features="uint8", **options)


def node_file(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(["id,f,g,l", *rows]) + "\n")
    return path


@pytest.mark.parametrize("last", ["7.5,x,b", ",4,b", "7,2024-01-01,", "true,,b"])
def test_the_types_of_columns_are_those_of_the_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    monkeypatch.setattr(text_blocks, "BLOCK", 64)
    rows = [f"{i},{i},{i % 3},{'ab'[i % 2]}" for i in range(60)]
    path = node_file(tmp_path / "nodes.csv", [*rows, f"60,{last}"])
    edges = {"source": [0], "target": [1]}
    expected = import_tables(edges, path, label_column="l")
    store, counts = imported(tmp_path / "store", edges, path, label_column="l")
    assert_same(store.graph, expected.graph)
    assert counts["notes"] == expected.notes


def test_a_broken_node_table(tmp_path: Path) -> None:
    edges = {"source": [0], "target": [1]}
    path = node_file(tmp_path / "nodes.csv", ["0,1,2,a", "1,2,3", "2,3,4,b"])
    with pytest.raises(DataError, match=r"nodes\.csv, line 3: must have 4 cells"):
        imported(tmp_path / "store", edges, path)
    path = node_file(path, ["0,1,2,a", "1,2,3,a", "0,3,4,b"])
    with pytest.raises(
        DataError, match=r"nodes\.csv: ids must differ, got 0 in line 2 and in line"
    ):
        imported(tmp_path / "store", edges, path)
    path = node_file(path, ["0,1,2,a", "1,2,1e300,a", "2,3,4,b"])
    with pytest.raises(DataError, match=r"nodes\.csv: column 'g', line 3"):
        imported(tmp_path / "store", edges, path)
    assert [file.name for file in tmp_path.iterdir()] == ["nodes.csv"]


def test_a_sample_of_the_rows_where_not_all_fit() -> None:
    table = pa.table({"id": range(5000), "f": np.arange(5000.0), "g": ["text"] * 5000})
    stream = NodeStream(open_table(table, "nodes"), ["id"], 10**6)
    assert stream.read(["id", "f", "g"]).column("id").to_pylist() == list(range(5000))
    assert (stream.stride, len(stream.sample)) == (1, 5000)
    stream = NodeStream(open_table(table, "nodes"), ["id"], 10**6)
    stream._sample_memory = 20_000
    stream.read(["id", "f"])
    assert stream.stride == 2
    assert stream.sample.column("f").to_pylist() == list(range(0, 5000, 2))
    with pytest.raises(DataError, match=r"ids, labels and splits of 5000 rows need .*--memory"):
        NodeStream(open_table(table, "nodes"), ["id"], 10**5).read(["id", "f"])


def test_nodes_without_edges_and_without_features(tmp_path: Path) -> None:
    store, counts = imported(tmp_path / "a", None, {"id": [1, 2], "f": [1, 2]})
    assert (counts["nodes"], counts["rows"], counts["edges"]) == (2, 0, 0)
    assert store.graph.rowptr.tolist() == [0, 0, 0]
    store, counts = imported(tmp_path / "b", np.array([[1, 2]]), {"id": [1, 2]})
    assert store.graph.x is None
    assert "no feature column" in counts["notes"][0]


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
        (PAIR, {"labels_column": "l"}, "labels_column is no option .* label_column, "),
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
    monkeypatch.setattr("lgcn.data.store.import_store._load_kernels", lambda *_: None)
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


def test_a_killed_import_leaves_no_store_and_the_next_one_starts_cleanly(tmp_path: Path) -> None:
    code = """
    import os, signal, sys
    import numpy as np
    from lgcn.data.store.import_store import import_store

    def progress(step, done, total):
        if step == "sort edges":
            os.kill(os.getpid(), signal.SIGKILL)

    import_store(sys.argv[1], np.arange(2000).reshape(-1, 2), on_progress=progress)
    """
    assert run(code, str(tmp_path / "store")).returncode == -signal.SIGKILL
    assert not (tmp_path / "store").exists()
    assert len(list(tmp_path.iterdir())) == 1
    _, counts = imported(tmp_path / "store", np.arange(20).reshape(-1, 2))
    assert counts["edges"] == 10
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


def test_the_memory_ceiling_holds(tmp_path: Path) -> None:
    # Sorting these edges in memory takes more than the 130 MB that are allowed here.
    code = """
    import sys
    import numpy as np
    from lgcn.data.store.import_store import import_store
    from lgcn.memory import PeakMemory, anonymous_memory

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
