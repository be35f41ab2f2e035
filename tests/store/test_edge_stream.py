"""Stores from edges of all forms, against the import in memory."""

import gzip
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.tables.from_tables import import_tables

from .stores import assert_same, imported, random_tables

pytestmark = pytest.mark.usefixtures("small_pieces")


@pytest.mark.filterwarnings("ignore:.*column 'color' has categories")
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
    store, counts = imported(path, edges, nodes, directed=directed, **options)
    assert_same(store.graph, expected.graph)
    assert store.node_ids(0, num_nodes).to_pylist() == list(nodes["id"])
    for name in ("self_loops", "duplicates", "unknown_endpoints"):
        assert counts[name] == expected.counts[name]
    assert counts["rows"] == num_edges
    assert counts["nodes"] == num_nodes
    assert counts["entries"] == expected.graph.num_edges
    assert store.header["directed"] == directed


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
    directed: bool,
    duplicates: bool,
    loops: bool,
) -> None:
    wanted = [(a, b) for a, b in pairs if loops or a != b]
    if not wanted:
        return
    rows = [(b, a) for a, b in wanted]
    if not directed:
        rows += [(a, b) for a, b in wanted if a != b]
    rows = sorted(rows if duplicates else set(rows))
    edges = {p if directed else (min(p), max(p)) for p in wanted}
    nodes = {"id": list(range(7)), "f": list(range(7))}
    store, counts = imported(
        tmp_path_factory.mktemp("kept") / "store",
        np.array(pairs),
        nodes,
        directed=directed,
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
