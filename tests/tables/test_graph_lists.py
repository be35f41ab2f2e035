"""Sets of graphs from lists in memory: PyG's `Data`, NetworkX graphs, `lgcn.Graph`."""

import re
import time
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data
from torch_geometric.utils import from_networkx as pyg_from_networkx

from lgcn import load_graphs
from lgcn.errors import DataError, UsageError
from lgcn.graph import Graph, GraphSet

from ..datasets.tu_files import edges_of, expected_edges

EDGES = torch.tensor([[0, 1], [1, 2]])


def data(**fields: Any) -> Data:
    """A path of three nodes."""
    return Data(**{"edge_index": EDGES, "num_nodes": 3, **fields})


def ring(size: int, y: Any = None) -> nx.Graph:
    graph = nx.cycle_graph(size)
    if y is not None:
        graph.graph["y"] = y
    return graph


def y_of(graphs: GraphSet) -> Any:
    assert graphs.y is not None
    return graphs.y.tolist()


@st.composite
def single_graphs(draw: st.DrawFn) -> nx.Graph:
    size = draw(st.integers(0, 6))
    graph = nx.empty_graph(size)
    if size:
        node = st.integers(0, size - 1)
        graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=9)))
    nx.set_node_attributes(graph, {place: [place / 2, 1.0] for place in graph}, "x")
    return graph


@given(st.lists(single_graphs(), min_size=1, max_size=6))
@pytest.mark.hypothesis
def test_all_kinds_of_graphs_become_the_same_set(single: list[nx.Graph]) -> None:
    wanted = expected_edges(single)
    sizes = [len(graph) for graph in single]
    of_pyg = [
        Data(
            edge_index=torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T,
            x=torch.tensor([[place / 2, 1.0] for place in graph]).reshape(-1, 2),
        )
        for graph in single
    ]
    own = [Graph.from_edge_index(one.edge_index, x=one.x) for one in of_pyg]
    names = [
        nx.relabel_nodes(graph, {place: f"node {place}" for place in graph}) for graph in single
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)  # about graphs without edges
        found = [load_graphs(graphs) for graphs in (of_pyg, own, names)]
    for graphs in found:
        assert graphs.sizes.tolist() == sizes
        assert edges_of(graphs) == wanted
    x = torch.tensor([[place / 2, 1.0] for size in sizes for place in range(size)]).reshape(-1, 2)
    for graphs in found[:2]:
        assert torch.equal(graphs.graph.features(), x)


def test_pygs_own_conversion_gives_the_same_set() -> None:
    single = [nx.petersen_graph(), nx.barbell_graph(4, 2)]
    graphs = load_graphs([pyg_from_networkx(graph) for graph in single])
    assert edges_of(graphs) == expected_edges(single)


@pytest.mark.parametrize(
    ("y", "wanted", "task"),
    [
        ([0, 2, 1], [0, 2, 1], "classification"),
        ([0, -1, 1], [0, -1, 1], "classification"),
        ([torch.tensor(0), torch.tensor([2]), torch.tensor([[1]])], [0, 2, 1], "classification"),
        ([torch.tensor(0), 1, np.int64(2)], [0, 1, 2], "classification"),
        ([torch.tensor([1], dtype=torch.uint8), 2, 0], [1, 2, 0], "classification"),
        ([torch.tensor([1], dtype=torch.uint64), 2, 0], [1, 2, 0], "classification"),
        ([0.5, 2.0, -1.5], [0.5, 2.0, -1.5], "regression"),
        ([0.5, 2, np.float32(1)], [0.5, 2.0, 1.0], "regression"),
        ([torch.tensor([[0.5]]), torch.tensor(2.0), 1], [0.5, 2.0, 1.0], "regression"),
        ([torch.tensor([0.5], requires_grad=True), 2.0, 1.0], [0.5, 2.0, 1.0], "regression"),
        (
            [torch.tensor([[1, 0]]), torch.tensor([[1.0, 1.0]]), torch.tensor([[0, 0]])],
            [[1, 0], [1, 1], [0, 0]],
            "multilabel",
        ),
    ],
)
def test_labels_of_pyg_are_tensors_or_numbers(y: list[Any], wanted: Any, task: str) -> None:
    graphs = load_graphs([data(y=one) for one in y])
    assert graphs.task == task
    assert y_of(graphs) == wanted


def test_booleans_are_the_names_of_classes() -> None:
    graphs = load_graphs([data(y=True), data(y=False), data(y=torch.tensor([True]))])
    assert graphs.targets.label_names == ("false", "true")
    assert y_of(graphs) == [1, 0, 1]


def test_the_task_may_be_said() -> None:
    many = [data(y=place % 2) for place in range(8)]
    assert load_graphs(many, task="regression").task == "regression"
    classes = load_graphs([data(y=place % 2 / 2) for place in range(8)], task="classification")
    assert classes.targets.label_names == ("0", "0.5")


def test_unknown_targets_are_in_no_split() -> None:
    y = [float(place) if place % 2 else float("nan") for place in range(20)]
    graphs = load_graphs([data(y=one) for one in y])
    masks = [graphs.mask(split) for split in ("train", "val", "test")]
    in_split = sum(mask.int() for mask in masks if mask is not None)
    assert in_split.tolist() == [place % 2 for place in range(20)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, None], r"graphs\[1\]: y is missing.*-1"),
        ([None, 0], r"graphs\[0\]: y is missing"),
        (["a", "b"], r"graphs\[0\]: y must be a tensor or a number, got str"),
        ([0, [1]], r"graphs\[1\]: y must be .*got list"),
        ([torch.zeros(3), 0], r"graphs\[0\]: y .*\[1, L\].*got shape \[3\]"),
        ([torch.zeros(0), 0], r"graphs\[0\]: y .*got shape \[0\]"),
        ([torch.zeros(1, 2), torch.zeros(1, 3)], r"graphs\[1\]: y .*\[1, 2\].*got shape \[1, 3\]"),
        ([0, 2**70], r"graphs\[1\]: y must fit in 64 bits"),
        ([0.0, float("inf")], r"graphs\[1\]: y must be a finite number .*got inf"),
        ([-1e101, 0.0], r"graphs\[0\]: y must be a finite number"),
        ([torch.tensor([1j]), 0], r"graphs\[0\]: y must be a real number, got .*complex"),
    ],
)
def test_wrong_labels_of_pyg_are_named(y: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_graphs([data(y=one) for one in y])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, -2], "-1 if unknown, got -2 to 1"),
        ([0, 1, 10**9], "at most 999999, .*got 0 to 1000000000"),
        (np.array([0, 1, 2**63], np.uint64), "got 0 to 9223372036854775808"),
        ([0, 1], r"one row per graph \(3\), got shape \[2\]"),
        ("abc", r"one row per graph \(3\), got shape \[\]"),
        (1, r"one row per graph \(3\), got shape \[\]"),
        (np.zeros((3, 1, 1)), r"one row per graph \(3\), got shape \[3, 1, 1\]"),
        ([[1], [0, 1], [0]], "lists of different lengths"),
        (np.full((3, 2), 2), "zeros and ones"),
    ],
)
def test_wrong_labels_that_are_given_are_refused(y: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_graphs([data()] * 3, y=y)


def test_labels_of_one_and_minus_one_are_questioned() -> None:
    with pytest.warns(UserWarning, match="-1 count as unlabelled"):
        graphs = load_graphs([data()] * 4, y=[-1, 1, 1, -1])
    assert graphs.targets.unlabelled().tolist() == [True, False, False, True]
    assert y_of(load_graphs([data()] * 3, y=[-1, 1, 0])) == [-1, 1, 0]
    assert load_graphs([data()] * 2, y=["-1", "1"]).targets.label_names == ("-1", "1")


@pytest.mark.parametrize(
    ("y", "wanted", "names"),
    [
        (["b", "a", None, "a"], [1, 0, -1, 0], ("a", "b")),
        (pd.Series(["b", "a", "b", "a"], index=[9, 8, 7, 6]), [1, 0, 1, 0], ("a", "b")),
        (np.array([True, False, True, False]), [1, 0, 1, 0], ("false", "true")),
        (torch.tensor([0, 2, -1, 1]), [0, 2, -1, 1], None),
        ([[1, 0], [1, 1], [0, 0], [0, 1]], [[1, 0], [1, 1], [0, 0], [0, 1]], None),
    ],
)
def test_labels_may_be_given(y: Any, wanted: Any, names: Any) -> None:
    graphs = load_graphs([data(y=7)] * 4, y=y)
    assert y_of(graphs) == wanted
    assert graphs.targets.label_names == names


def test_targets_may_be_given() -> None:
    graphs = load_graphs([data()] * 3, y=torch.tensor([1.5, 2, float("nan")]), task="regression")
    np.testing.assert_array_equal(y_of(graphs), [1.5, 2, np.nan])


def test_labels_that_a_model_knows_are_numbered_as_there() -> None:
    known = {"label_names": ["b", "a"]}
    assert y_of(load_graphs([data()] * 2, y=["a", "b"], **known)) == [1, 0]
    assert load_graphs([data()], **known).num_classes == 2
    with pytest.raises(DataError, match="'c'"):
        load_graphs([data()] * 2, y=["a", "c"], **known)
    with pytest.raises(UsageError, match="0 to at most 1"):
        load_graphs([data()] * 2, y=[0, 2], **known)
    with pytest.raises(UsageError, match=r"one column per label \(2\), got 3"):
        load_graphs([data()] * 2, y=np.eye(3)[:2], **known)


def test_a_sparse_adjacency_is_read_with_its_weights() -> None:
    matrix = torch.tensor([[0, 2.0, 0], [0, 5, 0], [0, 0, 0]])  # row: target, and a self-loop
    for sparse in (matrix.to_sparse(), matrix.to_sparse_csr(), matrix.to_sparse_csc()):
        graphs = load_graphs([Data(adj_t=sparse), Data(adj_t=sparse)])
        assert edges_of(graphs) == [{(0, 1)}] * 2
        assert graphs.graph.edge_weight is not None
        assert graphs.graph.edge_weight.tolist() == [2.0] * 4
    directed = load_graphs([Data(adj_t=matrix.to_sparse())] * 2, directed=True)
    assert directed.graph.edge_index.tolist() == [[1, 4], [0, 3]]


def test_weights_go_with_their_edges() -> None:
    weights = [torch.tensor([1.0, 4.0]), torch.tensor([[9.0], [2.0]])]
    back = torch.tensor([[1, 1], [0, 2]])
    graphs = load_graphs(
        [data(edge_weight=weights[0]), data(edge_weight=weights[1], edge_index=back)]
    )
    assert graphs.graph.edge_weight is not None
    pairs = map(tuple, graphs.graph.edge_index.T.tolist())
    found = dict(zip(pairs, graphs.graph.edge_weight.tolist(), strict=True))
    one_way = {(0, 1): 1, (1, 2): 4, (4, 3): 9, (4, 5): 2}
    assert found == one_way | {(b, a): weight for (a, b), weight in one_way.items()}


@pytest.mark.parametrize("layout", [torch.sparse_csr, torch.sparse_coo, torch.sparse_csc])
def test_sparse_features_stay_sparse(layout: torch.layout) -> None:
    x = torch.eye(3).to_sparse(layout=layout)
    graphs = load_graphs([data(x=x), data(x=x)])
    assert graphs.graph.x is not None
    assert graphs.graph.x.layout == torch.sparse_csr
    assert torch.equal(graphs.graph.x.to_dense(), torch.eye(3).repeat(2, 1))


def test_a_vector_is_one_feature() -> None:
    graphs = load_graphs([data(x=torch.arange(3.0))])
    assert graphs.graph.features().tolist() == [[0], [1], [2]]


SPARSE = torch.eye(3).to_sparse_csr()


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"x": torch.zeros(3, 2)}, {}, "x must be given for all"),
        ({}, {"x": torch.zeros(3, 2)}, "x must be given for all"),
        ({"x": torch.zeros(3, 2)}, {"x": torch.zeros(3, 4)}, "2 features, as .*got 4"),
        ({"x": SPARSE}, {"x": torch.eye(3)}, "sparse for all graphs or for none"),
        ({"x": torch.eye(3)}, {"x": SPARSE}, "sparse for all graphs or for none"),
        ({}, {"edge_weight": torch.ones(2)}, "edge_weight must be given for all"),
        ({"edge_weight": torch.ones(2)}, {"edge_weight": torch.ones(3)}, r"edge_weight .*\(2\)"),
        ({}, {"edge_weight": [1.0, 1.0], "y": None}, "edge_weight must be a tensor, got list"),
        ({"x": SPARSE}, {"x": np.eye(3)}, "x must be a tensor, got ndarray"),
        ({"x": torch.eye(3)}, {"x": torch.zeros(2, 3)}, r"x .*\(3\), got shape \[2, 3\]"),
        ({"x": torch.eye(3)}, {"x": torch.zeros(3, 3, 1)}, r"x .*got shape \[3, 3, 1\]"),
        ({"x": torch.eye(3)}, {"x": torch.tensor(1.0)}, r"x .*got shape \[\]"),
        ({}, {"edge_index": EDGES.numpy()}, "edge_index must .*got ndarray"),
        ({}, {"edge_index": EDGES.float()}, "edge_index must .*float32"),
        ({}, {"edge_index": EDGES[0]}, r"edge_index must .*shape \[2\]"),
        ({}, {"edge_index": EDGES - 1}, "sources from 0 to 2, got -1"),
        ({}, {"edge_index": EDGES + 1}, "targets from 0 to 2, got 2 to 3"),
        ({}, {"num_nodes": 2}, "targets from 0 to 1"),
        ({}, {"num_nodes": -1, "edge_index": EDGES[:, :0]}, "num_nodes must not be negative"),
        ({}, {"num_nodes": 2**45}, r"at most 2\*\*40"),
        ({}, {"edge_index": None}, "edge_index or adj_t"),
    ],
)
def test_what_does_not_fit_is_named_with_its_graph(
    first: dict[str, Any], second: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=rf"graphs\[1\]: .*{message}"):
        load_graphs([data(**first), data(**second)])


def test_rows_too_many_in_one_graph_do_not_become_those_of_the_next() -> None:
    """In all, there are as many rows and weights as there must be."""
    with pytest.raises(DataError, match=r"graphs\[0\]: x"):
        load_graphs([data(x=torch.zeros(4, 1)), data(x=torch.zeros(2, 1))])
    with pytest.raises(DataError, match=r"graphs\[0\]: edge_weight"):
        load_graphs([data(edge_weight=torch.ones(1)), data(edge_weight=torch.ones(3))])


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([], "at least one graph, got none"),
        (None, "got NoneType in graphs[0]"),
        (3, "got int in graphs[0]"),
        ([data(), 3], "got int in graphs[1]"),
        ([data(), nx.path_graph(2)], "got Data in graphs[0] and Graph in graphs[1]"),
        ({1: nx.path_graph(2)}, "got int in graphs[0]"),
        ([Batch.from_data_list([data(), data()])], "a Batch of 2 in graphs[0]"),
        (Batch.from_data_list([data(y=0), data(y=1)]), "a Batch of 2 in graphs[0]"),
    ],
)
def test_what_is_no_list_of_graphs_is_refused(graphs: Any, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        load_graphs(graphs)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": [1]}, r"one id per graph \(2\), got 1"),
        ({"val": 0.9, "test": 0.2}, r"val \+ test"),
        ({"task": "both"}, "task must be"),
        ({"folds": 1}, "'folds'"),
        ({"features": "z"}, "'z'"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        load_graphs([ring(3), ring(4)], y=["a", "b"], **options)


def test_one_graph_and_generators_are_lists() -> None:
    for one in (data(y=1), ring(3, 1), Graph.from_edge_index(EDGES)):
        assert len(load_graphs(one)) == 1
    assert len(load_graphs(data() for _ in range(3))) == 3
    assert len(load_graphs(tuple(ring(place) for place in (3, 4)))) == 2


def test_graphs_have_ids_and_a_name() -> None:
    graphs = load_graphs([data(), data()], ids=["m1", "m7"], name="mine")
    assert graphs.name == "mine"
    assert graphs.targets.node_ids is not None
    assert graphs.targets.node_ids.tolist() == ["m1", "m7"]


def test_own_graphs_lose_what_is_about_nodes() -> None:
    one = Graph.from_edge_index(EDGES, y=torch.tensor([0, 1, 2]), label_names=("a", "b", "c"))
    graphs = load_graphs([one, one], y=[0, 1])
    assert graphs.graph.y is None
    assert graphs.graph.label_names is None
    assert y_of(graphs) == [0, 1]
    with pytest.raises(UsageError, match=r"graphs\[1\] must be one graph, got 2"):
        load_graphs([one, Graph.concat([one, one])])


def test_networkx_graphs_keep_labels_weights_and_directions() -> None:
    single = [nx.Graph([(0, 1, {"w": 2.0})]), nx.MultiGraph([("a", "b"), ("b", "a"), ("a", "a")])]
    for graph, label in zip(single, ("x", "y"), strict=True):
        graph.graph["kind"] = label
        nx.set_edge_attributes(graph, 3.0, "v")
    with pytest.raises(UsageError, match=r"label .* got 'kin'; they have 'kind'"):
        load_graphs(single, label="kin")
    graphs = load_graphs(single, label="kind", weight="v")
    assert graphs.targets.label_names == ("x", "y")
    assert edges_of(graphs) == [{(0, 1)}] * 2
    assert graphs.graph.edge_weight is not None
    assert graphs.graph.edge_weight.tolist() == [3.0] * 4
    with pytest.raises(DataError, match=r"'w' .*None"):
        load_graphs(single, weight="w")
    mixed = load_graphs([nx.path_graph(2), nx.DiGraph([(0, 1)])], directed=True)
    assert sorted(mixed.graph.edge_index.T.tolist()) == [[0, 1], [1, 0], [2, 3]]


@pytest.mark.filterwarnings("ignore:graphs")
def test_attributes_of_nodes_become_features_and_may_be_missing() -> None:
    single = [nx.path_graph(3), nx.path_graph(2), nx.path_graph(1)]
    nx.set_node_attributes(single[0], {0: "C", 1: "N", 2: "C"}, "element")
    nx.set_node_attributes(single[1], {0: "N"}, "element")
    graphs = load_graphs(single, features="element")
    x = graphs.graph.features()
    assert x[:4, :2].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]]
    assert x[4:, :2].tolist() == [[0, 0]] * 2
    again = load_graphs(single[1:], encoder=graphs.graph.encoder)
    assert torch.equal(again.graph.features(), x[3:])


def test_features_are_fitted_without_the_graphs_held_out() -> None:
    single = [nx.path_graph(2) for _ in range(20)]
    for place, graph in enumerate(single):
        nx.set_node_attributes(graph, {0: 0.0, 1: float(place)}, "x")
    graphs = load_graphs(single, y=[0, 1] * 10)
    train = graphs.mask("train")
    assert train is not None
    seen = [float(place) for place in range(20) if train[place]] + [0.0] * int(train.sum())
    wanted = (np.array([[0.0, float(place)] for place in range(20)]) - np.mean(seen)) / np.std(seen)
    np.testing.assert_allclose(graphs.graph.features().flatten(), wanted.flatten(), rtol=1e-5)


def test_notes_are_counted_and_grouped() -> None:
    single = [*(ring(3) for _ in range(4)), nx.empty_graph(0), nx.empty_graph(1), nx.empty_graph(2)]
    for graph in single:
        for name in "abcdefg":
            nx.set_node_attributes(graph, 1.0, name)
    with pytest.warns(UserWarning, match="graphs|node attributes") as caught:
        graphs = load_graphs(single, y=[0, 1] * 3 + [0])
    texts = [str(one.message) for one in caught]
    assert len(texts) == 3
    assert "7 columns ('a', 'b', 'c', 'd', 'e', ...)" in texts[0]
    assert "1 of 7 graphs has no nodes" in texts[1]
    assert "2 of 7 graphs have no edges" in texts[2]
    assert graphs.sizes.tolist() == [3, 3, 3, 3, 0, 1, 2]


def test_a_huge_graph_among_small_ones_is_read_quickly() -> None:
    size = 200_000
    path = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    many = [
        Data(edge_index=path, num_nodes=size, y=0),
        *(data(y=place % 2) for place in range(500)),
    ]
    start = time.perf_counter()
    graphs = load_graphs(many)
    assert time.perf_counter() - start < 5
    assert graphs.num_nodes == size + 1500
    assert graphs.graph.num_edges == 2 * (size - 1 + 1000)


def test_edge_features_of_whole_graphs_are_not_dropped_in_silence() -> None:
    pyg = data(edge_attr=torch.ones(2, 3), x=torch.ones(3, 1))
    for graphs in ([pyg] * 4, [Graph.from_pyg(pyg)] * 4):
        with pytest.warns(UserWarning, match="edge_attr.* do not read"):
            found = load_graphs(graphs, y=[0, 1, 0, 1])
        assert found.graph.edge_attr is None
