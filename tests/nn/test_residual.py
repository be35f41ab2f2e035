"""The deep residual network, against the same network written with torch and PyG."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GCNConv

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.nn.layerwise import layerwise
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.residual import AGGREGATIONS, ResidualLGCN
from lgcn.training import Settings, train
from lgcn.training.groups import ResidualSettings
from tests.training.graphs import several_graphs, small_graph

RandomGraph = Callable[..., Graph]
VARIANTS: list[dict[str, Any]] = [
    *({"aggregate": kind} for kind in AGGREGATIONS),
    {"mean": False},
    {"cnn": "depthwise"},
    {"cnn": "depthwise", "mean": False},
]


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
@pytest.mark.parametrize("options", VARIANTS, ids=str)
@pytest.mark.parametrize("memory", ["1GB", 40_000, 1])
def test_layer_by_layer_it_gives_the_same(
    random_graph: RandomGraph, options: dict[str, Any], norm: str, memory: str | int
) -> None:
    torch.manual_seed(0)
    graph = random_graph(num_nodes=40)
    model = ResidualLGCN(5, 3, hidden_channels=8, num_layers=2, norm=norm, k=3, **options)
    deviate(model)
    model(graph.x, graph)  # running averages
    model.eval()
    assert_same = torch.testing.assert_close
    found = layerwise(model, graph, memory=memory)
    assert_same(found, model(graph.x, graph), rtol=1e-4, atol=1e-5)
    for layer in (0, 1, -1):
        embedded = layerwise(model, graph, layer=layer, memory=memory)
        assert_same(embedded, model.embed(graph.x, graph, layer=layer), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("training", ["whole", "subgraph"])
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_it_trains(options: dict[str, Any], training: str) -> None:
    settings = Settings.create(
        model="residual",
        dataset="tables",
        num_layers=2,
        hidden_channels=16,
        max_epochs=60,
        training=training,
        max_nodes=100,
        num_workers=0,
        **options,
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
    with pytest.raises(ValueError, match=r"aggregate must be one of .* got 'median'"):
        ResidualLGCN(2, 2, aggregate="median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"cnn must be one of .* got 'double'"):
        ResidualLGCN(2, 2, cnn="double")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"norm must be one of .* got 'group'"):
        ResidualLGCN(2, 2, norm="group")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"layer must be from 0 .* to 1, .* got 2"):
        ResidualLGCN(2, 2, num_layers=1).embed(
            torch.ones(1, 2), Graph.as_given(torch.zeros(2, 0, dtype=torch.long), 1), layer=2
        )


def deviate(model: ResidualLGCN) -> None:
    """Gives kernels that start as the mean weights of their own."""
    for layer in model.layers:
        if isinstance(layer.conv, MappedLGConv):
            torch.nn.init.normal_(layer.conv.lgcl.cnn.weight)


def test_a_depthwise_lgcl_starts_as_the_mean_and_has_few_weights_more(
    random_graph: RandomGraph,
) -> None:
    graph, models = random_graph(), []
    for options in ({"aggregate": "mean"}, {"cnn": "depthwise", "k": 4}):
        torch.manual_seed(3)
        options = {"hidden_channels": 6, "num_layers": 2, "dropout": 0.0, **options}
        models.append(ResidualLGCN(5, 3, **options))
    mean, lgcl = models
    torch.testing.assert_close(lgcl(graph.x, graph), mean(graph.x, graph))
    count = [sum(p.numel() for p in model.parameters()) for model in models]
    assert count[1] - count[0] == 2 * 6 * (4 + 2)
    deviate(lgcl)
    before = [layer.conv.weight.clone() for layer in lgcl.layers]
    assert not torch.allclose(lgcl(graph.x, graph), mean(graph.x, graph))
    lgcl.reset_parameters()
    for layer, weight in zip(lgcl.layers, before, strict=True):
        assert not torch.equal(layer.conv.weight, weight)
        assert not layer.conv.lgcl.cnn.weight.any()


def test_a_depthwise_lgcl_by_its_formula(random_graph: RandomGraph) -> None:
    graph = random_graph()
    conv = MappedLGConv(5, 4, k=3, mean=True)
    torch.nn.init.normal_(conv.lgcl.cnn.weight)
    mapped = graph.x @ conv.weight
    grid = conv.lgcl.select(mapped, mapped, graph.adjacency())
    expected = torch.einsum("npc,pc->nc", grid, conv.lgcl.cnn.weight) + grid[:, -1]
    torch.testing.assert_close(conv(graph.x, graph), expected)
    assert str(conv) == "MappedLGConv(5, 4, k=3)"


def test_dropout_of_the_grid_acts_in_training_alone(random_graph: RandomGraph) -> None:
    graph = random_graph()
    for cnn in ("single", "depthwise"):
        model = ResidualLGCN(5, 3, num_layers=1, dropout=0.0, lgcl_dropout=0.5, cnn=cnn)
        assert not torch.equal(model(graph.x, graph), model(graph.x, graph))
        model.eval()
        assert torch.equal(model(graph.x, graph), model(graph.x, graph))


def test_steps_that_drop_edges_or_attend_are_not_captured() -> None:
    for options in VARIANTS:
        for adj_dropout in (0.0, 0.5):
            model = ResidualLGCN(5, 3, adj_dropout=adj_dropout, **options)
            kind = options.get("aggregate", "lgcl")
            drops = adj_dropout > 0 and kind in ("lgcl", "max")
            assert model.can_capture is (kind != "attention" and not drops), options


def test_the_work_of_the_mean_counts_where_it_is_in_the_grid() -> None:
    works = {
        kind: ResidualSettings(num_layers=2, hidden_channels=4, k=3, **options).work(100, 1000)
        for kind, options in (
            ("today", {}),
            ("largest", {"mean": False}),
            ("max", {"aggregate": "max"}),
        )
    }
    assert works["today"] == 8 * (1000 + 500 + 15 * 100 * 5)
    assert works["largest"] == 8 * (1000 + 15 * 100 * 4)
    assert works["max"] == 8 * (1000 + 15 * 100)


def test_new_weights() -> None:
    model = ResidualLGCN(4, 2, num_layers=2, aggregate="attention", norm="layer")
    before = {name: value.clone() for name, value in model.named_parameters()}
    model.reset_parameters()
    for name, value in model.named_parameters():
        if value.dim() == 2:
            assert not torch.equal(value, before[name]), name
