"""GraphSAGE with a read-out against PyG's layers and pooling, and against loops over nodes."""

import pytest
import torch
from torch_geometric.nn import SAGEConv, global_max_pool

from lgcn.paper.baselines.graphsage.network import GraphSAGE

from .checks import parameters
from .whole_graphs import as_pyg, features, some_batch, some_graph


@pytest.mark.parametrize("aggregator", ["mean", "max", "sum"])
def test_it_equals_pygs_layers_and_pooling(aggregator: str) -> None:
    graph = some_batch(4, 1, 7, 5)
    model = GraphSAGE(5, 3, hidden_channels=6, num_layers=2, aggregator=aggregator).eval()
    batch = as_pyg(graph)
    h, levels = batch.x, []
    for width, conv in zip((5, 6), model.convs, strict=True):
        theirs = SAGEConv(width, 6, aggregator, project=aggregator == "max")
        theirs.load_state_dict(conv.state_dict())
        h = theirs(h, batch.edge_index).relu()
        levels.append(h)
    pooled = global_max_pool(torch.cat(levels, dim=1), batch.batch)
    torch.testing.assert_close(model.embed(features(graph), graph), pooled)
    scores = model.classifier.out(model.classifier.hidden(pooled).relu())
    torch.testing.assert_close(model(features(graph), graph), scores)


@pytest.mark.parametrize("aggregator", ["mean", "max", "sum"])
def test_a_layer_equals_loops_over_nodes(aggregator: str) -> None:
    graph, model = some_graph(8), GraphSAGE(5, 3, num_layers=1, aggregator=aggregator).eval()
    (conv,) = model.convs
    x = features(graph)
    rows = []
    for node in range(8):
        near = x[graph.col[graph.rowptr[node] : graph.rowptr[node + 1]]]
        if aggregator == "max":
            near = (near @ conv.lin.weight.t() + conv.lin.bias).clamp(min=0)
            near = near.max(0).values if len(near) else x.new_zeros(5)
        else:
            near = near.sum(0) / (max(len(near), 1) if aggregator == "mean" else 1)
        rows.append(conv.lin_l(near) + conv.lin_r(x[node]))
    expected = torch.stack(rows).clamp(min=0).max(0).values[None]
    torch.testing.assert_close(model.embed(x, graph), expected)


def test_its_size() -> None:
    layer = 64 * 64 * 2 + 64
    project = 64 * 64 + 64
    first = (5 * 64) * 2 + 64
    classifier = 3 * 64 * 64 + 64 + 64 * 2 + 2
    assert parameters(GraphSAGE(5, 2, aggregator="sum")) == first + 2 * layer + classifier
    with_max = first + 5 * 5 + 5 + 2 * (layer + project) + classifier
    assert parameters(GraphSAGE(5, 2)) == with_max


def test_an_unknown_aggregator_is_named() -> None:
    with pytest.raises(ValueError, match="aggregator must be one of mean, max, sum, got 'lstm'"):
        GraphSAGE(5, 3, aggregator="lstm")
