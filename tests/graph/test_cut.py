"""Sub-graphs and graphs side by side, against dense matrices and PyG."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from lgcn import Graph

from .graphs import PATH, RandomGraph, dense


def sparse(x: Tensor) -> Tensor:
    return (x * (x > 0)).to_sparse_csr()


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


def test_subgraph_by_mask_equals_by_numbers(random_graph: RandomGraph) -> None:
    graph = random_graph()
    mask = torch.arange(graph.num_nodes) % 2 == 0
    by_mask, by_number = graph.subgraph(mask), graph.subgraph(mask.nonzero().squeeze(1))
    assert torch.equal(by_mask.n_id, by_number.n_id)
    assert torch.equal(by_mask.col, by_number.col)


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
    graph = Graph.as_given(
        PATH,
        train_mask=None if train is None else torch.tensor(train).bool(),
        ptr=None if ptr is None else torch.tensor(ptr),
    )
    assert graph.inductive is inductive


def test_sample_weights_and_targets_go_along() -> None:
    first = Graph.from_edge_index(
        torch.tensor([[0, 1, 2], [1, 2, 3]]),
        4,
        y=torch.tensor([1.5, float("nan"), 2.5, 3.5]),
        sample_weight=torch.tensor([0.0, 1.0, 2.0, 3.0]),
    )
    part = first.subgraph(torch.tensor([3, 1]))
    assert part.sample_weight.tolist() == [3.0, 1.0]
    assert part.task == "regression"
    both = Graph.concat([first, part])
    assert both.sample_weight.tolist() == [0.0, 1.0, 2.0, 3.0, 3.0, 1.0]
    assert both.unlabelled().tolist() == [False, True, False, False, False, True]
    with pytest.raises(ValueError, match="sample_weight must have one row per node"):
        replace(first, sample_weight=torch.ones(3))
    with pytest.raises(ValueError, match=r"sample_weight must be a vector.*int64"):
        replace(first, sample_weight=torch.ones(4, dtype=torch.long))
