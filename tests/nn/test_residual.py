"""The deep residual network, against the same network written with torch and PyG."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.nn.layerwise import layerwise
from lgcn.nn.residual import AGGREGATIONS, ResidualLGCN
from lgcn.training import Settings, train
from tests.training.graphs import several_graphs, small_graph

RandomGraph = Callable[..., Graph]


def test_it_is_a_residual_gcn_of_pyg(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = ResidualLGCN(5, 3, hidden_channels=6, num_layers=3, aggregate="gcn", dropout=0.0)

    def reference(x: Tensor) -> Tensor:
        h = F.relu(x @ model.embedding.weight + model.embedding.bias)
        for layer in model.layers:
            conv = GCNConv(6, 6, bias=False)
            conv.lin.weight.data = layer.conv.weight.data.t().contiguous()
            h = conv(h, graph.edge_index, graph.edge_weight) + layer.linear(h)
            h = F.batch_norm(h, None, None, layer.norm.weight, layer.norm.bias, training=True)
            h = F.relu(h)
        return h @ model.classifier.weight + model.classifier.bias

    torch.testing.assert_close(model(graph.x, graph), reference(graph.x), rtol=1e-4, atol=1e-5)


def test_without_neighbours_it_is_a_perceptron(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = ResidualLGCN(5, 3, hidden_channels=6, num_layers=1, aggregate="none", norm="none")
    model.eval()
    h = F.relu(graph.x @ model.embedding.weight + model.embedding.bias)
    h = F.relu(model.layers[0].linear(h))
    expected = h @ model.classifier.weight + model.classifier.bias
    torch.testing.assert_close(model(graph.x, graph), expected)


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("aggregate", AGGREGATIONS)
@pytest.mark.parametrize("memory", ["1GB", 40_000, 1])
def test_layer_by_layer_it_gives_the_same(
    random_graph: RandomGraph, aggregate: str, norm: str, memory: str | int
) -> None:
    torch.manual_seed(0)
    graph = random_graph(num_nodes=40)
    model = ResidualLGCN(5, 3, hidden_channels=8, num_layers=2, aggregate=aggregate, norm=norm, k=3)
    model(graph.x, graph)  # running averages
    model.eval()
    assert_same = torch.testing.assert_close
    found = layerwise(model, graph, memory=memory)
    assert_same(found, model(graph.x, graph), rtol=1e-4, atol=1e-5)
    for layer in (0, 1, -1):
        embedded = layerwise(model, graph, layer=layer, memory=memory)
        assert_same(embedded, model.embed(graph.x, graph, layer=layer), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", ["whole", "subgraph"])
@pytest.mark.parametrize("aggregate", AGGREGATIONS)
def test_it_trains(aggregate: str, training: str) -> None:
    settings = Settings.create(
        model="residual",
        dataset="tables",
        aggregate=aggregate,
        num_layers=2,
        hidden_channels=16,
        max_epochs=20,
        training=training,
        max_nodes=100,
        num_workers=0,
    )
    assert settings.preset == "residual"
    result = train(small_graph(), settings)
    assert result.record["val_score"] > 0.6  # three classes


def test_it_trains_on_several_graphs_and_labels() -> None:
    settings = Settings.create(
        model="residual", dataset="tables", num_layers=1, max_epochs=3, training="whole"
    )
    assert train(several_graphs(), settings).record["metric"] == "micro_f1"


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match=r"aggregate must be one of .* got 'sum'"):
        ResidualLGCN(2, 2, aggregate="sum")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"norm must be one of .* got 'group'"):
        ResidualLGCN(2, 2, norm="group")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"layer must be from 0 .* to 1, .* got 2"):
        ResidualLGCN(2, 2, num_layers=1).embed(
            torch.ones(1, 2), Graph.as_given(torch.zeros(2, 0, dtype=torch.long), 1), layer=2
        )


def test_new_weights() -> None:
    model = ResidualLGCN(4, 2, num_layers=2, aggregate="attention", norm="layer")
    before = {name: value.clone() for name, value in model.named_parameters()}
    model.reset_parameters()
    for name, value in model.named_parameters():
        if value.dim() == 2:
            assert not torch.equal(value, before[name]), name
