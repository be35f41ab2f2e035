"""Nodes of many graphs by ids that are unique in a graph, and tables that do not fit together."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn import graphs_from_tables
from lgcn.errors import DataError, LGCNError, UsageError
from lgcn.tables.graph_nodes import GraphNodes

from .graph_tables import edge_table, graph_table, node_table, without


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["", "a", "b", "aa", "7"])), max_size=20)
)
@pytest.mark.hypothesis
def test_nodes_are_found_by_graph_and_id(rows: list[tuple[int, str]]) -> None:
    graph_of = np.array([graph for graph, _ in rows], np.int32)
    nodes = GraphNodes(graph_of, pa.array([name for _, name in rows], pa.string()), 5)
    counts = [sum(graph == number for graph, _ in rows) for number in range(5)]
    assert nodes.ptr.tolist() == [0, *np.cumsum(counts).tolist()]
    assert nodes.order.tolist() == sorted(range(len(rows)), key=lambda place: rows[place][0])
    in_order = [rows[place] for place in nodes.order]
    assert list(zip(nodes.graph_of.tolist(), nodes.ids.to_pylist(), strict=True)) == in_order
    assert nodes.differ == (len({name for _, name in rows}) == len(rows))
    if len(set(rows)) < len(rows):
        assert nodes.repeated is not None
        first, second = nodes.repeated
        assert first != second
        assert rows[first] == rows[second]
        return
    assert nodes.repeated is None
    asked = [(graph, name) for graph in range(5) for name in ("a", "7", "other")]
    codes = nodes.codes.find(pa.array([name for _, name in asked], pa.string()))
    found = nodes.find(np.array([graph for graph, _ in asked]), codes)
    wanted = [in_order.index(one) if one in in_order else -1 for one in asked]
    assert found.tolist() == wanted
    if nodes.differ:
        names = [name for _, name in in_order]
        alone = [names.index(name) if name in names else -1 for _, name in asked]
        assert nodes.anywhere(codes).tolist() == alone


CSV_OF = {"edges": edge_table, "nodes": node_table, "graphs": graph_table}


def missing(column: list[Any]) -> list[Any]:
    return [column[0], None, *column[2:]]


@pytest.mark.parametrize(
    ("table", "changed", "message"),
    [
        ("graphs", {"graph": list("abca")}, r"graphs: .*'a' in row 0 and in row 3"),
        (
            "graphs",
            {"graph": missing(list("abcd"))},
            r"graphs, row 1, column 'graph': .*graph_column",
        ),
        ("graphs", {"graph": [True, False, True, False]}, r"graphs, row 0, column 'graph': .*bool"),
        ("graphs", {"graph": [0.5, 1, 2, 3]}, r"graphs, row 0, column 'graph': .*0\.5"),
        ("graphs", {"kind": ["p"] * 4}, r"graphs: label column 'kind' has one class only, 'p'"),
        ("graphs", {"kind": [None] * 4}, r"graphs: label column 'kind' has no label"),
        ("graphs", {"kind": [1, 2]}, r"graphs.*length"),
        ("graphs", {"graph": [], "kind": []}, r"graphs has no rows.*one row per graph"),
        ("nodes", {"graph": [*"aabbccd", "z"]}, r"nodes, row 7, column 'graph': .*graph 'z'"),
        ("nodes", {"graph": missing([*"aabbccdd"])}, r"nodes, row 1, column 'graph': .*missing"),
        ("nodes", {"id": missing([0, 1] * 4)}, r"nodes, row 1, column 'id': .*missing"),
        ("nodes", {"id": [0] * 8}, r"nodes: .*0 of graph 'a' in row 0 and in row 1"),
        ("nodes", {key: [] for key in node_table()}, r"nodes has no rows.*one row per node"),
        ("edges", {"graph": [*"abc", "z"]}, r"edges, row 3, column 'graph': .*graph 'z'"),
        ("edges", {"graph": missing(list("abcd"))}, r"edges, row 1, column 'graph': .*missing"),
        ("edges", {"target": missing([1] * 4)}, r"edges, row 1: .*missing"),
        ("edges", {"source": [0, 0, 5, 0]}, r"edges, row 2: graph 'c' has no node 5"),
        ("edges", {"source": ["0", "x", "0", "0"]}, r"edges, row 1, column 'source': .*'x'"),
        ("edges", {"source": [[0]] * 4}, r"edges, row 0, column 'source': .*list"),
    ],
)
def test_cells_that_do_not_fit_are_named_with_their_place(
    table: str, changed: dict[str, Any], message: str
) -> None:
    tables = {name: make() for name, make in CSV_OF.items()}
    tables[table] = CSV_OF[table](**changed)
    with pytest.raises(DataError, match=message) as error:
        graphs_from_tables(**tables, label_column="kind")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph_column": "molecule"}, "graphs: graph_column .*'molecule'.*known: graph, kind"),
        ({"label_column": "toxic"}, "graphs: label_column .*'toxic'.*known: graph, kind"),
        ({"label_column": "graph"}, "'graph' is named in graph_column and in label_column"),
        ({"id_column": "graph"}, "'graph' is named in graph_column and in id_column"),
        ({"id_column": "atom"}, "nodes: id_column .*'atom'"),
        ({"ignore_columns": ["graph"]}, "'graph' is named in graph_column and in ignore_columns"),
        ({"list_columns": "z"}, "nodes: list_columns .*'z'"),
        ({"source_column": "source"}, "source_column and target_column"),
        (
            {"source_column": "graph", "target_column": "target"},
            "'graph' is named in graph_column and in source_column",
        ),
        ({"weight_column": "graph"}, "'graph' is named in graph_column and in weight_column"),
        ({"weight_column": "source"}, "'source' is named in source_column and in weight_column"),
        ({"weight_column": "z"}, "edges: weight_column .*'z'"),
        ({"split_column": "kind"}, "'kind' is named in label_column and in split_column"),
        ({"split_column": "kind", "val": 0.1}, "split_column and val and test"),
        ({"label_column": None, "val": 0.1}, "val and test needs labels"),
        ({"label_column": None, "sample_weight_column": "kind"}, "needs labels"),
        ({"val": 0.6, "test": 0.4}, r"val \+ test"),
        ({"task": "both"}, "task must be"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        graphs_from_tables(
            edge_table(), node_table(), graph_table(), **{"label_column": "kind", **options}
        )


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ((edge_table(), without(node_table(), "graph"), graph_table()), "nodes: graph_column"),
        ((without(edge_table(), "graph"), None, graph_table()), "edges: graph_column"),
        ((edge_table(), {"graph": ["a"]}, graph_table()), "nodes has no column besides 'graph'"),
        ((without(edge_table(), "target"), node_table(), graph_table()), "edges must have two"),
        ((edge_table(), node_table(), without(graph_table(), "graph")), "graphs: graph_column"),
        ((np.zeros((3, 3)), node_table(), graph_table()), "edges must be .*ndarray"),
        ((edge_table(), 3, graph_table()), "nodes must be .*int"),
        ((edge_table(), node_table(), "no.csv"), r"graphs: .*no\.csv does not exist"),
        ((edge_table(w=[1, -1, 1, 1]), node_table(), graph_table()), "edges, row 1, .*'w': .*-1"),
    ],
)
def test_tables_that_lack_something_are_named(tables: Any, message: str) -> None:
    weight = "w" if "w" in tables[0] else None
    with pytest.raises(LGCNError, match=message):
        graphs_from_tables(*tables, weight_column=weight)
