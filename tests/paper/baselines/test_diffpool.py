"""DiffPool against PyG's dense layers, on graphs that are filled up to the same size."""

import time
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.nn.dense import DenseSAGEConv, dense_diff_pool
from torch_geometric.utils import to_dense_adj, to_dense_batch

from lgcn import Graph, load_graphs
from lgcn.errors import UsageError
from lgcn.nn.batch_norm import BatchNorm
from lgcn.paper.baselines.diffpool import CLUSTERS, MOST_CLUSTERS, clusters_of
from lgcn.paper.baselines.diffpool.coarsening import SparseGraphs
from lgcn.paper.baselines.diffpool.network import Convolution, Convolutions, DiffPool
from lgcn.paper.systems import SYSTEMS
from lgcn.training import Settings

from .checks import parameters
from .whole_graphs import FEATURES, as_pyg, features, in_use, side_by_side, some_batch, some_graph


def network(**given: Any) -> DiffPool:
    torch.manual_seed(0)
    small = {"hidden_channels": 6, "embedding_channels": 4, "pool_clusters": 5}
    return in_use(DiffPool(FEATURES, 3, **{**small, **given}).double())  # type: ignore[return-value]


def norms_alone_in_eval(model: DiffPool) -> DiffPool:
    """The model in training mode, but independent of the zeros that fill up PyG's graphs."""
    model.train()
    for module in model.modules():
        if isinstance(module, BatchNorm):
            module.eval()
    return model


def dense_batch(graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
    """Features, adjacency matrices and the mask of the nodes, filled up to the largest graph."""
    pyg, count = as_pyg(graph), graph.num_graphs
    x, mask = to_dense_batch(pyg.x.double(), pyg.batch, batch_size=count)
    return x, to_dense_adj(pyg.edge_index, pyg.batch, batch_size=count).double(), mask


def convolved(part: Convolutions, x: Tensor, adjacency: Tensor, mask: Tensor | None) -> Tensor:
    levels = []
    for place, conv in enumerate(part.convs):
        layer = DenseSAGEConv(conv.own.in_channels, conv.own.out_channels).double()
        layer.lin_rel, layer.lin_root = conv.neighbours, conv.own
        x = layer(x, adjacency, mask)
        if place < 2:
            x = part.norms[place](x.relu().flatten(0, 1)).view_as(x)
        levels.append(x)
    return torch.cat(levels, dim=2)


def by_pyg(model: DiffPool, graph: Graph) -> tuple[Tensor, Tensor]:
    """The scores and the extra loss with PyG's layers."""
    x, adjacency, filled = dense_batch(graph)
    mask: Tensor | None = filled
    seen, losses = [], []
    for pooling in model.poolings:
        scores = pooling.scores(convolved(pooling.assign, x, adjacency, mask))
        x = convolved(pooling.embed, x, adjacency, mask)
        x, adjacency, *extra = dense_diff_pool(x, adjacency, scores, mask)
        mask = None
        seen.append(x.max(1).values)
        losses += extra
    seen.append(convolved(model.last, x, adjacency, None).max(1).values)
    hidden = model.classifier.hidden(torch.cat(seen, dim=1)).relu()
    return model.classifier.out(hidden), torch.stack(losses).sum()


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 14), min_size=1, max_size=5),
    layers=st.integers(1, 3),
    clusters=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_it_equals_pygs_dense_layers(
    sizes: list[int], layers: int, clusters: int, seed: int
) -> None:
    graph = some_batch(*sizes, seed=seed)
    x = features(graph).double()
    model = network(num_layers=layers, pool_clusters=clusters)
    torch.testing.assert_close(model(x, graph), by_pyg(model, graph)[0])

    results = []
    for pass_ in (lambda: (model(x, graph), model.take_extra_loss()), lambda: by_pyg(model, graph)):
        norms_alone_in_eval(model).zero_grad()
        scores, extra = pass_()
        (scores.square().sum() + extra).backward()
        results.append([scores, extra, *[p.grad for p in model.parameters()]])
    for own, theirs in zip(*results, strict=True):
        torch.testing.assert_close(own, theirs, rtol=1e-5, atol=1e-6)


def test_with_graphs_of_one_size_batch_norm_is_the_same_too() -> None:
    graph, model = some_batch(9, 9, 9), network().train()
    own = model(features(graph).double(), graph)
    torch.testing.assert_close(own, by_pyg(model, graph)[0])


def test_the_extra_loss_in_single_precision() -> None:
    graph, model = some_batch(200, 3, 150), norms_alone_in_eval(network())
    _, wanted = by_pyg(model, graph)
    model.float()(features(graph), graph)
    assert float(model.take_extra_loss().detach()) == pytest.approx(
        float(wanted.detach()), rel=1e-5
    )


def test_a_perfect_assignment_has_no_link_loss_and_finite_gradients() -> None:
    # Two cliques with self-loops; the nodes of each have a cluster of their own.
    belongs = torch.tensor([[1.0, 0]] * 3 + [[0, 1.0]] * 2)
    matrix = (belongs @ belongs.t()).to_sparse_csr()
    cliques = Graph(matrix.crow_indices(), matrix.col_indices(), x=torch.ones(5, 1))
    scores = (1e4 * belongs).requires_grad_()
    pooled = SparseGraphs(cliques).pool(features(cliques), scores, with_loss=True)
    assert pooled.loss is not None
    assert float(pooled.loss.detach()) == pytest.approx(0, abs=1e-9)
    assert torch.equal(pooled.x, torch.tensor([[[3.0], [2.0]]]))
    assert torch.equal(pooled.adjacency, torch.tensor([[[9.0, 0], [0, 4.0]]]))
    (gradient,) = torch.autograd.grad(pooled.loss, scores)
    assert gradient.isfinite().all()


def test_a_convolution_is_that_of_a_node_and_the_mean_of_its_neighbours() -> None:
    graph, layer = some_graph(8), Convolution(FEATURES, 3)
    matrix = torch.zeros(8, 8)
    matrix[tuple(graph.edge_index)] = 1
    mean = matrix @ features(graph) / matrix.sum(1, keepdim=True).clamp(min=1)
    expected = layer.own(features(graph)) + mean @ layer.neighbours.weight.t()
    torch.testing.assert_close(layer(features(graph), SparseGraphs(graph).mean), expected)


def test_its_size() -> None:
    def gnn(inputs: int, out: int) -> int:
        own_and_neighbours = 2 * (inputs * 64 + 64 * 64 + 64 * out)
        return own_and_neighbours + 64 + 64 + out + 2 * (64 + 64)

    def pooling(inputs: int, clusters: int) -> int:
        linear = (128 + clusters) * clusters + clusters
        return gnn(inputs, 128) + gnn(inputs, clusters) + linear

    width = 64 + 64 + 128
    classifier = 3 * width * 50 + 50 + 50 * 2 + 2
    size = pooling(5, 28) + pooling(width, 7) + gnn(width, 128) + classifier
    assert parameters(DiffPool(5, 2)) == size


def test_the_clusters_of_a_pooling_are_a_quarter_of_those_before() -> None:
    widths = [p.scores.out_channels for p in network(num_layers=4, pool_clusters=18).poolings]
    assert widths == [18, 5, 2, 1]


def test_the_extra_loss_can_be_taken_once_after_a_pass_in_training() -> None:
    graph, model = some_batch(9, 4), network()
    x = features(graph).double()
    for training in (False, True):
        model.train(training)(x, graph)
        if training:
            assert model.take_extra_loss().requires_grad
        with pytest.raises(RuntimeError, match=r"take_extra_loss\(\) .* training mode"):
            model.take_extra_loss()
    model.train()(x, graph)
    model.eval()(x, graph)  # forgets what nobody has taken
    with pytest.raises(RuntimeError, match=r"take_extra_loss\(\)"):
        model.take_extra_loss()


@pytest.mark.parametrize("sizes", [(), (0,), (0, 0)])
def test_the_extra_loss_without_nodes_is_zero(sizes: tuple[int, ...]) -> None:
    graph = some_batch(*sizes) if sizes else some_graph(0)
    model = network(num_layers=1).train()
    model(features(graph).double(), graph)
    assert float(model.take_extra_loss().detach()) == pytest.approx(0)


def ring(size: int) -> Graph:
    nodes = torch.arange(size)
    return Graph.from_edge_index(
        torch.stack([nodes, (nodes + 1) % size]), size, x=torch.randn(size, FEATURES)
    )


def test_memory_grows_with_nodes_and_not_with_pairs_of_nodes() -> None:
    graph = side_by_side([ring(5000), *[ring(10)] * 19])
    model, largest = DiffPool(FEATURES, 2, pool_clusters=40).train(), 0

    def note(kept: Tensor) -> Tensor:
        nonlocal largest
        largest = max(largest, kept.numel())
        return kept

    started = time.perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(note, lambda kept: kept):
        scores = model(features(graph), graph)
        loss = scores.square().sum() + model.take_extra_loss()
    loss.backward()
    assert time.perf_counter() - started < 10  # 0.2 seconds on one core
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    assert largest < graph.num_nodes * 400  # features and clusters; 25 million are pairs
    assert largest > 0


@pytest.mark.usefixtures("data_root")
@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "IMDB-MULTI"])
def test_the_listed_clusters_are_those_of_the_data(name: str) -> None:
    largest = int(load_graphs(name).sizes.max())
    assert CLUSTERS[name] == (clusters_of(largest, 1), clusters_of(largest, 2))
    assert SYSTEMS["diffpool"].on[name] == {"pool_clusters": CLUSTERS[name][1]}


def test_the_number_of_clusters() -> None:
    assert [clusters_of(n, 1) for n in (1, 10, 11, 620, 5748)] == [1, 1, 2, 62, MOST_CLUSTERS]
    assert [clusters_of(n, 3) for n in (1, 4, 5, 620, 5748)] == [1, 1, 2, 155, MOST_CLUSTERS]


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="pool_clusters must be at least 1, got 0"):
        DiffPool(5, 3, pool_clusters=0)
    with pytest.raises(UsageError, match=r"pool_clusters must .* at least 1, got 0"):
        Settings.create(model="diffpool", pool_clusters=0)
    with pytest.raises(ValueError, match="largest must be at least 1, got 0"):
        clusters_of(0, 1)
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        clusters_of(9, 0)


@pytest.mark.usefixtures("data_root")
def test_its_preset_is_used_on_a_set() -> None:
    config = Settings.create(dataset="MUTAG", preset="diffpool", **SYSTEMS["diffpool"].on["MUTAG"])
    assert config.model.options()["pool_clusters"] == 7
    assert config.sampling.graphs_per_batch == 8
