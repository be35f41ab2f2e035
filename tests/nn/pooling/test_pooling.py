"""Pooling against PyG with copied weights, against loops over graphs, and a slow matching."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import Module
from torch_geometric.nn import GCNConv
from torch_geometric.nn.pool import SAGPooling as PyGSAGPooling
from torch_geometric.nn.pool import TopKPooling as PyGTopKPooling

from lgcn import Graph
from lgcn.nn.pooling import ClusterPooling, SAGPooling, TopKPooling
from lgcn.nn.pooling.matching import coarsen, match

SIZES = [5, 0, 1, 8, 3, 0]


def batch(
    sizes: list[int],
    seed: int = 0,
    *,
    weights: bool = False,
    share: float = 0.4,
    trees: bool = False,
) -> Graph:
    """Random undirected graphs side by side, in float64, without self-loops.

    In trees, no two nodes have the same neighbours and each other, so that GCN scores differ.
    """
    generator = torch.Generator().manual_seed(seed)
    graphs = []
    for size in sizes:
        adjacency = (torch.rand(size, size, generator=generator) < share).triu(1)
        if trees:
            parents = [int(torch.randint(i, (1,), generator=generator)) for i in range(1, size)]
            adjacency = torch.zeros(size, size)
            adjacency[parents, torch.arange(1, size)] = 1
        edge_index = adjacency.nonzero().t()
        weight = torch.rand(edge_index.size(1), generator=generator).double() + 0.5
        x = torch.randn(size, 4, generator=generator).double()
        graphs.append(
            Graph.from_edge_index(edge_index, size, x=x, edge_weight=weight if weights else None)
        )
    joined = Graph.concat(graphs)
    if len(graphs) == 1:
        joined = replace(joined, ptr=torch.tensor([0, sizes[0]]))
    return joined


def batch_vector(graph: Graph) -> Tensor:
    assert graph.ptr is not None
    return torch.arange(graph.num_graphs).repeat_interleave(graph.ptr.diff())


def dense(graph: Graph) -> Tensor:
    rowptr, col, weight = graph.adjacency()
    out = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    row = torch.arange(graph.num_nodes).repeat_interleave(rowptr.diff())
    out[row, col] = 1.0 if weight is None else weight.double()
    return out


def poolings() -> list[Module]:
    torch.manual_seed(0)
    return [TopKPooling(4, 0.6).double(), SAGPooling(4, 0.6).double(), ClusterPooling()]


def check_against_pyg(own: Module, theirs: Module, graph: Graph) -> None:
    assert graph.x is not None
    x, pooled, nodes = own(graph.x, graph)
    out = theirs(graph.x, graph.edge_index, batch=batch_vector(graph))
    by_node = out[4].argsort()  # PyG orders by score
    assert torch.equal(nodes, out[4][by_node])
    # GCN's normalised adjacency is made in float32.
    torch.testing.assert_close(x, out[0][by_node], rtol=1e-5, atol=1e-6)
    assert torch.equal(batch_vector(pooled), out[3][by_node])
    place = by_node.argsort()
    wanted = torch.zeros(len(nodes), len(nodes), dtype=torch.float64)
    wanted[place[out[1][1]], place[out[1][0]]] = 1
    assert torch.equal(dense(pooled), wanted)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8])  # for PyG, 1.0 is one node
@pytest.mark.parametrize("seed", range(3))
def test_top_k_is_that_of_pyg(ratio: float, seed: int) -> None:
    graph = batch([5, 1, 8, 3], seed)
    theirs = PyGTopKPooling(4, ratio).double()
    own = TopKPooling(4, ratio).double()
    own.weight.data = theirs.select.weight.data[0]
    check_against_pyg(own, theirs, graph)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.8])  # for PyG, 1.0 is one node
@pytest.mark.parametrize("seed", range(3))
def test_sagpool_is_that_of_pyg(ratio: float, seed: int) -> None:
    graph = batch([5, 1, 8, 3], seed, trees=True)
    theirs = PyGSAGPooling(4, ratio, GNN=GCNConv).double()
    theirs.select.weight.data.fill_(1)  # PyG also multiplies the score by a weight's sign
    own = SAGPooling(4, ratio).double()
    own.score.weight.data = theirs.gnn.lin.weight.data.t()
    own.score.bias.data = theirs.gnn.bias.data
    check_against_pyg(own, theirs, graph)


def test_ties_go_to_the_earlier_node() -> None:
    graph = batch([4, 3])
    pool = TopKPooling(4, 0.5).double()
    _, pooled, nodes = pool(torch.ones(7, 4).double(), graph)
    assert nodes.tolist() == [0, 1, 4, 5]
    assert pooled.ptr.tolist() == [0, 2, 4]


def test_the_gate_of_the_paper_is_a_sigmoid() -> None:
    graph = batch([4])
    assert graph.x is not None
    pool = TopKPooling(4, 1.0, gate="sigmoid").double()
    x, _, _ = pool(graph.x, graph)
    score = graph.x @ pool.weight / pool.weight.norm()
    torch.testing.assert_close(x, graph.x * score.sigmoid()[:, None])


def slow_match(graph: Graph) -> list[int]:
    matrix = dense(graph)
    degree = matrix.sum(1)
    order = sorted(range(graph.num_nodes), key=lambda i: int(graph.rowptr.diff()[i]))
    partner: dict[int, int] = {}
    for i in order:
        if i in partner:
            continue
        free = [j for j in range(graph.num_nodes) if matrix[i, j] > 0 and j not in partner]
        free = [j for j in free if j != i]
        # max() takes the first of equal ones
        scores = {j: float(matrix[i, j] * (1 / degree[i] + 1 / degree[j])) for j in free}
        best = max(free, key=scores.__getitem__) if free else i
        partner[i], partner[best] = best, i
    return [partner[i] for i in range(graph.num_nodes)]


@pytest.mark.parametrize("weights", [False, True])
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(0, 8), max_size=5), seed=st.integers(0, 99))
def test_matching_equals_the_slow_one(weights: bool, sizes: list[int], seed: int) -> None:
    graph = batch(sizes, seed, weights=weights) if sizes else batch([0])
    found = match(graph)
    assert found.tolist() == slow_match(graph)
    assert torch.equal(found[found], torch.arange(graph.num_nodes))


@pytest.mark.parametrize("reduce", ["max", "mean"])
@pytest.mark.parametrize("weights", [False, True])
def test_cluster_pooling_equals_sums_over_the_dense_adjacency(reduce: str, weights: bool) -> None:
    graph = batch(SIZES, weights=weights)
    assert graph.x is not None
    x, pooled, cluster = ClusterPooling(reduce)(graph.x, graph)  # type: ignore[arg-type]
    member = torch.nn.functional.one_hot(cluster).double()
    wanted = (member.t() @ dense(graph) @ member).fill_diagonal_(0)
    torch.testing.assert_close(dense(pooled), wanted if weights else (wanted > 0).double())
    for number in range(pooled.num_nodes):
        rows = graph.x[cluster == number]
        merged = rows.max(0).values if reduce == "max" else rows.mean(0)
        torch.testing.assert_close(x[number], merged)
    # The coarse nodes of a graph lie side by side.
    of_node = torch.zeros(pooled.num_nodes, dtype=torch.long)
    of_node[cluster] = batch_vector(graph)
    assert torch.equal(of_node, batch_vector(pooled))


def test_a_coarse_graph_is_computed_once() -> None:
    graph = batch(SIZES)
    first, again = coarsen(graph), coarsen(graph)
    assert first.cluster is again.cluster
    assert first.graph.col is again.graph.col
    assert first.graph._adjacency is again.graph._adjacency


@pytest.mark.parametrize("number", range(3))
@settings(max_examples=30)
@given(sizes=st.lists(st.integers(0, 8), min_size=1, max_size=5), seed=st.integers(0, 9))
def test_a_batch_is_pooled_as_its_graphs_alone(number: int, sizes: list[int], seed: int) -> None:
    graph, pool = batch(sizes, seed), poolings()[number]
    assert graph.x is not None
    x, pooled, _ = pool(graph.x, graph)
    assert pooled.num_graphs == len(sizes)
    blocks = [pool(one.x, one) for one in graph.separate()]
    torch.testing.assert_close(x, torch.cat([block[0] for block in blocks]))
    assert pooled.ptr.diff().tolist() == [len(block[0]) for block in blocks]
    matrix = torch.block_diag(*[dense(block[1]) for block in blocks])
    assert torch.equal(dense(pooled), matrix.reshape(pooled.num_nodes, pooled.num_nodes))


@pytest.mark.parametrize("number", range(2))
def test_the_order_of_nodes_does_not_matter_without_ties(number: int) -> None:
    graph, pool = batch([9], share=0.5), poolings()[number]
    assert graph.x is not None
    order = torch.randperm(9)
    place = order.argsort()
    other = Graph.from_edge_index(place[graph.edge_index], 9, x=graph.x[order])
    x, pooled, nodes = pool(graph.x, graph)
    other_x, other_pooled, other_nodes = pool(other.x, other)
    assert torch.equal(order[other_nodes].sort().values, nodes)
    back = order[other_nodes].argsort()
    torch.testing.assert_close(other_x[back], x)
    assert torch.equal(dense(other_pooled)[back][:, back], dense(pooled))


@pytest.mark.parametrize("number", range(3))
def test_gradients(number: int) -> None:
    graph, pool = batch(SIZES), poolings()[number]
    assert graph.x is not None
    if number == 1:  # nodes with the same neighbours have one score: steps would select others
        pool.ratio = 1.0
    x = graph.x.clone().requires_grad_()
    weights = tuple(pool.parameters())

    def of(x: Tensor, *_: Tensor) -> Tensor:
        out: Tensor = pool(x, graph)[0]
        return out

    assert torch.autograd.gradcheck(of, (x, *weights))


@pytest.mark.parametrize("number", range(3))
def test_graphs_without_nodes_or_edges(number: int) -> None:
    pool = poolings()[number]
    empty = Graph(torch.tensor([0]), torch.empty(0, dtype=torch.long), ptr=torch.tensor([0, 0]))
    x, pooled, _ = pool(torch.ones(0, 4).double(), empty)
    assert (x.shape, pooled.num_graphs, pooled.num_nodes) == ((0, 4), 1, 0)
    edgeless = batch([3, 1], share=0)
    assert edgeless.x is not None
    x, pooled, _ = pool(edgeless.x, edgeless)
    assert pooled.num_edges == 0
    assert pooled.ptr.diff().tolist() == [2, 1] if number < 2 else [3, 1]


@pytest.mark.parametrize("number", range(3))
def test_weights_and_32_bit_numbers_pass_through(number: int) -> None:
    graph, pool = batch(SIZES, weights=True), poolings()[number]
    assert graph.x is not None
    short = Graph(graph.rowptr.int(), graph.col.int(), edge_weight=graph.edge_weight, ptr=graph.ptr)
    x, pooled, _ = pool(graph.x, graph)
    other_x, other, _ = pool(graph.x, short)
    torch.testing.assert_close(other_x, x)
    assert torch.equal(dense(other), dense(pooled))
    assert pooled.edge_weight is not None
    one = Graph(graph.rowptr, graph.col)  # without ptr, all nodes are one graph
    assert pool(graph.x, one)[1].num_graphs == 1


def test_wrong_arguments_are_named() -> None:
    for kind in (TopKPooling, SAGPooling):
        for wrong in (0, 1.5, -1):
            with pytest.raises(ValueError, match=f"ratio must be above 0 .* got {wrong}"):
                kind(4, wrong)
        with pytest.raises(ValueError, match="gate must be tanh or sigmoid, got 'relu'"):
            kind(4, gate="relu")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="reduce must be max or mean, got 'sum'"):
        ClusterPooling("sum")  # type: ignore[arg-type]


def test_text_forms() -> None:
    assert repr(TopKPooling(4, 0.5)) == "TopKPooling(4, ratio=0.5, gate='tanh')"
    assert repr(ClusterPooling()) == "ClusterPooling(max)"
    assert "ratio=0.5" in repr(SAGPooling(4))


def test_resetting_draws_new_weights() -> None:
    for pool in poolings()[:2]:
        before = [weight.clone() for weight in pool.parameters()]
        pool.reset_parameters()  # type: ignore[operator]
        assert not torch.equal(before[0], next(pool.parameters()))
