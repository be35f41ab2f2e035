"""GraphSAGE against loops over neighbours, on whole graphs and on sampled neighbours."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn.aggr import LSTMAggregation

from lgcn import Graph
from lgcn.paper.baselines.sage import AGGREGATORS
from lgcn.paper.baselines.sage.network import GraphSAGE, LastState
from lgcn.sampling import NeighborLoader
from lgcn.sampling.alternatives.neighbors import SampledGraph

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)

RandomGraph = Callable[..., Graph]


def aggregated(
    layer: torch.nn.Module, aggregator: str, x: Tensor, i: int, others: Tensor
) -> Tensor:
    """What a layer's linear map gets of the neighbours of node i."""
    if aggregator == "gcn":
        rows = [x[i], *[x[j] for j in others if j != i]]
        return torch.stack(rows).mean(0)
    if aggregator == "pool":
        project = layer.project
        width = project.out_channels
        mapped = [F.relu(project.weight @ x[j] + project.bias) for j in others]
        return torch.stack(mapped).amax(0) if len(others) else torch.zeros(width)
    if aggregator == "lstm":
        lstm = layer.neighbors.aggr_module.lstm
        if len(others) == 0:
            return torch.zeros(lstm.hidden_size)
        return lstm(x[others][None])[0][0, -1]
    return x[others].mean(0) if len(others) else torch.zeros(x.size(1))


def slow_scores(model: GraphSAGE, graph: Graph) -> Tensor:
    *layers, classifier = model.layers
    x = graph.x
    for number, layer in enumerate(layers):
        rows = []
        for i in range(graph.num_nodes):
            others = graph.col[graph.rowptr[i] : graph.rowptr[i + 1]].long()
            out = layer.neighbors.lin_l.weight @ aggregated(layer, model.aggregator, x, i, others)
            own = [] if layer.own is None else [layer.own.weight @ x[i]]
            rows.append(torch.cat([*own, out]))
        x = torch.stack(rows)
        if number < len(layers) - 1:
            x = x.relu()
    x = x / x.norm(dim=1, keepdim=True).clamp(min=1e-12)
    return x @ classifier.weight.t() + classifier.bias


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("options", [{}, {"self_loops": True, "density": 0.1}])
def test_equals_loops_over_neighbours(
    random_graph: RandomGraph, aggregator: str, options: dict[str, float]
) -> None:
    graph = random_graph(**options)
    model = GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=7, num_layers=3).eval()
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.5)
    torch.testing.assert_close(model(graph.x, graph), slow_scores(model, graph))


@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("fanout", [(2,), (3, 2), (2, 2, 2)])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_roots_are_scored_as_without_leaving_nodes_out(
    random_graph: RandomGraph, aggregator: str, fanout: tuple[int, ...], num_layers: int
) -> None:
    """A plain graph of the same rows computes every layer for every node."""
    graph = random_graph(40, 0.15)
    model = GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=6, num_layers=num_layers)
    for batch in NeighborLoader(graph, n_init=15, fanout=fanout, num_workers=0):
        assert isinstance(batch, SampledGraph)
        scores = model(batch.x, batch)
        plain = Graph(batch.rowptr, batch.col)
        assert scores.shape == (batch.hops[0], 3)
        torch.testing.assert_close(scores, model(batch.x, plain)[: batch.hops[0]])


@pytest.mark.parametrize("aggregator", ["gcn", "mean", "pool"])
def test_with_all_neighbours_a_batch_scores_as_the_graph(
    random_graph: RandomGraph, aggregator: str
) -> None:
    graph = random_graph(30, 0.1)
    model = GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=6)
    for batch in NeighborLoader(graph, n_init=7, fanout=(100, 100), num_workers=0):
        expected = model(graph.x, graph)[batch.n_id[: batch.hops[0]]]
        torch.testing.assert_close(model(batch.x, batch), expected)


def test_an_lstm_reads_neighbours_in_the_order_in_which_they_were_drawn(
    random_graph: RandomGraph,
) -> None:
    graph = random_graph(30, 0.3)
    model = GraphSAGE(5, 3, aggregator="lstm", hidden_channels=6)
    batch = next(iter(NeighborLoader(graph, n_init=7, fanout=(5, 5), num_workers=0)))
    assert (batch.n_id[batch.col[:5].long()].diff() < 0).any()  # those of the graph rise
    expected = slow_scores(model, batch)[: batch.hops[0]]
    torch.testing.assert_close(model(batch.x, batch), expected)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    for aggregator in AGGREGATORS:
        model = GraphSAGE(5, 3, aggregator=aggregator)
        assert model(graph.x, graph).shape == (12, 3)
    mean = GraphSAGE(5, 3)
    assert parameters(mean.first_layer) == 2 * 5 * 128
    assert parameters(mean) == 2 * 5 * 128 + 2 * 256 * 128 + 256 * 3 + 3
    gcn = GraphSAGE(5, 3, aggregator="gcn")
    assert parameters(gcn) == 5 * 256 + 256 * 256 + 256 * 3 + 3
    pool = GraphSAGE(5, 3, aggregator="pool").first_layer
    assert parameters(pool) == 5 * 128 + (5 * 512 + 512) + 512 * 128
    lstm = GraphSAGE(5, 3, aggregator="lstm").first_layer
    assert parameters(lstm) == 5 * 128 + 4 * 128 * (5 + 128 + 2) + 128 * 128
    assert repr(mean.layers[1].neighbors) == "SAGEConv(256, 128, aggr=mean)"


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_sparse_features(random_graph: RandomGraph, aggregator: str) -> None:
    model = GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=8)
    sparse_features_equal_dense_ones(model, random_graph())


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_sparse_features_of_sampled_neighbors(random_graph: RandomGraph, aggregator: str) -> None:
    graph = random_graph()
    model = GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=8).eval()
    for batch in NeighborLoader(graph, n_init=5, fanout=(2, 2), num_workers=0):
        assert batch.x is not None
        expected = model(batch.x, batch)
        torch.testing.assert_close(model(batch.x.to_sparse_csr(), batch), expected)


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_reset(aggregator: str) -> None:
    assert a_reset_draws_all_weights(GraphSAGE(5, 3, aggregator=aggregator, hidden_channels=8))


def test_dropout_is_of_every_layers_input(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GraphSAGE(5, 3, dropout=0.5)
    torch.manual_seed(0)
    assert not torch.equal(model(graph.x, graph), model(graph.x, graph))
    model.eval()
    assert torch.equal(model(graph.x, graph), model(graph.x, graph))


@pytest.mark.parametrize("aggregator", AGGREGATORS)
def test_trains(tmp_path: Path, aggregator: str) -> None:
    record = trained_and_loaded(
        tmp_path,
        model="sage",
        aggregator=aggregator,
        hidden_channels=16,
        max_epochs=10,
        n_init=10,
        fanout=[5, 5],
    )
    assert record["steps"] == 30
    assert record["test_score"] > 0.75  # chance is 1/3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"aggregator": "sum"}, r"aggregator must .*gcn, mean, pool, lstm, got 'sum'"),
        ({"num_layers": 0}, "num_layers must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GraphSAGE(5, 3, **options)


def test_last_state_is_that_of_an_lstm_over_each_row() -> None:
    torch.manual_seed(0)
    aggregation, x = LastState(4, 6), torch.randn(9, 4, requires_grad=True)
    index = torch.tensor([1, 1, 1, 2, 4, 4, 4, 4, 5])
    out = aggregation(x, index, dim_size=7)
    for node in range(7):
        row = x[index == node]
        expected = aggregation.lstm(row[None])[0][0, -1] if len(row) else torch.zeros(6)
        torch.testing.assert_close(out[node], expected)
    (grad,) = torch.autograd.grad(out.square().sum(), x)
    rows = [x[index == node] for node in (1, 2, 4, 5)]
    total = sum(aggregation.lstm(row[None])[0][0, -1].square().sum() for row in rows)
    torch.testing.assert_close(grad, torch.autograd.grad(total, x)[0])


def test_last_state_equals_pyg_where_all_rows_are_as_long() -> None:
    ours, theirs = LastState(4, 6), LSTMAggregation(4, 6)
    theirs.load_state_dict(ours.state_dict())
    x, index = torch.randn(12, 4), torch.arange(4).repeat_interleave(3)
    torch.testing.assert_close(ours(x, index), theirs(x, index))


def test_last_state_of_no_neighbours_at_all() -> None:
    out = LastState(4, 6)(torch.empty(0, 4), torch.empty(0, dtype=torch.long), dim_size=3)
    assert torch.equal(out, torch.zeros(3, 6))


def test_last_state_needs_rows_in_order() -> None:
    with pytest.raises(ValueError, match="not sorted"):
        LastState(4, 6)(torch.randn(3, 4), torch.tensor([0, 1, 0]))
