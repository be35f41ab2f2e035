"""Sets of graphs from a table of graphs, one of nodes and one of edges."""

import csv
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcn import graphs_from_tables
from lgcn.errors import DataError, UsageError
from lgcn.graph import GraphSet
from lgcn.tables.graphs_from_tables import import_graphs

from ..datasets.tu_files import edges_of, expected_edges
from .graph_tables import Table, edge_table, graph_table, node_table, without

HALVES = {"val": 0.0, "test": 0.0}  # all graphs are for training


def read(edges: Any = None, nodes: Any = None, graphs: Any = None, **options: Any) -> GraphSet:
    """The three small tables, or others in their place."""
    options.setdefault("label_column", "kind")
    tables = (
        edge_table() if edges is None else edges,
        node_table() if nodes is None else nodes,
        graph_table() if graphs is None else graphs,
    )
    return graphs_from_tables(*tables, **options)


def y_of(graphs: GraphSet) -> Any:
    assert graphs.y is not None
    return graphs.y.tolist()


def ids_of(graphs: GraphSet) -> Any:
    assert graphs.graph.node_ids is not None
    return graphs.graph.node_ids.tolist()


def test_three_tables_become_a_set() -> None:
    graphs = read(**HALVES)
    assert edges_of(graphs) == [{(0, 1)}] * 4
    assert graphs.sizes.tolist() == [2] * 4
    assert y_of(graphs) == [0, 1, 0, 1]
    assert graphs.targets.label_names == ("p", "q")
    assert graphs.targets.node_ids is not None
    assert graphs.targets.node_ids.tolist() == list("abcd")
    assert ids_of(graphs) == [0, 1] * 4
    x = graphs.graph.features()
    assert x[:, :2].tolist() == [[1, 0], [0, 1]] * 4
    charges = np.arange(8)
    scaled = (charges - charges.mean()) / charges.std()
    np.testing.assert_allclose(x[:, 2], scaled, rtol=1e-5)


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet", "jsonl", "pandas", "arrow"])
def test_tables_come_in_many_forms(form: str, tmp_path: Path) -> None:
    made: list[Any] = []
    for name, columns in (("e", edge_table()), ("n", node_table()), ("g", graph_table())):
        table, path = pa.table(columns), tmp_path / f"{name}.{form}"
        made.append(table if form == "arrow" else table.to_pandas() if form == "pandas" else path)
        if form == "parquet":
            pq.write_table(table, path)
        elif form == "jsonl":
            table.to_pandas().to_json(path, orient="records", lines=True)
        elif form in ("csv", "tsv"):
            table.to_pandas().to_csv(path, index=False, sep="," if form == "csv" else "\t")
    found, wanted = read(*made), read()
    assert torch.equal(found.graph.col, wanted.graph.col)
    assert torch.equal(found.graph.features(), wanted.graph.features())
    assert torch.equal(found.y, wanted.y)  # type: ignore[arg-type]
    assert found.name == ("graphs" if form in ("pandas", "arrow") else "g")


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[nx.Graph], list[str], Any, bool]:
    """Random graphs, ids of graphs, and a random order of rows."""
    graphs = []
    name = st.text("abc07", min_size=1, max_size=2)
    for _ in range(draw(st.integers(1, 5))):
        graph = nx.Graph()
        graph.add_nodes_from(draw(st.lists(name, max_size=5, unique=True)))
        if len(graph):
            node = st.sampled_from(list(graph))
            graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=8)))
        graphs.append(graph)
    ids = draw(st.lists(name, min_size=len(graphs), max_size=len(graphs), unique=True))
    return graphs, ids, draw(st.randoms(use_true_random=False)), draw(st.booleans())


@given(sets())
@pytest.mark.hypothesis
def test_random_sets_are_read_as_they_were_written(
    drawn: tuple[list[nx.Graph], list[str], Any, bool],
) -> None:
    single, ids, random, distinct = drawn
    own = (lambda graph, node: f"{graph}/{node}") if distinct else (lambda _, node: node)
    nodes = [
        (name, own(name, node)) for name, graph in zip(ids, single, strict=True) for node in graph
    ]
    edges = [
        (name, own(name, a), own(name, b))
        for name, graph in zip(ids, single, strict=True)
        for a, b in graph.edges
    ]
    if not nodes:
        return
    random.shuffle(nodes)
    random.shuffle(edges)

    def columns(names: str, rows: list[Any]) -> dict[str, Any]:
        made = zip(*rows, strict=True) if rows else [[]] * len(names.split())
        arrays = [pa.array(list(column), pa.string()) for column in made]
        return dict(zip(names.split(), arrays, strict=True))

    number = pa.array([float(len(a + b)) for a, b in nodes])
    of_nodes = columns("graph id", nodes) | {"number": number}
    of_edges = columns("graph source target", edges)
    if distinct:
        del of_edges["graph"]
    arguments = [pa.table(one) for one in (of_edges, of_nodes, {"graph": ids})]
    imported = import_graphs(*arguments)
    graphs = imported.graphs
    assert graphs.sizes.tolist() == [len(graph) for graph in single]
    order = {pair: place for place, pair in enumerate(nodes)}
    in_order = [
        sorted(graph, key=lambda node: order[n, own(n, node)])
        for n, graph in zip(ids, single, strict=True)
    ]
    assert ids_of(graphs) == [
        own(n, node) for n, graph in zip(ids, in_order, strict=True) for node in graph
    ]
    renamed = [
        nx.relabel_nodes(graph, {node: place for place, node in enumerate(names)})
        for graph, names in zip(single, in_order, strict=True)
    ]
    assert edges_of(graphs) == expected_edges(renamed)
    loops = sum(nx.number_of_selfloops(graph) for graph in single)
    assert imported.counts["self_loops"] == loops
    assert imported.counts["edge_rows"] == len(edges)
    if graphs.graph.x is not None:
        lengths = [
            len(n + own(n, node)) for n, names in zip(ids, in_order, strict=True) for node in names
        ]
        wanted = (np.array(lengths) - np.mean(lengths)) / np.std(lengths)
        np.testing.assert_allclose(graphs.graph.features()[:, 0], wanted, atol=1e-4)


def test_ids_of_nodes_may_repeat_across_graphs_but_not_within() -> None:
    with pytest.raises(DataError, match=r"nodes: .*0 of graph 'b' in row 2 and in row 3"):
        read(nodes=node_table(id=[0, 1, 0, 0, 0, 1, 0, 1]))


def test_ids_that_differ_over_all_graphs_need_no_column_of_graphs() -> None:
    nodes = node_table(id=list("stuvwxyz"))
    edges: Table = {"source": list("suwy"), "target": list("tvxz")}
    assert edges_of(read(edges, nodes)) == [{(0, 1)}] * 4
    with pytest.raises(DataError, match=r"edges, row 1: .*'v' of graph 'b' and node 'w' of .*'c'"):
        read({"source": list("sv"), "target": list("tw")}, nodes)
    with pytest.raises(DataError, match=r"edges, row 1: the node table has no node '\?'"):
        read({"source": list("s?"), "target": list("tw")}, nodes)
    with pytest.raises(DataError, match=r"edges, row 0: .*graph 'a' with node 'u', .*graph 'b'"):
        read({"graph": ["a"], "source": ["s"], "target": ["u"]}, nodes)
    with pytest.raises(DataError, match=r"edges must have the column 'graph'.*several graphs"):
        read(without(edge_table(), "graph"))


@pytest.mark.parametrize("ids", [[7, 3, 5, 4], ["007", "7", "07", "x"], [2**62, -1, 0, 5]])
def test_ids_of_graphs_are_numbers_or_strings(ids: list[Any], tmp_path: Path) -> None:
    twice = [one for one in ids for _ in range(2)]
    tables = edge_table(graph=ids), node_table(graph=twice), graph_table(graph=ids)
    paths = [tmp_path / f"{name}.csv" for name in "eng"]
    for table, path in zip(tables, paths, strict=True):
        with path.open("w") as file:
            csv.writer(file).writerows([table, *zip(*table.values(), strict=True)])
    for graphs in (read(*tables), read(*paths)):
        assert graphs.targets.node_ids is not None
        assert graphs.targets.node_ids.tolist() == ids
        assert edges_of(graphs) == [{(0, 1)}] * 4


def test_numbers_and_the_same_numbers_as_strings_agree() -> None:
    texts = edge_table(graph=["1", "2", "3", "4"], source=["0"] * 4)
    nodes = node_table(graph=[1, 1, 2, 2, 3, 3, 4, 4])
    graphs = read(texts, nodes, graph_table(graph=[1, 2, 3, 4]))
    assert edges_of(graphs) == [{(0, 1)}] * 4


@pytest.mark.filterwarnings("ignore:graphs")
def test_without_a_table_of_nodes_the_ends_of_edges_are_the_nodes() -> None:
    edges: Table = {"graph": list("baba"), "source": list("xyyx"), "target": list("yzqy")}
    graphs = graphs_from_tables(edges, None, graph_table(), label_column="kind")
    assert ids_of(graphs) == ["y", "z", "x", "x", "y", "q"]  # of a, then of b, as they come
    assert graphs.sizes.tolist() == [3, 3, 0, 0]
    assert graphs.num_features == 0
    assert graphs.graph.encoder is not None
    with pytest.raises(DataError, match=r"edges, row 1, column 'y': .*missing.*target_column"):
        import_graphs({"graph": ["a", "a"], "x": [1, 2], "y": [2, None]}, None, graph_table())
    with pytest.raises(UsageError, match="not both be None"):
        graphs_from_tables(None, None, graph_table())


def test_graphs_without_rows_of_nodes_or_edges_are_kept() -> None:
    nodes = {name: column[:4] for name, column in node_table().items()}
    edges = {name: column[:1] for name, column in edge_table().items()}
    with pytest.warns(UserWarning, match="graphs: ") as caught:
        graphs = read(edges, nodes, **HALVES)
    assert graphs.sizes.tolist() == [2, 2, 0, 0]
    assert y_of(graphs) == [0, 1, 0, 1]
    texts = [str(one.message) for one in caught]
    assert any("2 of 4 graphs have no nodes" in text for text in texts)
    assert any("1 of 4 graphs has no edges" in text for text in texts)
    only = without(graph_table(), "kind")
    with pytest.warns(UserWarning, match="4 of 4 graphs have no edges"):
        assert graphs_from_tables(None, node_table(), only).graph.num_edges == 0


def test_self_loops_and_duplicates_are_counted() -> None:
    edges: Table = {
        "graph": list("aaaab"),
        "source": [0, 1, 1, 0, 0],
        "target": [1, 0, 1, 1, 1],
        "w": [1.0, 5.0, 9.0, 3.0, 2.0],
    }
    imported = import_graphs(edges, node_table(), graph_table(), weight_column="w")
    graph = imported.graphs.graph
    assert graph.edge_weight is not None
    assert graph.edge_weight.tolist() == [5, 5, 2, 2]
    assert {key: imported.counts[key] for key in ("graph_rows", "node_rows", "edge_rows")} == {
        "graph_rows": 4,
        "node_rows": 8,
        "edge_rows": 5,
    }
    assert (imported.counts["self_loops"], imported.counts["duplicates"]) == (1, 2)
    assert any("1 self-loop is left out" in note for note in imported.notes)
    assert any("2 duplicates" in note for note in imported.notes)


def test_directed_edges_go_one_way() -> None:
    assert read(directed=True).graph.edge_index.tolist() == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_labels_may_be_missing_of_some_graphs_and_cells_of_some_nodes() -> None:
    nodes = node_table(element=["C", None, "C", "N", None, None, "C", "N"])
    graphs = read(nodes=nodes, graphs=graph_table(kind=["p", "q", None, "p"]), **HALVES)
    assert y_of(graphs) == [0, 1, -1, 0]
    train = graphs.mask("train")
    assert train is not None
    assert train.tolist() == [True, True, False, True]
    assert graphs.graph.features()[4:6, :2].tolist() == [[0, 0]] * 2


@pytest.mark.parametrize(
    ("kind", "names", "y"),
    [
        ([0, 2, 0, 2], ("0", "2"), [0, 1, 0, 1]),
        ([-1, 1, -1, 1], ("-1", "1"), [0, 1, 0, 1]),
        ([True, False, True, False], ("false", "true"), [1, 0, 1, 0]),
        (["10", "9", "9", "x"], ("10", "9", "x"), [0, 1, 1, 2]),
    ],
)
def test_labels_are_any_names(kind: list[Any], names: tuple[str, ...], y: list[int]) -> None:
    graphs = read(graphs=graph_table(kind=kind))
    assert graphs.targets.label_names == names
    assert y_of(graphs) == y


def test_targets_and_several_labels() -> None:
    numbers = read(graphs=graph_table(kind=[1.5, None, 2.0, -3.0]), task="regression")
    np.testing.assert_array_equal(y_of(numbers), [1.5, np.nan, 2, -3])
    both = graph_table(kind=[1, 0, 0, 1], acid=[0, 0, 1, 1])
    several = read(graphs=both, label_column=["kind", "acid"], **HALVES)
    assert several.targets.label_names == ("kind", "acid")
    assert y_of(several) == [[1, 0], [0, 0], [0, 1], [1, 1]]
    cells = read(graphs=graph_table(kind=["p;q", "q", "p", None]), label_separator=";", **HALVES)
    assert y_of(cells) == [[1, 1], [0, 1], [1, 0], [0, 0]]


def test_splits_and_weights_are_read_per_graph() -> None:
    graphs = graph_table(part=["train", "train", "val", None], trust=[1.0, 0.5, 2.0, 4.0])
    found = read(graphs=graphs, split_column="part", sample_weight_column="trust")
    masks = {split: found.mask(split) for split in ("train", "val", "test")}
    assert {split: mask.nonzero().flatten().tolist() for split, mask in masks.items()} == {  # type: ignore[union-attr]
        "train": [0, 1],
        "val": [2],
        "test": [],
    }
    assert found.targets.sample_weight is not None
    assert found.targets.sample_weight.tolist() == [1, 0.5, 2, 4]


@pytest.mark.filterwarnings("ignore:nodes")
def test_features_are_fitted_without_the_graphs_held_out() -> None:
    graphs = graph_table(part=["train", "test", "train", "val"])
    nodes = node_table(element=list("CNXXCNYY"))
    found = read(nodes=nodes, graphs=graphs, split_column="part")
    seen = np.array([0, 1, 4, 5])
    x = found.graph.features()
    assert x[:, :2].tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]] * 2  # X and Y were never seen
    np.testing.assert_allclose(x[:, 2], (np.arange(8) - seen.mean()) / seen.std(), rtol=1e-5)


def test_a_trained_encoder_reads_other_tables_alike() -> None:
    first = read(**HALVES)
    known = {"encoder": first.graph.encoder, "label_names": first.targets.label_names}
    only = {"graph": ["z"], "kind": ["q"]}
    nodes = {"graph": ["z"] * 3, "id": [2, 1, 0], "charge": [1.0, 0.0, 7.0], "element": list("NCN")}
    again = read({"graph": ["z"], "source": [2], "target": [0]}, nodes, only, **known)
    assert y_of(again) == [1]  # one class is enough here, with the number it has there
    assert torch.equal(again.graph.features(), first.graph.features()[[1, 0, 7]])
    assert edges_of(again) == [{(0, 2)}]
    unlabelled = read(graphs=without(graph_table(), "kind"), label_column=None, **known)
    assert unlabelled.y is None
    assert unlabelled.num_classes == 2
    with pytest.warns(UserWarning, match="'Si'"):
        x = read(nodes=node_table(element=["Si"] * 8), **known).graph.features()
    assert not x[:, :2].any()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"graphs": graph_table(kind=["p", "q", "r", "q"])}, "'r' is not a label the model knows"),
        ({"nodes": without(node_table(), "element")}, "lacks the column 'element'"),
    ],
)
def test_tables_that_do_not_suit_a_trained_encoder_are_refused(
    changed: dict[str, Any], message: str
) -> None:
    first = read()
    known = {"encoder": first.graph.encoder, "label_names": first.targets.label_names}
    with pytest.raises(DataError, match=message):
        read(**changed, **known)
    with pytest.raises(UsageError, match="nodes must be given"):
        graphs_from_tables(edge_table(), None, graph_table(), **known)  # type: ignore[arg-type]


def test_notes_are_said_once_and_columns_grouped() -> None:
    constant = {f"c{place}": [place] * 8 for place in range(8)}
    imported = import_graphs(edge_table(), node_table(**constant), graph_table(more=[1, 2, 3, 4]))
    assert (
        sum("8 columns ('c0', 'c1', 'c2', 'c3', 'c4', ...)" in note for note in imported.notes) == 1
    )
    (note,) = [note for note in imported.notes if "not read" in note]
    assert "'kind', 'more'" in note
    with pytest.warns(UserWarning, match="not read") as caught:
        graphs_from_tables(edge_table(), node_table(), graph_table())
    assert {one.filename for one in caught} == {__file__}  # the caller's line


def test_a_huge_graph_among_small_ones_is_read_quickly() -> None:
    size, small = 200_000, np.repeat(np.arange(1, 101), 3)
    path = np.arange(size)
    nodes = pd.DataFrame({"graph": [*[0] * size, *small], "id": [*path, *[0, 1, 2] * 100]})
    edges = pd.DataFrame(
        {
            "graph": [*[0] * (size - 1), *small],
            "source": [*path[:-1], *[0, 1, 2] * 100],
            "target": [*path[1:], *[1, 2, 0] * 100],
        }
    )
    graphs = pd.DataFrame({"graph": range(101), "kind": ["p", "q"] * 50 + ["p"]})
    read()  # which compiles
    start = time.perf_counter()
    found = read(edges, nodes, graphs)
    assert time.perf_counter() - start < 5
    assert found.sizes.tolist() == [size, *[3] * 100]
    assert found.graph.num_edges == 2 * (size - 1 + 300)
