"""Graphs from edges, sparse matrices and PyG, and fields that are wrong."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.utils import remove_self_loops, to_undirected

from lgcn import Graph

from .graphs import PATH, RandomGraph, dense


def test_rows_are_targets_and_columns_sources() -> None:
    graph = Graph.as_given(PATH)
    assert graph.rowptr.tolist() == [0, 0, 1, 2, 3]
    assert graph.col.tolist() == [0, 1, 2]
    assert graph.edge_index.tolist() == PATH.tolist()
    assert (graph.num_nodes, graph.num_edges) == (4, 3)


def test_a_row_keeps_the_order_of_its_edges() -> None:
    edge_index = torch.tensor([[3, 1, 0, 2, 1], [0, 2, 0, 0, 0]])
    weight = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    graph = Graph.as_given(edge_index, edge_weight=weight)
    assert graph.col.tolist() == [3, 0, 2, 1, 1]
    assert graph.edge_weight.tolist() == [0.0, 2.0, 3.0, 4.0, 1.0]


def test_duplicates_are_merged_and_self_loops_left_out() -> None:
    edge_index = torch.tensor([[2, 1, 1, 0, 0], [0, 0, 0, 1, 0]])
    graph = Graph.from_edge_index(edge_index)
    assert graph.rowptr.tolist() == [0, 2, 3, 4]
    assert graph.col.tolist() == [1, 2, 0, 0]
    graph = Graph.from_edge_index(edge_index, directed=True)
    assert graph.rowptr.tolist() == [0, 2, 3, 3]
    assert graph.col.tolist() == [1, 2, 0]


def test_the_largest_weight_of_duplicates_wins() -> None:
    edge_index = torch.tensor([[0, 1, 2, 0], [1, 0, 1, 1]])
    weight = torch.tensor([3.0, 5.0, 2.0, 4.0])
    graph = Graph.from_edge_index(edge_index, edge_weight=weight)
    assert dense(graph.adjacency()).tolist() == [[0, 5, 0], [5, 0, 2], [0, 2, 0]]
    graph = Graph.from_edge_index(edge_index, edge_weight=weight, directed=True)
    assert dense(graph.adjacency()).tolist() == [[0, 5, 0], [4, 0, 2], [0, 0, 0]]


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("directed", [False, True])
def test_sparse_adjacency_has_targets_as_rows(layout: torch.layout, directed: bool) -> None:
    matrix = torch.tensor([[4.0, 2.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    graph = Graph.from_edge_index(matrix.to_sparse(layout=layout), directed=directed)
    matrix = matrix if directed else torch.maximum(matrix, matrix.t())
    matrix.fill_diagonal_(0)
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
    again = Graph.from_pyg(data, name="again", directed=True)
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
    data = Data(adj_t=adj_t, y=torch.tensor([[1], [0]]), num_nodes=2)
    graph = Graph.from_pyg(data, directed=True)
    assert graph.edge_index.tolist() == [[1], [0]]
    assert graph.edge_weight.tolist() == [2.0]
    assert graph.y.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"y": 1}, "y must be a tensor, got int"),
        ({"y": torch.tensor(1)}, r"y must have one row per node \(4\), got shape \(\)"),
        ({"x": [[1.0]] * 4}, "x must be a tensor, got list"),
        ({"edge_weight": np.ones(3)}, "edge_weight must be a tensor, got ndarray"),
        ({"edge_index": PATH.numpy()}, "edge_index must .*got ndarray"),
    ],
)
def test_pyg_data_of_other_kinds_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_pyg(Data(**{"edge_index": PATH, "num_nodes": 4, **fields}))


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
        ({"edge_weight": torch.ones(2)}, r"edge_weight must .* \(3\), got .*\(2,\)"),
        ({"train_mask": torch.ones(2) > 0}, r"train_mask must have one row per node \(4\)"),
        ({"val_mask": torch.ones(4)}, r"val_mask must be .* boolean mask, got torch.float32"),
        ({"test_mask": torch.ones(4, 2) > 0}, r"test_mask must be a one-dim.* shape \(4, 2\)"),
        ({"col": torch.tensor([0, 1, 4])}, r"col must be smaller .*\(4\), got col.max\(\) = 4"),
        ({"col": torch.tensor([0, 1, -1])}, r"col must .* got col.min\(\) = -1"),
        ({"rowptr": torch.tensor([0, 2, 1, 2, 3])}, r"rowptr must not decrease, .*\[1\] = 2"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Tensor], message: str) -> None:
    path = Graph.as_given(PATH)
    with pytest.raises(ValueError, match=message):
        Graph(**{"rowptr": path.rowptr, "col": path.col, **fields})


@pytest.mark.parametrize(
    ("edge_index", "edge_weight", "message"),
    [
        (torch.zeros(3, 2).long(), None, r"edge_index must hold .*int64 in shape \[3, 2\]"),
        (torch.zeros(2, 2), None, r"edge_index must hold integers .* got torch.float32"),
        (torch.tensor([[0, 4], [1, 0]]), None, "name sources from 0 to 3, got 0 to 4"),
        (torch.tensor([[0, 1], [1, -2]]), None, "name targets from 0 to 3, got -2 to 1"),
        (PATH, torch.ones(2), r"edge_weight must .*edge \(3\), got shape \[2\]"),
        (torch.eye(3).to_sparse(), None, r"\[targets, sources\] = \[4, 4\], got \[3, 3\]"),
        (torch.eye(4).to_sparse(), torch.ones(4), "edge_weight must be None with a sparse"),
    ],
)
def test_wrong_edges_are_named(
    edge_index: Tensor, edge_weight: Tensor | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edge_index(edge_index, 4, edge_weight=edge_weight)
    with pytest.raises(ValueError, match=message):
        Graph.as_given(edge_index, 4, edge_weight=edge_weight)


@pytest.mark.parametrize("ptr", [[0, 2], [1, 4], [0, 3, 2, 4]])
def test_ptr_must_cover_the_nodes(ptr: list[int]) -> None:
    with pytest.raises(ValueError, match=r"ptr must rise from 0 .*nodes \(4\)"):
        Graph.from_edge_index(torch.tensor([[0], [1]]), 4, ptr=torch.tensor(ptr))


def test_a_trusted_graph_is_not_read_also_when_it_is_changed() -> None:
    rowptr, col = torch.tensor([0, 1, 1]), torch.tensor([7], dtype=torch.int32)
    graph = Graph._trusted(rowptr, col)  # wrong, which a look at col would show
    assert replace(graph, y=torch.tensor([0, 1])).num_classes == 2
    with pytest.raises(ValueError, match="one row per node"):
        replace(graph, y=torch.tensor([0]))
    with pytest.raises(ValueError, match="vector of int32 or int64"):
        Graph._trusted(rowptr, col.float())


# Integer types, and numbers that are too large for them.

INTEGERS = (
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.uint8, torch.uint16, torch.uint32, torch.uint64),
)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_any_integer_type_gives_the_same_graph(
    dtype: torch.dtype, directed: bool, weighted: bool
) -> None:
    """A product of two node numbers overflows from 12 nodes on in int8, from 182 in int16."""
    num_nodes = min(50_000, torch.iinfo(dtype).max + 1)
    edges = torch.randint(num_nodes, (2, 3000), generator=torch.Generator().manual_seed(0))
    edges[:, 0] = num_nodes - 1
    weight = torch.rand(3000) if weighted else None
    for given in (num_nodes, None):
        graphs = [
            Graph.from_edge_index(e, given, edge_weight=weight, directed=directed)
            for e in (edges, edges.to(dtype))
        ]
        assert graphs[1].num_nodes == num_nodes
        for key in ("rowptr", "col", "edge_weight"):
            expected, found = (getattr(graph, key) for graph in graphs)
            assert (expected is None and found is None) or torch.equal(found, expected), key
    found = Graph.from_pyg(Data(edge_index=edges.to(dtype)))
    assert found.edge_index.tolist() == Graph.from_edge_index(edges).edge_index.tolist()


@pytest.mark.parametrize("num_nodes", [4, 10**9])
def test_a_graph_of_both_directions_is_that_of_pyg(
    num_nodes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if num_nodes > 4:  # stands for more nodes than a product of two numbers has room for
        monkeypatch.setattr("lgcn.graph.pyg.MAX_SQUARED", 1)
    edges = torch.randint(40, (2, 300))
    weight = torch.rand(300)
    graph = Graph.from_edge_index(edges, 40, edge_weight=weight)
    index, expected = remove_self_loops(edges, weight)
    index, expected = to_undirected(index, expected, 40, reduce="max")
    assert torch.equal(graph.edge_index.flip(0), index)
    assert torch.equal(graph.edge_weight, expected)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (torch.tensor([[0, -1], [1, 0]], dtype=torch.int8), "sources from 0 to 3, got -1 to 0"),
        (torch.tensor([[0, 1], [1, 200]], dtype=torch.uint8), "targets from 0 to 3, got 1 to 200"),
        (torch.tensor([[0, 1], [1, 4]], dtype=torch.int32), "targets from 0 to 3, got 1 to 4"),
        (torch.ones(2, 3).bool(), r"edge_index must hold integers .* got torch.bool"),
        (torch.ones(2, 3).cfloat(), r"edge_index must hold integers .* got torch.complex64"),
        ([[0, 1], [1, 0]], r"edge_index must hold integers .* got list"),
    ],
)
def test_wrong_numbers_are_refused_before_they_are_used(
    edges: Tensor, message: str, directed: bool
) -> None:
    with pytest.raises(ValueError, match=message):
        Graph.from_edge_index(edges, 4, directed=directed)


@pytest.mark.parametrize("directed", [False, True])
def test_numbers_beyond_all_memory_are_refused(directed: bool) -> None:
    for largest in (10**9, 2**41, 2**63 - 1):
        edges = torch.tensor([[0], [largest]])
        with pytest.raises(ValueError, match=f"from 0 on, got node {largest} in 1 edges"):
            Graph.from_edge_index(edges, directed=directed)
    with pytest.raises(ValueError, match=r"at most 2\*\*40 nodes, got 2199023255552"):
        Graph.from_edge_index(edges, 2**41, directed=directed)
    numbers = torch.tensor([[0], [-1]]).view(torch.uint64)  # 2**64 - 1
    with pytest.raises(ValueError, match=f"below 2\\*\\*63, got {2**64 - 1}"):
        Graph.from_edge_index(numbers, directed=directed)
    with pytest.raises(ValueError, match=r"num_nodes must .* got -1"):
        Graph.from_edge_index(PATH[:, :0], -1, directed=directed)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csc, torch.sparse_csr])
@pytest.mark.parametrize("directed", [False, True])
def test_wrong_numbers_in_a_sparse_adjacency_are_refused(
    layout: torch.layout, directed: bool
) -> None:
    options = {"size": (3, 3), "check_invariants": False}
    offsets, numbers, ones = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 10**9]), torch.ones(2)
    if layout == torch.sparse_coo:
        matrix = torch.sparse_coo_tensor(torch.stack([numbers, numbers]), ones, **options)
    elif layout == torch.sparse_csc:
        matrix = torch.sparse_csc_tensor(offsets, numbers, ones, **options)
    else:
        matrix = torch.sparse_csr_tensor(offsets, numbers, ones, **options)
    with pytest.raises(ValueError, match="1000000000"):
        Graph.from_edge_index(matrix, directed=directed)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.uint16])
def test_rows_and_sub_graphs_by_any_integer_type(
    random_graph: RandomGraph, dtype: torch.dtype
) -> None:
    """Torch takes uint8 for a mask, and int8 overflows at node 127 plus one."""
    graph = random_graph(128, 0.1)
    for x in (graph.x, graph.x.to_sparse_csr()):
        graph = replace(graph, x=x)
        nodes = torch.tensor([127, 0, 3])
        found, expected = (graph.subgraph(n) for n in (nodes.to(dtype), nodes))
        for key in ("rowptr", "col", "y", "n_id", "degree"):
            assert torch.equal(getattr(found, key), getattr(expected, key)), key
        assert torch.equal(found.features().to_dense(), graph.x.to_dense()[nodes])


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_that_are_not_there_are_named(random_graph: RandomGraph, sparse: bool) -> None:
    graph = random_graph()
    graph = replace(graph, x=graph.x.to_sparse_csr() if sparse else graph.x)
    for wrong in ([12], [-1]):
        with pytest.raises(ValueError, match="rows must lie between 0 and 11"):
            graph.features(torch.tensor(wrong))
        with pytest.raises(ValueError, match="nodes must lie between 0 and 11"):
            graph.subgraph(torch.tensor(wrong))
    with pytest.raises(ValueError, match="rows as a mask must have 12 entries, got 3"):
        graph.features(torch.ones(3).bool())
    with pytest.raises(ValueError, match=r"nodes must be a list of node numbers, got torch.float"):
        graph.subgraph(torch.ones(3))


@pytest.mark.parametrize("ptr", [torch.tensor([0.0, 4.0]), torch.tensor([[0, 4]])])
def test_ptr_must_be_a_list_of_integers(ptr: Tensor) -> None:
    with pytest.raises(ValueError, match="ptr must rise"):
        Graph.from_edge_index(torch.tensor([[0], [1]]), 4, ptr=ptr)


def test_other_tensors_in_a_trusted_graph_are_read() -> None:
    graph = Graph._trusted(torch.tensor([0, 1, 1]), torch.tensor([1], dtype=torch.int32))
    with pytest.raises(ValueError, match=r"col must be smaller .*\(2\), got col.max\(\) = 7"):
        replace(graph, rowptr=torch.tensor([0, 1, 1]), col=torch.tensor([7]))


def test_side_by_side_with_more_entries_or_nodes_than_int32_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = Graph.as_given(PATH, x=torch.eye(4).to_sparse_csr())
    path = replace(path, rowptr=path.rowptr.int(), col=path.col.int())
    expected = Graph.concat([path, path])
    assert expected.rowptr.dtype == expected.col.dtype == torch.int32
    for module in ("lgcn.graph.cut", "lgcn.graph.csr"):  # stands for 2**31 - 1
        monkeypatch.setattr(f"{module}.MAX_INT32", 5)
    found = Graph.concat([path, path])
    assert found.rowptr.dtype == found.col.dtype == torch.int64
    assert found.edge_index.tolist() == expected.edge_index.tolist()
    assert found.x.to_dense().equal(expected.x.to_dense())
