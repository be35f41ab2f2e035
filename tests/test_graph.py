"""The Graph structure against dense matrices and PyG."""

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lgcn import Graph, k_largest
from lgcn.csr import CSR, to_csr

RandomGraph = Callable[..., Graph]
PATH = torch.tensor([[0, 1, 2], [1, 2, 3]])  # 0 -> 1 -> 2 -> 3


def dense(matrix: CSR, num_cols: int | None = None) -> Tensor:
    """The matrix, filled in entry by entry; parallel entries add up."""
    num_rows = matrix.rowptr.numel() - 1
    out = torch.zeros(num_rows, num_rows if num_cols is None else num_cols)
    for i in range(num_rows):
        for e in range(int(matrix.rowptr[i]), int(matrix.rowptr[i + 1])):
            out[i, matrix.col[e]] += 1 if matrix.weight is None else matrix.weight[e]
    return out


def sparse(x: Tensor) -> Tensor:
    return (x * (x > 0)).to_sparse_csr()


# Making a graph.


def test_rows_are_targets_and_columns_sources() -> None:
    graph = Graph.from_edge_index(PATH)
    assert graph.rowptr.tolist() == [0, 0, 1, 2, 3]
    assert graph.col.tolist() == [0, 1, 2]
    assert graph.edge_index.tolist() == PATH.tolist()
    assert (graph.num_nodes, graph.num_edges) == (4, 3)


def test_a_row_keeps_the_order_of_its_edges() -> None:
    edge_index = torch.tensor([[3, 1, 0, 2, 1], [0, 2, 0, 0, 0]])
    weight = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    graph = Graph.from_edge_index(edge_index, edge_weight=weight)
    assert graph.col.tolist() == [3, 0, 2, 1, 1]
    assert graph.edge_weight.tolist() == [0.0, 2.0, 3.0, 4.0, 1.0]


def test_undirected_adds_reverses_and_removes_duplicates_and_self_loops() -> None:
    edge_index = torch.tensor([[2, 1, 1, 0, 0], [0, 0, 0, 1, 0]])
    graph = Graph.from_edge_index(edge_index, undirected=True)
    assert graph.rowptr.tolist() == [0, 2, 3, 4]
    assert graph.col.tolist() == [1, 2, 0, 0]


def test_undirected_takes_the_largest_of_several_weights() -> None:
    edge_index = torch.tensor([[0, 1, 2], [1, 0, 1]])
    weight = torch.tensor([3.0, 5.0, 2.0])
    graph = Graph.from_edge_index(edge_index, edge_weight=weight, undirected=True)
    assert dense(graph.adjacency()).tolist() == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("undirected", [False, True])
def test_sparse_adjacency_has_targets_as_rows(layout: torch.layout, undirected: bool) -> None:
    matrix = torch.tensor([[4.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    graph = Graph.from_edge_index(matrix.to_sparse(layout=layout), undirected=undirected)
    if undirected:
        matrix = torch.maximum(matrix, matrix.t()).fill_diagonal_(0)
    assert dense(graph.adjacency()).tolist() == matrix.tolist()


def test_number_of_nodes_is_given_or_read_from_x_or_the_edges() -> None:
    assert Graph.from_edge_index(PATH, 9).num_nodes == 9
    assert Graph.from_edge_index(PATH, x=torch.zeros(7, 1)).num_nodes == 7
    assert Graph.from_edge_index(PATH).num_nodes == 4
    assert Graph.from_edge_index(PATH[:, :0]).num_nodes == 0


def test_pyg_data_round_trip(random_graph: RandomGraph) -> None:
    masks = {f"{split}_mask": torch.arange(12) % 3 == i for i, split in enumerate(("train", "val"))}
    graph = random_graph(weighted=True, n_id=torch.arange(12) + 100, **masks)
    data = graph.to_pyg()
    assert data.validate()
    again = Graph.from_pyg(data, name="again")
    for key in ("rowptr", "col", "x", "y", "train_mask", "val_mask", "edge_weight", "n_id"):
        assert torch.equal(getattr(again, key), getattr(graph, key)), key
    assert again.test_mask is None
    assert again.name == "again"


def test_pyg_batch_keeps_its_ptr() -> None:
    parts = [Data(edge_index=PATH, x=torch.ones(4, 2)), Data(edge_index=PATH, x=torch.zeros(5, 2))]
    graph = Graph.from_pyg(Batch.from_data_list(parts))
    assert graph.ptr.tolist() == [0, 4, 9]
    assert graph.num_graphs == 2
    assert graph.to_pyg().ptr.tolist() == [0, 4, 9]


def test_pyg_adj_t_and_labels_in_a_column() -> None:
    adj_t = torch.tensor([[0.0, 2.0], [0.0, 0.0]]).to_sparse_csr()
    graph = Graph.from_pyg(Data(adj_t=adj_t, y=torch.tensor([[1], [0]]), num_nodes=2))
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.edge_weight.tolist() == [2.0]
    assert graph.y.tolist() == [1, 0]


def test_pyg_data_without_edges_is_refused() -> None:
    with pytest.raises(ValueError, match="edge_index or adj_t"):
        Graph.from_pyg(Data(x=torch.zeros(3, 1)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": torch.zeros(3, 2)}, r"x must have one row per node \(4\), got shape \(3, 2\)"),
        ({"x": torch.zeros(4)}, r"x must have shape \[nodes, features\], got \(4,\)"),
        ({"y": torch.zeros(5)}, r"y must have one row per node \(4\), got shape \(5,\)"),
        ({"n_id": torch.zeros(1)}, r"n_id must have one row per node \(4\), got shape \(1,\)"),
        ({"node_ids": np.zeros(2)}, r"node_ids must have one row per node \(4\)"),
        ({"edge_weight": torch.ones(2)}, r"edge_weight must have one entry .* \(3\), got .*\(2,\)"),
        ({"train_mask": torch.ones(2) > 0}, r"train_mask must have one row per node \(4\)"),
        ({"val_mask": torch.ones(4)}, r"val_mask must be .* boolean mask, got torch.float32"),
        ({"test_mask": torch.ones(4, 2) > 0}, r"test_mask must be a one-dim.* shape \(4, 2\)"),
        ({"col": torch.tensor([0, 1, 4])}, r"col must be smaller .*\(4\), got col.max\(\) = 4"),
        ({"col": torch.tensor([0, 1, -1])}, r"col must not be negative, got col.min\(\) = -1"),
        ({"rowptr": torch.tensor([0, 2, 1, 2, 3])}, r"rowptr must not decrease, .*\[1\] = 2"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Tensor], message: str) -> None:
    path = Graph.from_edge_index(PATH)
    with pytest.raises(ValueError, match=message):
        Graph(**{"rowptr": path.rowptr, "col": path.col, **fields})


@pytest.mark.parametrize(
    ("edge_index", "edge_weight", "message"),
    [
        (torch.zeros(3, 2).long(), None, r"edge_index must hold .*int64 in shape \[3, 2\]"),
        (torch.zeros(2, 2), None, r"edge_index must hold integers .* got torch.float32"),
        (torch.tensor([[0, 4], [1, 0]]), None, "name sources from 0 to 3, got 0 to 4"),
        (torch.tensor([[0, 1], [1, -2]]), None, "name targets from 0 to 3, got -2 to 1"),
        (PATH, torch.ones(2), r"edge_weight must have one entry an edge \(3\), got shape \[2\]"),
        (torch.eye(3).to_sparse(), None, r"\[targets, sources\] = \[4, 4\], got \[3, 3\]"),
        (torch.eye(4).to_sparse(), torch.ones(4), "edge_weight must be None with a sparse"),
    ],
)
def test_wrong_edges_are_named(
    edge_index: Tensor, edge_weight: Tensor | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edge_index(edge_index, 4, edge_weight=edge_weight)


# Adjacencies.


@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("has_loops", [False, True])
def test_adjacency_is_that_of_pyg(
    random_graph: RandomGraph, self_loops: bool, weighted: bool, has_loops: bool
) -> None:
    graph = random_graph(weighted=weighted, self_loops=has_loops, density=0.2)
    edge_index, weight = gcn_norm(
        graph.edge_index, graph.edge_weight, graph.num_nodes, add_self_loops=self_loops
    )
    expected = torch.zeros(graph.num_nodes, graph.num_nodes)
    expected[edge_index[1], edge_index[0]] = weight
    actual = dense(graph.adjacency(normalize=True, self_loops=self_loops))
    torch.testing.assert_close(actual, expected)


def test_self_loops_are_added_where_missing_only() -> None:
    edge_index = torch.tensor([[0, 1, 2], [0, 0, 1]])
    graph = Graph.from_edge_index(edge_index, 3, edge_weight=torch.tensor([5.0, 6.0, 7.0]))
    expected = [[5, 6, 0], [0, 1, 7], [0, 0, 1]]
    assert dense(graph.adjacency(self_loops=True)).tolist() == expected


def test_an_isolated_node_has_finite_weights() -> None:
    graph = Graph.from_edge_index(torch.tensor([[0, 1, 3], [1, 0, 1]]), 4)
    looped = dense(graph.adjacency(normalize=True, self_loops=True))
    assert looped[2].tolist() == [0, 0, 1, 0]
    weight = graph.adjacency(normalize=True).weight
    assert weight.isfinite().all()
    assert dense(graph.adjacency(normalize=True))[1, 3] == 0  # node 3 has no row sum


def test_adjacency_is_computed_once(random_graph: RandomGraph) -> None:
    graph = random_graph()
    for options in ({}, {"normalize": True}, {"normalize": True, "self_loops": True}):
        assert graph.adjacency(**options) is graph.adjacency(**options)
    assert graph.adjacency().col is graph.col


def test_drop_edges_with_rate_zero_is_the_same_object(random_graph: RandomGraph) -> None:
    matrix = random_graph().adjacency(normalize=True)
    assert matrix.drop_edges(0.0) is matrix


@pytest.mark.parametrize("weighted", [False, True])
def test_drop_edges_keeps_some_and_scales_them_up(
    random_graph: RandomGraph, weighted: bool
) -> None:
    matrix = random_graph(weighted=weighted).adjacency()
    torch.manual_seed(0)
    dropped = matrix.drop_edges(0.5)
    assert 0 < dropped.col.numel() < matrix.col.numel()
    assert int(dropped.rowptr[-1]) == dropped.col.numel()
    before, after = dense(matrix), dense(dropped)
    torch.testing.assert_close(after[after != 0], 2 * before[after != 0])


@pytest.mark.parametrize("weighted", [False, True])
def test_drop_edges_keeps_the_expectation(random_graph: RandomGraph, weighted: bool) -> None:
    matrix = random_graph(40, 0.9, weighted=weighted).adjacency()
    torch.manual_seed(0)
    mean = torch.stack([matrix.drop_edges(0.3).values().sum() for _ in range(50)]).mean()
    torch.testing.assert_close(mean, matrix.values().sum(), rtol=0.02, atol=0)


# Sub-graphs and graphs side by side.


@settings(max_examples=50)
@given(data=st.data())
def test_subgraph_is_a_slice_of_the_dense_matrix(
    random_graph: RandomGraph, data: st.DataObject
) -> None:
    num_nodes = data.draw(st.integers(1, 12))
    graph = random_graph(
        num_nodes,
        data.draw(st.sampled_from((0.0, 0.2, 0.7))),
        seed=data.draw(st.integers(0, 99)),
        weighted=data.draw(st.booleans()),
        self_loops=data.draw(st.booleans()),
    )
    chosen = data.draw(st.lists(st.integers(0, num_nodes - 1), unique=True))
    nodes = torch.tensor(chosen, dtype=torch.long)
    part = graph.subgraph(nodes)
    assert torch.equal(dense(part.adjacency()), dense(graph.adjacency())[nodes][:, nodes])
    assert torch.equal(part.x, graph.x[nodes])
    assert torch.equal(part.y, graph.y[nodes])
    assert part.n_id.tolist() == chosen


def test_subgraph_takes_masks_and_names_along(random_graph: RandomGraph) -> None:
    graph = random_graph(
        train_mask=torch.arange(12) < 4,
        val_mask=torch.arange(12) == 5,
        test_mask=torch.arange(12) > 8,
        node_ids=np.array([f"n{i}" for i in range(12)]),
        label_names=("a", "b", "c"),
        name="letters",
    )
    part = graph.subgraph(torch.tensor([9, 5, 0]))
    masks = [part.train_mask, part.val_mask, part.test_mask]
    assert torch.stack(masks, 1).int().tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert part.node_ids.tolist() == ["n9", "n5", "n0"]
    assert (part.label_names, part.name) == (("a", "b", "c"), "letters")


@pytest.mark.parametrize("weighted", [False, True])
def test_subgraph_normalises_with_degrees_of_the_whole_graph_or_its_own(
    random_graph: RandomGraph, weighted: bool
) -> None:
    graph = random_graph(weighted=weighted)
    nodes = torch.tensor([7, 2, 3, 11])
    whole = dense(graph.adjacency(normalize=True, self_loops=True))[nodes][:, nodes]
    kept = graph.subgraph(nodes).adjacency(normalize=True, self_loops=True)
    torch.testing.assert_close(dense(kept), whole)
    part = graph.subgraph(nodes, keep_degree=False)
    edge_index, weight = gcn_norm(part.edge_index, part.edge_weight, 4)
    own = torch.zeros(4, 4)
    own[edge_index[1], edge_index[0]] = weight
    torch.testing.assert_close(dense(part.adjacency(normalize=True, self_loops=True)), own)
    assert not torch.allclose(own, whole)


def test_subgraph_takes_rows_of_sparse_features(random_graph: RandomGraph) -> None:
    graph = random_graph()
    x = sparse(graph.x)
    nodes = torch.tensor([4, 0, 8])
    part = Graph(graph.rowptr, graph.col, x=x).subgraph(nodes)
    assert part.x.layout == torch.sparse_csr
    assert torch.equal(part.x.to_dense(), x.to_dense()[nodes])


@pytest.mark.parametrize(
    ("nodes", "message"),
    [([1, 1], "nodes must be distinct, got 1 twice"), ([0, 12], "between 0 and 11, got 0 to 12")],
)
def test_subgraph_refuses_wrong_nodes(
    random_graph: RandomGraph, nodes: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        random_graph().subgraph(torch.tensor(nodes))


def test_subgraph_of_a_subgraph_names_the_first_graphs_nodes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    part = graph.subgraph(torch.tensor([9, 3, 6, 1])).subgraph(torch.tensor([2, 0]))
    assert part.n_id.tolist() == [6, 9]
    once = graph.subgraph(torch.tensor([6, 9]))
    torch.testing.assert_close(
        dense(part.adjacency(normalize=True)), dense(once.adjacency(normalize=True))
    )


@pytest.mark.parametrize("is_sparse", [False, True])
def test_concat_is_block_diagonal(random_graph: RandomGraph, is_sparse: bool) -> None:
    parts = [random_graph(n, weighted=True, seed=n) for n in (3, 0, 5)]
    if is_sparse:
        parts = [Graph(g.rowptr, g.col, x=sparse(g.x), edge_weight=g.edge_weight) for g in parts]
    graph = Graph.concat(parts)
    blocks = torch.block_diag(*[dense(part.adjacency()) for part in parts if part.num_nodes])
    assert torch.equal(dense(graph.adjacency()), blocks)
    assert graph.ptr.tolist() == [0, 3, 3, 8]
    x = graph.x.to_dense() if is_sparse else graph.x
    assert torch.equal(x, torch.cat([p.x.to_dense() if is_sparse else p.x for p in parts]))


def test_concat_keeps_degrees_and_node_numbers(random_graph: RandomGraph) -> None:
    graph = random_graph()
    nodes = [torch.tensor([0, 5, 7]), torch.tensor([2, 5])]
    both = Graph.concat([graph.subgraph(part) for part in nodes])
    assert both.n_id.tolist() == [0, 5, 7, 2, 5]
    assert both.degree.tolist() == graph.rowptr.diff()[both.n_id].tolist()


def test_concat_works_after_a_subgraph_was_cut_from_one(random_graph: RandomGraph) -> None:
    first, second = random_graph(6), random_graph(4, weighted=False, seed=1)
    expected = dense(Graph.concat([first, second]).adjacency(normalize=True))
    first.subgraph(torch.tensor([0, 1]))
    actual = dense(Graph.concat([first, second]).adjacency(normalize=True))
    torch.testing.assert_close(actual, expected)


def test_concat_of_one_is_that_one_and_of_none_an_error(random_graph: RandomGraph) -> None:
    graph = random_graph()
    assert Graph.concat([graph]) is graph
    with pytest.raises(ValueError, match="graphs must have at least one graph"):
        Graph.concat([])


def test_concat_refuses_features_of_some_graphs_only(random_graph: RandomGraph) -> None:
    with pytest.raises(ValueError, match="x must be given for all graphs or for none"):
        Graph.concat([random_graph(), random_graph(x=None)])


@pytest.mark.parametrize(
    ("train", "ptr", "inductive"),
    [
        ([1, 1, 0, 0], [0, 2, 4], True),
        ([1, 0, 0, 0], [0, 2, 4], False),
        ([1, 1, 1, 1], [0, 2, 4], False),
        ([1, 1, 0, 0], None, False),
        (None, [0, 2, 4], False),
    ],
)
def test_inductive_means_whole_graphs_are_held_out(
    train: list[int] | None, ptr: list[int] | None, inductive: bool
) -> None:
    graph = Graph.from_edge_index(
        PATH,
        train_mask=None if train is None else torch.tensor(train).bool(),
        ptr=None if ptr is None else torch.tensor(ptr),
    )
    assert graph.inductive is inductive


# The rest.


@pytest.mark.parametrize(
    ("fields", "num_classes", "multi_label"),
    [
        ({}, 0, False),
        ({"y": torch.tensor([0, -1, 4, 1])}, 5, False),
        ({"y": torch.zeros(4, 7)}, 7, True),
        ({"y": torch.zeros(4).long(), "label_names": ("a", "b")}, 2, False),
    ],
)
def test_classes(fields: dict[str, object], num_classes: int, multi_label: bool) -> None:
    graph = Graph.from_edge_index(PATH, **fields)
    assert graph.num_classes == num_classes
    assert graph.multi_label is multi_label


def test_a_graph_without_nodes_has_no_classes(random_graph: RandomGraph) -> None:
    empty = random_graph().subgraph(torch.tensor([], dtype=torch.long))
    assert empty.num_classes == 0
    assert "num_nodes=0" in repr(empty)


def test_repr() -> None:
    graph = Graph.from_edge_index(PATH, x=torch.zeros(4, 2), y=torch.tensor([0, 1, 0, 1]), name="p")
    shown = "name='p', num_nodes=4, num_edges=3, num_features=2, num_classes=2"
    assert repr(graph) == f"Graph({shown})"
    both = Graph.concat([graph, graph])
    assert repr(both).endswith("num_classes=2, num_graphs=2)")


def test_mask_by_name(random_graph: RandomGraph) -> None:
    mask = torch.arange(12) < 3
    graph = random_graph(val_mask=mask)
    assert graph.mask("val") is mask
    assert graph.mask("test") is None
    with pytest.raises(ValueError, match="split must be one of train, val, test, got 'dev'"):
        graph.mask("dev")


def test_a_used_graph_can_be_pickled_and_copied(random_graph: RandomGraph) -> None:
    graph = random_graph(weighted=True)
    adjacency = graph.adjacency(normalize=True)
    expected, _ = k_largest(graph.x, *adjacency[:2], 3, edge_weight=adjacency.weight)
    graph.subgraph(torch.tensor([0]))
    for again in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph)):
        rowptr, col, weight = again.adjacency(normalize=True)
        assert torch.equal(k_largest(again.x, rowptr, col, 3, edge_weight=weight)[0], expected)
        assert again.col is not graph.col


def test_moving_to_where_it_is_gives_the_graph_itself(random_graph: RandomGraph) -> None:
    graph = random_graph()
    assert graph.to("cpu") is graph


def test_to_csr_of_a_bipartite_graph() -> None:
    matrix = to_csr(torch.tensor([[4, 0, 2], [1, 1, 0]]), num_rows=2, num_cols=5)
    assert dense(matrix, 5).tolist() == [[0, 0, 1, 0, 0], [1, 0, 0, 0, 1]]


@pytest.mark.parametrize("ptr", [[0, 2], [1, 4], [0, 3, 2, 4]])
def test_ptr_must_cover_the_nodes(ptr: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ptr must rise from 0 to the number of nodes \(4\)"):
        Graph.from_edge_index(torch.tensor([[0], [1]]), 4, ptr=torch.tensor(ptr))


def test_subgraph_by_mask_equals_by_numbers(random_graph: RandomGraph) -> None:
    graph = random_graph()
    mask = torch.arange(graph.num_nodes) % 2 == 0
    by_mask, by_number = graph.subgraph(mask), graph.subgraph(mask.nonzero().squeeze(1))
    assert torch.equal(by_mask.n_id, by_number.n_id)
    assert torch.equal(by_mask.col, by_number.col)


def test_nodes_without_a_known_label() -> None:
    mask = torch.tensor([True, False, False, False])
    graph = Graph.from_edge_index(PATH, y=torch.tensor([0, -1, 1, 0]), train_mask=mask)
    assert graph.unlabelled().tolist() == [False, True, False, False]
    y = torch.tensor([[0, 0], [0, 1], [0, 0], [1, 1]])
    several = Graph.from_edge_index(PATH, y=y, train_mask=mask)
    assert several.unlabelled().tolist() == [False, False, True, False]
    assert Graph.from_edge_index(PATH, y=y).unlabelled().tolist() == [True, False, True, False]
    assert Graph.from_edge_index(PATH).unlabelled().all()


# Rows of the adjacency, and features as they are stored.


@settings(max_examples=60)
@given(
    st.integers(0, 1000),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["no", "some", "kept"]),
    st.data(),
)
def test_rows_of_the_adjacency_are_those_of_the_whole(
    random_graph: RandomGraph,
    seed: int,
    weighted: bool,
    normalize: bool,
    self_loops: bool,
    loops: str,
    data: st.DataObject,
) -> None:
    graph = random_graph(12, 0.3, seed=seed, weighted=weighted, self_loops=loops != "no")
    if loops == "kept":  # degrees of a larger graph, rows with and without loops
        graph = graph.subgraph(torch.randperm(12)[:9])
    start = data.draw(st.integers(0, graph.num_nodes))
    stop = data.draw(st.integers(start, graph.num_nodes))
    expected = graph.adjacency(normalize=normalize, self_loops=self_loops).rows(start, stop)
    rows = graph.adjacency_rows(start, stop, normalize=normalize, self_loops=self_loops)
    for one, other in zip(rows, expected, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_rows_of_the_adjacency_must_be_there(random_graph: RandomGraph) -> None:
    for start, stop in ((-1, 2), (3, 2), (0, 13)):
        with pytest.raises(ValueError, match="between 0 and 12"):
            random_graph().adjacency_rows(start, stop)


FEATURES = torch.arange(36.0).view(12, 3) / 4  # which all types hold exactly
STORED = {
    "float32": (FEATURES, None),
    "float64": (FEATURES.double(), None),
    "float16": (FEATURES.half(), None),
    "bfloat16": (FEATURES.bfloat16(), None),
    "uint8": ((FEATURES * 4).byte(), torch.tensor([[0.25] * 3, [0.0] * 3])),
    "sparse": (FEATURES.to_sparse_csr(), None),
    "sparse half": (FEATURES.half().to_sparse_csr(), None),
}


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize(
    "rows", [None, slice(2, 7), torch.tensor([5, 1, 5]), torch.arange(12) % 3 == 1]
)
def test_features_are_floating_point_numbers(
    random_graph: RandomGraph, kind: str, rows: Tensor | slice | None
) -> None:
    x, scale = STORED[kind]
    graph = random_graph(x=x, feature_scale=scale)
    found = graph.features(rows)
    assert found.dtype == (torch.float64 if kind == "float64" else torch.float32)
    assert found.layout == x.layout
    expected = FEATURES if rows is None else FEATURES[rows]
    assert torch.equal(found.to_dense().float(), expected)


def test_features_in_float_are_not_copied(random_graph: RandomGraph) -> None:
    graph = random_graph()
    assert graph.features() is graph.x
    assert graph.features(slice(2, 4)).data_ptr() == graph.x[2:].data_ptr()


@pytest.mark.parametrize("kind", STORED)
def test_subgraphs_and_their_batches_have_features_to_compute_with(
    random_graph: RandomGraph, kind: str
) -> None:
    x, scale = STORED[kind]
    graph = random_graph(x=x, feature_scale=scale, node_weight=torch.arange(12.0))
    nodes = torch.tensor([7, 2, 9])
    part = graph.subgraph(nodes)
    assert part.feature_scale is None
    assert torch.equal(part.x.to_dense().float(), FEATURES[nodes])
    assert part.node_weight.tolist() == [7, 2, 9]
    both = Graph.concat([part, graph])
    assert both.feature_scale is None
    assert torch.equal(both.x.to_dense().float(), torch.cat([FEATURES[nodes], FEATURES]))
    assert both.node_weight.tolist() == [7, 2, 9, *range(12)]
    assert torch.equal(graph.to_pyg().x.to_dense().float(), FEATURES)


def test_a_graph_without_features_says_so(random_graph: RandomGraph) -> None:
    with pytest.raises(ValueError, match="must have features"):
        random_graph(x=None).features()


@pytest.mark.parametrize("scale", [torch.ones(3), torch.ones(2, 4)])
def test_a_scale_must_fit_the_features(random_graph: RandomGraph, scale: Tensor) -> None:
    with pytest.raises(ValueError, match="feature_scale"):
        random_graph(feature_scale=scale)
    with pytest.raises(ValueError, match="feature_scale"):
        random_graph(x=None, feature_scale=torch.ones(2, 0))


@pytest.mark.parametrize("normalize", [False, True])
def test_offsets_may_be_wider_than_columns(random_graph: RandomGraph, normalize: bool) -> None:
    graph = random_graph()
    mixed = Graph._trusted(graph.rowptr, graph.col.int(), x=graph.x)
    nodes = torch.tensor([3, 8, 1, 0])
    options = {"normalize": normalize, "self_loops": True}
    for one, other in (
        (mixed.adjacency(**options), graph.adjacency(**options)),
        (mixed.adjacency_rows(2, 9, **options), graph.adjacency_rows(2, 9, **options)),
        (mixed.subgraph(nodes).adjacency(**options), graph.subgraph(nodes).adjacency(**options)),
        (Graph.concat([mixed] * 2).adjacency(), Graph.concat([graph] * 2).adjacency()),
    ):
        assert one.rowptr.dtype == one.col.dtype
        assert torch.equal(dense(one, 24), dense(other, 24))


def test_a_trusted_graph_is_not_read_also_when_it_is_changed() -> None:
    rowptr, col = torch.tensor([0, 1, 1]), torch.tensor([7], dtype=torch.int32)
    graph = Graph._trusted(rowptr, col)  # wrong, which a look at col would show
    assert replace(graph, y=torch.tensor([0, 1])).num_classes == 2
    with pytest.raises(ValueError, match="one row per node"):
        replace(graph, y=torch.tensor([0]))
    with pytest.raises(ValueError, match="vector of int32 or int64"):
        Graph._trusted(rowptr, col.float())
