"""Two tables as one graph: what is read, and what is said where it cannot be."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, LGCNError, UsageError
from lgcn.graph import Graph
from lgcn.tables.from_tables import from_tables, import_tables
from lgcn.tables.nodes import NodeArguments

NODES = {
    "id": ["a", "b", "c", "d", "e", "f"],
    "size": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    "topic": ["x", "y", "x", "y", "x", None],
    "part": ["train", "train", "val", "test", "train", None],
}
EDGES = {"source": ["a", "b", "a", "e"], "target": ["b", "c", "a", "d"], "w": [1, 2, 3, 0.5]}
OPTIONS: dict[str, Any] = {"label_column": "topic", "split_column": "part"}


def to_csv(columns: dict[str, list[Any]], path: Path, delimiter: str = ",") -> Path:
    rows = zip(*columns.values(), strict=True)
    lines = [list(columns), *([("" if c is None else str(c)) for c in row] for row in rows)]
    path.write_text("".join(delimiter.join(line) + "\n" for line in lines))
    return path


def save(columns: dict[str, list[Any]], kind: str, path: Path) -> Any:
    if kind in (".csv", ".tsv"):
        return to_csv(columns, path.with_suffix(kind), "\t" if kind == ".tsv" else ",")
    if kind == ".parquet":
        pyarrow.parquet.write_table(pa.table(columns), path.with_suffix(kind))
        return str(path.with_suffix(kind))
    if kind == ".npz":
        arrays = {k: np.array(["" if v is None else v for v in c]) for k, c in columns.items()}
        np.savez(path.with_suffix(kind), **arrays)  # type: ignore[arg-type]
        return path.with_suffix(kind)
    return {"pandas": pd.DataFrame, "arrow": pa.table, "dict": dict}[kind](columns)


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet", ".npz", "pandas", "arrow", "dict"])
def test_tables_of_all_kinds(kind: str, tmp_path: Path) -> None:
    edges, nodes = save(EDGES, kind, tmp_path / "e"), save(NODES, kind, tmp_path / "n")
    graph, notes, counts = vars(import_tables(edges, nodes, weight_column="w", **OPTIONS)).values()
    assert graph.rowptr.tolist() == [0, 1, 3, 4, 5, 6, 6]
    assert graph.col.tolist() == [1, 0, 2, 1, 4, 3]
    assert graph.edge_weight.tolist() == [1, 1, 2, 2, 0.5, 0.5]
    assert graph.node_ids.tolist() == NODES["id"]
    assert graph.label_names == ("x", "y")
    assert graph.y.tolist() == [0, 1, 0, 1, 0, -1]
    assert graph.train_mask.tolist() == [True, True, False, False, True, False]
    assert graph.val_mask.tolist() == [False, False, True, False, False, False]
    assert graph.test_mask.tolist() == [False, False, False, True, False, False]
    assert graph.name == ("tables" if kind in ("pandas", "arrow", "dict") else "n")
    # Training rows and the row without a label are what the scale may be learned from.
    seen = torch.tensor([1.0, 2.0, 5.0, 6.0])
    all_sizes = torch.tensor(NODES["size"])
    expected = (all_sizes - seen.mean()) / seen.std(correction=0)
    torch.testing.assert_close(graph.x, expected[:, None])
    assert graph.encoder.feature_names == ("size",)
    assert len(notes) == 1
    assert "1 self-loop is left out" in notes[0]
    assert counts == {
        "node_rows": 6,
        "edge_rows": 4,
        "unknown_endpoints": 0,
        "self_loops": 1,
        "duplicates": 0,
    }


def test_directed_edges_point_to_the_row() -> None:
    edges = {"source": ["a", "c", "a"], "target": ["b", "b", "b"]}
    imported = import_tables(edges, NODES, directed=True, **OPTIONS)
    assert imported.graph.rowptr.tolist() == [0, 0, 2, 2, 2, 2, 2]
    assert imported.graph.col.tolist() == [0, 2]
    assert imported.counts["duplicates"] == 1
    assert "1 duplicates" in imported.notes[0]


def test_both_directions_of_an_undirected_edge_are_one() -> None:
    edges = {"source": ["a", "b"], "target": ["b", "a"]}
    imported = import_tables(edges, NODES, **OPTIONS)
    assert imported.graph.num_edges == 2
    assert imported.counts["duplicates"] == 1
    assert imported.notes == []


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        (["id", "f"], ["source", "target"]),
        (["Id", "f"], ["Source", "Target"]),
        (["f", "node_id"], ["w", "src", "dst"]),
        (["f", "node"], ["to", "from"]),
        (["first", "f"], ["one", "two", "three"]),
    ],
)
def test_columns_by_their_usual_names(nodes: list[str], edges: list[str]) -> None:
    ids, features = [10, 20, 30], [0.5, 1.5, 2.5]
    table = {name: features if name == "f" else ids for name in nodes}
    values = {"w": [0, 0], "three": [0, 0], "to": [30, 10], "target": [30, 10], "Target": [30, 10]}
    values |= {"dst": [30, 10], "two": [30, 10]}
    imported = import_tables({name: values.get(name, [20, 20]) for name in edges}, table)
    assert imported.graph.node_ids is not None
    assert imported.graph.node_ids.tolist() == ids
    assert imported.graph.rowptr.tolist() == [0, 1, 3, 4]
    assert imported.graph.y is None


def test_named_columns_and_others() -> None:
    nodes = {"x": [1.0, 2.0], "key": ["p", "q"], "note": ["long", "text"]}
    edges = {"weight": [1], "u": ["p"], "v": ["q"]}
    options = {"id_column": "key", "source_column": "u", "target_column": "v"}
    imported = import_tables(edges, nodes, ignore_columns="note", **options)
    assert imported.graph.num_edges == 2
    assert imported.graph.encoder is not None
    assert [column.name for column in imported.graph.encoder.columns] == ["x"]
    assert "weight_column='weight'" in imported.notes[0]


@pytest.mark.parametrize(
    ("ids", "kind"),
    [
        (["12345678901234567890", "2"], object),
        (["2020-01-01", "2020-01-02"], object),
        (["1.5", "1.50"], object),
        (["true", "false"], object),
        (["x", "7"], object),
        (["007", "7"], object),
        (["10", "08"], object),
        (["-0", "1"], object),
        (["7", "-3"], np.int64),
        (["0", "10"], np.int64),
    ],
)
def test_ids_of_text_files_are_what_is_written(ids: list[str], kind: Any, tmp_path: Path) -> None:
    nodes = to_csv({"id": ids, "f": [1.0, 2.0]}, tmp_path / "n.csv")
    edges = to_csv({"source": ids[:1], "target": ids[1:]}, tmp_path / "e.csv")
    graph = from_tables(edges, nodes)
    assert graph.col.tolist() == [1, 0]
    assert graph.node_ids is not None
    assert graph.node_ids.dtype == kind
    assert [str(id) for id in graph.node_ids] == ids


@pytest.mark.parametrize("ids", [[4, 5, 6], ["4", "5", "6"], [4.0, 5.0, 6.0]])
@pytest.mark.parametrize("ends", [[4, 5], ["4", "5"]])
def test_ids_are_compared_in_the_kind_of_the_node_table(ids: list[Any], ends: list[Any]) -> None:
    graph = from_tables({"s": ends, "t": [type(ends[0])(6)] * 2}, {"id": ids, "f": [1, 2, 4]})
    assert graph.col.tolist() == [2, 2, 0, 1]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, [60, 20, 20]),
        ({"val": 0.1, "test": 0.4}, [50, 10, 40]),
        ({"val": 0.5}, [30, 50, 20]),
        ({"labels_per_class": 5}, [10, 45, 45]),
    ],
)
def test_splits(options: dict[str, Any], sizes: list[int]) -> None:
    nodes = {"id": np.arange(120), "f": np.arange(120.0), "y": [0, 1] * 50 + [None] * 20}
    edges = {"s": [0], "t": [1]}
    graph = from_tables(edges, nodes, label_column="y", **options)
    masks = [graph.train_mask, graph.val_mask, graph.test_mask]
    assert [int(mask.sum()) for mask in masks] == sizes  # type: ignore[union-attr]
    assert not torch.stack(masks)[:, 100:].any()  # type: ignore[arg-type]
    other = from_tables(edges, nodes, label_column="y", split_seed=1, **options)
    assert not torch.equal(graph.train_mask, other.train_mask)  # type: ignore[arg-type]


def test_several_labels() -> None:
    nodes = {"id": [1, 2, 3, 4], "f": [1.0, 2.0, 3.0, 4.0], "tags": ["a;b", "b", None, "a"]}
    edges = {"s": [1], "t": [2]}
    graph = from_tables(edges, nodes, label_column="tags", label_separator=";")
    assert graph.label_names == ("a", "b")
    assert graph.y is not None
    assert graph.y.tolist() == [[1, 1], [0, 1], [0, 0], [1, 0]]
    with pytest.raises(UsageError, match=r"labels_per_class.*several labels"):
        import_tables(edges, nodes, label_column="tags", label_separator=";", labels_per_class=1)
    del nodes["tags"]
    nodes |= {"a": [1, 0, 1, 0], "b": [0, 0, 1, 1]}
    graph = from_tables(edges, nodes, label_column=["a", "b"])
    assert graph.label_names == ("a", "b")
    assert graph.num_features == 1


def test_a_trained_encoder_and_its_labels() -> None:
    first = from_tables({"s": ["a"], "t": ["b"]}, NODES, **OPTIONS)
    nodes = {"id": [7, 8], "size": [1.0, 9.0], "new": ["?", "!"], "topic": ["y", None]}
    imported = import_tables(
        {"s": [7], "t": [8]},
        nodes,
        label_column="topic",
        encoder=first.encoder,
        label_names=first.label_names,
        numeric_columns=["size"],
    )
    assert imported.graph.y is not None
    assert imported.graph.y.tolist() == [1, -1]
    assert imported.graph.label_names == ("x", "y")
    assert imported.graph.encoder is first.encoder
    assert torch.equal(imported.graph.x[0], first.x[0])  # type: ignore[index]
    with pytest.raises(DataError, match=r"nodes: .*'size'"):
        import_tables({"s": [7], "t": [8]}, {"id": [7, 8]}, encoder=first.encoder)


def test_notes_are_warnings() -> None:
    with pytest.warns(UserWarning, match="1 self-loop is"):
        graph = from_tables(EDGES, NODES, **OPTIONS)
    assert isinstance(graph, Graph)


def test_no_edges_on_purpose() -> None:
    imported = import_tables(None, NODES, **OPTIONS)
    assert imported.graph.num_edges == 0
    assert imported.graph.num_nodes == 6


def test_the_index_that_pandas_writes_is_left_out(tmp_path: Path) -> None:
    pd.DataFrame(NODES).to_csv(tmp_path / "n.csv")
    pd.DataFrame(EDGES).to_csv(tmp_path / "e.csv")
    imported = import_tables(tmp_path / "e.csv", tmp_path / "n.csv", **OPTIONS)
    assert imported.graph.encoder is not None
    assert imported.graph.encoder.feature_names == ("size",)
    assert "a column without a name is left out" in imported.notes[0]


NODE_CSV = "id,size,topic,part\na,1,x,train\nb,2,y,train\nc,3,x,val\n"
EDGE_CSV = "source,target,w\na,b,1\nb,c,2\n"


@pytest.mark.parametrize(
    ("nodes", "edges", "options", "message"),
    [
        ("", EDGE_CSV, {}, r"n\.csv is empty"),
        ("id,size\n", EDGE_CSV, {"label_column": None}, r"n\.csv has no rows"),
        (NODE_CSV, "", {}, r"e\.csv is empty"),
        (NODE_CSV, "source,target\n", {}, r"e\.csv has no edges \(0 rows.*edges=None"),
        (NODE_CSV, "source,target", {}, r"e\.csv has column names but no rows"),
        (NODE_CSV, "source,target\na,a\n", {}, "has no edges .1 rows, of which 1 are self-loops"),
        (NODE_CSV, "source\na\n", {}, r"e\.csv must have two columns.*got 'source'"),
        (NODE_CSV, "source;target\na;b,c\n", {}, r"e\.csv: 1 of 1 edges.*target 'b,c'"),
        (NODE_CSV, "a,b\nb,c\n", {}, r"e\.csv: the first line must be column names.*'a' to 'b'"),
        (NODE_CSV, "1,2\n2,3\n", {}, r"e\.csv: 2 of 2 edges .* line 1 .* line 2 "),
        (NODE_CSV, "0,1\n2,3\n", {}, r"e\.csv, line 1: .*header=True or header=False"),
        (NODE_CSV, EDGE_CSV + "c,a\n", {}, r"e\.csv, line 4: must have 3 cells.*got 2"),
        (NODE_CSV + "d,4\n", EDGE_CSV, {}, r"n\.csv, line 5: must have 4 cells.*got 2"),
        (NODE_CSV + "\na,4,x,\n", EDGE_CSV, {}, r"got 'a' in line 2 and in line 6.*'id'"),
        (NODE_CSV + ",4,x,\n", EDGE_CSV, {}, r"n\.csv, line 5, column 'id': the id is missing"),
        (
            NODE_CSV,
            EDGE_CSV + "\nz,a,1\n",
            {},
            r"e\.csv: 1 of 3 edges.*n\.csv: line 5 \(source 'z'\).*unknown_nodes='drop'",
        ),
        (NODE_CSV, EDGE_CSV + ",a,1\n", {}, r"line 4 \(source is empty\)"),
        (NODE_CSV, EDGE_CSV, {"label_column": "topics"}, r"n\.csv: label_column.*mean 'topic'"),
        (NODE_CSV, EDGE_CSV, {"id_column": "ident"}, r"n\.csv: id_column must be one"),
        (NODE_CSV, EDGE_CSV, {"split_column": "parts"}, r"n\.csv: split_column.*mean 'part'"),
        (NODE_CSV, EDGE_CSV, {"numeric_columns": ["sise"]}, "numeric_columns.*mean 'size'"),
        (NODE_CSV, EDGE_CSV, {"ignore_columns": ["sise"]}, "ignore_columns.*mean 'size'"),
        (NODE_CSV, EDGE_CSV, {"weight_column": "v"}, r"e\.csv: weight_column must be"),
        (NODE_CSV, EDGE_CSV + "a,c,-1\n", {"weight_column": "w"}, r"e\.csv, line 4.*'w'.*got -1"),
        (NODE_CSV, EDGE_CSV + "a,c,\n", {"weight_column": "w"}, "line 4.*'w'.*got none"),
        (NODE_CSV, EDGE_CSV + "a,c,nan\n", {"weight_column": "w"}, "line 4.*'w'.*got"),
        (NODE_CSV, EDGE_CSV + "a,c,x\n", {"weight_column": "w"}, "line 4.*'w': must be a number"),
        (NODE_CSV.replace("val", "vla"), EDGE_CSV, {}, r"n\.csv: .*'part', line 4.*'vla'"),
        (NODE_CSV, EDGE_CSV, {"label_column": "size", "label_separator": ""}, "label_separator"),
        (
            "id,size\n1,1\n2,2\n",
            "source,target\n1,2\n1,zwei\n",
            {"label_column": None, "split_column": None},
            r"e\.csv, line 3, column 'target': must .* got 'zwei'.*n\.csv",
        ),
    ],
)
def test_bad_files(
    nodes: str, edges: str, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    (tmp_path / "n.csv").write_text(nodes)
    (tmp_path / "e.csv").write_text(edges)
    options = OPTIONS | options
    if options["label_column"] is None:
        del options["split_column"]
    with pytest.raises(LGCNError, match=message):
        import_tables(tmp_path / "e.csv", tmp_path / "n.csv", **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"unknown_nodes": "ignore"}, "unknown_nodes must be 'error' or 'drop', got 'ignore'"),
        ({"labels_per_class": 3}, "give one of .*got split_column and labels_per_class"),
        ({"val": 0.1}, "got split_column and val and test"),
        ({"label_column": None}, "split_column needs labels"),
        ({"id_column": "topic"}, "'topic' is named in id_column and in label_column"),
        ({"source_column": "source"}, "given together"),
        ({"source_column": "w", "target_column": "w"}, "must differ"),
        ({"weight_column": "source"}, r"weight_column must .*edge's ends"),
        ({"weight_column": "missing"}, r"weight_column must .*columns, got 'missing'"),
        ({"id_column": "missing"}, r"id_column must .*columns, got 'missing'"),
        ({"label_column": "missing"}, r"label_column must .*columns, got 'missing'"),
        ({"text_columns": ["size"], "numeric_columns": "size"}, "'size' is named in numeric"),
    ],
)
def test_options_that_do_not_fit_together(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        import_tables(EDGES, NODES, **(OPTIONS | options))


def test_each_text_file_has_its_own_delimiter(tmp_path: Path) -> None:
    nodes = to_csv(NODES, tmp_path / "n.csv", ";")
    edges = to_csv(EDGES, tmp_path / "e.csv")
    graph = import_tables(edges, nodes, **OPTIONS).graph
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == NODES["id"]


def test_missing_ids_among_numbers_of_a_text_file(tmp_path: Path) -> None:
    nodes = to_csv({"id": [" 1", "NA", "3"], "f": [1, 2, 3]}, tmp_path / "n.csv")
    edges = to_csv({"source": [1], "target": [" 3"]}, tmp_path / "e.csv")
    with pytest.raises(DataError, match="line 3, column 'id': the id is missing"):
        import_tables(edges, nodes)
    to_csv({"id": [" 1", "3"], "f": [1, 2]}, nodes)
    assert import_tables(edges, nodes).graph.num_edges == 2


def test_the_first_column_as_ids_is_named() -> None:
    edges = {"s": [1], "t": [2]}
    taken = r"column 'size' \(the first one, taken for the ids since none is called id, node"
    for sizes in ([1, 1, 2], [1.5, 2.5, 3.5], [1, None, 2]):
        with pytest.raises(DataError, match=rf"{taken}.*(id_column|another column)"):
            import_tables(edges, {"size": sizes, "f": [1, 2, 3]})
        with pytest.raises(DataError) as error:
            import_tables(edges, {"size": sizes, "f": [1, 2, 3]}, id_column="size")
        assert "the first one" not in str(error.value)


def test_ids_in_halves_of_a_float() -> None:
    nodes = {"id": np.arange(3, dtype=np.float16), "f": [1, 2, 4]}
    graph = import_tables({"s": [0], "t": [2]}, nodes).graph
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == [0, 1, 2]
    assert graph.col.tolist() == [2, 0]


def test_labels_that_count_as_empty_are_noted() -> None:
    nodes = NODES | {"topic": ["x", "y", "x", "y", "NA", None], "part": NODES["part"]}
    imported = import_tables(None, nodes, **OPTIONS)
    assert imported.graph.y is not None
    assert imported.graph.y.tolist() == [0, 1, 0, 1, -1, -1]
    assert (
        "nodes: label column 'topic' has cells that count as no label: 'NA' (1)"
        in (imported.notes[0])
    )


def test_ids_in_memory_that_are_none() -> None:
    with pytest.raises(DataError, match=r"nodes, row 1, column 'id'.*got 1\.5"):
        import_tables({"s": [1], "t": [2]}, {"id": [1, 1.5], "f": [1, 2]})
    with pytest.raises(DataError, match="nodes, row 1, column 'id': the id is missing"):
        import_tables({"s": [1], "t": [2]}, pd.DataFrame({"id": [1, np.nan], "f": [1, 2]}))
    with pytest.raises(DataError, match="got 3 in row 0 and in row 2"):
        import_tables({"s": [1], "t": [2]}, {"id": [3, 4, 3], "f": [1, 2, 3]})


IDS = st.one_of(
    st.lists(st.integers(-50, 200), min_size=2, max_size=30, unique=True),
    st.lists(st.integers(-(2**53), 2**53), min_size=2, max_size=30, unique=True),
    st.lists(st.text("abcäß_ -", min_size=1, max_size=12), min_size=2, max_size=30, unique=True),
)


@settings(max_examples=60)
@given(IDS, st.booleans(), st.booleans(), st.booleans(), st.data())
def test_random_tables_against_a_dict_of_edges(
    tmp_path_factory: pytest.TempPathFactory,
    ids: list[Any],
    directed: bool,
    weighted: bool,
    in_files: bool,
    data: st.DataObject,
) -> None:
    place = st.integers(0, len(ids) - 1)
    pairs = data.draw(st.lists(st.tuples(place, place), min_size=1, max_size=60))
    pairs.append((0, 1))
    weights = data.draw(
        st.lists(
            st.floats(0, 1000, width=32, allow_subnormal=False),
            min_size=len(pairs),
            max_size=len(pairs),
        )
    )
    edges: Any = {"s": [ids[i] for i, _ in pairs], "t": [ids[j] for _, j in pairs], "w": weights}
    nodes: Any = {"id": ids, "f": list(range(len(ids)))}
    if in_files:
        folder = tmp_path_factory.getbasetemp()
        edges = to_csv(edges, folder / "e.csv", "|")
        nodes = to_csv(nodes, folder / "n.csv", "|")
    imported = import_tables(
        edges,
        nodes,
        directed=directed,
        weight_column="w" if weighted else None,
        source_column="s",
        target_column="t",
        delimiter="|",
    )
    graph = imported.graph
    expected = dict[tuple[int, int], float]()
    for (i, j), weight in zip(pairs, weights, strict=True):
        for row, col in [(j, i)] if directed else [(j, i), (i, j)]:
            if i != j:
                expected[row, col] = max(weight, expected.get((row, col), 0))
    row = np.repeat(np.arange(len(ids)), graph.rowptr.diff())
    assert list(zip(row.tolist(), graph.col.tolist(), strict=True)) == sorted(expected)
    if weighted:
        assert graph.edge_weight is not None
        found = [expected[key] for key in sorted(expected)]
        np.testing.assert_array_equal(graph.edge_weight, np.array(found, np.float32))
    assert graph.node_ids is not None
    assert [type(ids[0])(id) for id in graph.node_ids] == ids
    assert imported.counts["self_loops"] == sum(i == j for i, j in pairs)


def test_both_functions_have_the_same_arguments() -> None:
    one, other = (
        dict(inspect.signature(function).parameters) for function in (from_tables, import_tables)
    )
    del other["node_options"]
    assert other.items() <= one.items()
    assert one.keys() - other.keys() == NodeArguments.__annotations__.keys()


def test_column_names_that_are_read_as_an_edge(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("source,target\na,b\nb,a\n")
    nodes = pa.table({"id": ["a", "b"], "x": [0.0, 1.0]})
    with pytest.raises(DataError, match="first line holds column names, give header=True"):
        from_tables(tmp_path / "e.csv", nodes, header=False)
