"""GAT against PyG's layers and against attention written out."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv

from lgcn import Graph
from lgcn.paper.baselines.gat.network import GAT

from .checks import (
    a_reset_draws_all_weights,
    parameters,
    sparse_features_equal_dense_ones,
    trained_and_loaded,
)

RandomGraph = Callable[..., Graph]


def test_equals_pyg(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GAT(5, 3, hidden_channels=4, num_layers=3, heads=2, out_heads=6).eval()
    layers = [
        GATConv(5, 4, heads=2),
        GATConv(8, 4, heads=2, residual=True),
        GATConv(8, 3, heads=6, concat=False),
    ]
    h = graph.x
    for number, (ours, theirs) in enumerate(zip(model.layers, layers, strict=True)):
        weights = {key.replace("lin.linear.", "lin."): w for key, w in ours.state_dict().items()}
        theirs.load_state_dict(weights)
        h = theirs(F.elu(h) if number else h, graph.edge_index)
    torch.testing.assert_close(model(graph.x, graph), h)


def test_equals_attention_written_out(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GAT(5, 3, num_layers=1, out_heads=2).eval()
    (layer,) = model.layers
    torch.nn.init.normal_(layer.bias)
    x = (graph.x @ layer.lin.linear.weight.t()).view(12, 2, 3)
    expected = torch.zeros(12, 3)
    for i in range(12):
        others = [i, *graph.col[graph.rowptr[i] : graph.rowptr[i + 1]].tolist()]
        for head in range(2):
            raw = [
                x[j, head] @ layer.att_src[0, head] + x[i, head] @ layer.att_dst[0, head]
                for j in others
            ]
            share = F.leaky_relu(torch.stack(raw), 0.2).softmax(0)
            expected[i] += (share[:, None] * x[others, head]).sum(0) / 2
    torch.testing.assert_close(model(graph.x, graph), expected + layer.bias)


def test_shapes(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = GAT(5, 3)
    assert model(graph.x, graph).shape == (12, 3)
    assert parameters(model.first_layer) == 5 * 64 + 2 * 64 + 64
    assert parameters(model) == (5 * 64 + 3 * 64) + (64 * 3 + 3 * 3)
    assert repr(model.layers[1]) == "_Layer(64, 3, heads=1)"


def test_layers_in_the_middle_have_a_skip_connection() -> None:
    layers = GAT(5, 3, num_layers=4).layers
    assert [layer.res is not None for layer in layers] == [False, True, True, False]


@pytest.mark.parametrize("rates", [(0.6, 0.0), (0.0, 0.6)])
def test_features_and_attention_are_dropped(
    random_graph: RandomGraph, rates: tuple[float, float]
) -> None:
    graph = random_graph()
    model = GAT(5, 3, dropout=rates[0], adj_dropout=rates[1])
    torch.manual_seed(0)
    assert not torch.equal(model(graph.x, graph), model(graph.x, graph))
    model.eval()
    assert torch.equal(model(graph.x, graph), model(graph.x, graph))


def test_sparse_features(random_graph: RandomGraph) -> None:
    sparse_features_equal_dense_ones(GAT(5, 3), random_graph())


def test_reset() -> None:
    assert a_reset_draws_all_weights(GAT(5, 3, num_layers=3))


def test_trains(tmp_path: Path) -> None:
    record = trained_and_loaded(tmp_path, model="gat", heads=4, dropout=0.3, adj_dropout=0.3)
    assert record["test_score"] > 0.75  # chance is 1/3


def test_no_layers_are_refused() -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        GAT(5, 3, num_layers=0)
