"""The network: widths, ablations, batch norm and every form of input."""

import inspect
from collections.abc import Callable

import pytest
import torch
from torch.nn import Identity

from lgcn import LGCN, Graph, LGConv
from lgcn.errors import UsageError
from lgcn.nn import GCNLayer
from lgcn.training import Settings

RandomGraph = Callable[..., Graph]


def test_each_lgcl_appends_its_output_to_its_input() -> None:
    model = LGCN(50, 4, hidden_channels=16, lgcl_channels=6, num_layers=3, k=5)
    widths = [(layer.in_channels, layer.out_channels) for layer in model.layers]
    assert widths == [(16, 6), (22, 6), (28, 6)]
    assert all(isinstance(layer, LGConv) and layer.k == 5 for layer in model.layers)
    assert (model.embedding.in_channels, model.embedding.out_channels) == (50, 16)
    assert (model.classifier.in_channels, model.classifier.out_channels) == (34, 4)


def test_forward_layer_by_layer(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, activation="relu").eval()
    h = model.embedding(graph.x, graph).relu()
    for layer in model.layers:
        assert layer.cnn[1].function is torch.nn.functional.relu
        h = torch.cat([h, layer(h, graph).relu()], dim=1)
    torch.testing.assert_close(model(graph.x, graph), model.classifier(h, graph))


def test_embeddings_are_what_the_classifier_sees(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, hidden_channels=6, lgcl_channels=4, num_layers=2).eval()
    embedded = model.embed(graph.x, graph)
    assert embedded.shape == (12, 6 + 4 + 4)
    assert torch.equal(model.classifier(embedded, graph), model(graph.x, graph))
    torch.testing.assert_close(model.embed(graph.x, graph.edge_index), embedded)
    with pytest.raises(ValueError, match="edge_weight must be None with a Graph"):
        model.embed(graph.x, graph, torch.ones(graph.num_edges))


def test_embeddings_of_each_layer_begin_those_of_the_next(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, hidden_channels=6, lgcl_channels=4, num_layers=2, activation="relu").eval()
    last = model.embed(graph.x, graph)
    for layer, width in ((0, 6), (1, 10), (2, 14)):
        assert torch.equal(model.embed(graph.x, graph, layer=layer), last[:, :width])
    for layer in (-2, 3):
        with pytest.raises(UsageError, match=rf"layer must be from 0 .* to 2, .* got {layer}"):
            model.embed(graph.x, graph, layer=layer)


def test_without_lgcls_it_is_two_gcn_layers(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, num_layers=0).eval()
    expected = model.classifier(model.embedding(graph.x, graph), graph)
    torch.testing.assert_close(model(graph.x, graph), expected)


def test_gcn_layers_in_place_of_lgcls(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, layer="gcn")
    assert [type(layer) for layer in model.layers] == [GCNLayer, GCNLayer]
    assert model(graph.x, graph).shape == (12, 3)


def test_gcn_layers_are_as_wide_as_the_lgcls_they_stand_for() -> None:
    for cnn in ("double", "shared", "depthwise"):
        lgcls, gcns = (
            LGCN(5, 3, hidden_channels=6, lgcl_channels=4, cnn=cnn, layer=layer).layers
            for layer in ("lgcl", "gcn")
        )
        assert [new.out_channels for new in gcns] == [new.out_channels for new in lgcls]


def test_training_drops_all_that_an_lgcl_appends_or_nothing(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(
        5, 3, hidden_channels=6, cnn="shared", dropout=0.0, adj_dropout=0.0, layer_dropout=0.5
    )
    h = model.embed(graph.x, graph, layer=0)
    seen = set()
    torch.manual_seed(0)
    for _ in range(40):
        first, second = model.embed(graph.x, graph).split([12, 12], dim=1)
        assert torch.equal(first[:, :6], h)  # the embedding stays
        if first[:, 6:].any():
            torch.testing.assert_close(first[:, 6:], 2 * model.layers[0](h, graph))
        if second.any():
            torch.testing.assert_close(second, 2 * model.layers[1](first, graph))
        seen.add((bool(first[:, 6:].any()), bool(second.any())))
    assert len(seen) == 4  # each LGCL for itself
    model.eval()
    torch.testing.assert_close(model.embed(graph.x, graph)[:, 6:12], model.layers[0](h, graph))


@pytest.mark.parametrize("cnn", ["shared", "single", "double", "depthwise"])
@pytest.mark.parametrize("classifier", ["normalized", "diffusion"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_an_lgcl_whose_output_is_dropped_is_not_computed(
    random_graph: RandomGraph,
    monkeypatch: pytest.MonkeyPatch,
    cnn: str,
    classifier: str,
    dropout: float,
) -> None:
    graph, calls = random_graph(), 0
    options = {"cnn": cnn, "classifier": classifier, "dropout": dropout, "layer_dropout": 0.5}

    def trained() -> tuple[LGCN, list[torch.Tensor]]:
        torch.manual_seed(1)
        model = LGCN(5, 3, adj_dropout=0.0, **options)
        for layer in model.layers:
            layer.register_forward_hook(count)
        optimizer = torch.optim.Adam(model.parameters(), weight_decay=0.1)
        outputs = []
        for _ in range(10):
            optimizer.zero_grad()
            outputs.append(model(graph.x, graph))
            outputs[-1].square().sum().backward()
            optimizer.step()
        return model, outputs

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    model, outputs = trained()
    left_out, calls = 20 - calls, 0
    assert 0 < left_out < 20
    monkeypatch.setattr(LGCN, "_is_left_out", lambda *_: False)
    same_model, same_outputs = trained()
    assert calls == 20
    for one, other in zip(outputs, same_outputs, strict=True):
        assert torch.equal(one, other)
    for one, other in zip(model.parameters(), same_model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("options", [{"batch_norm": "running"}, {"adj_dropout": 0.1}])
def test_an_lgcl_that_does_more_than_append_is_always_computed(
    random_graph: RandomGraph, options: dict[str, object]
) -> None:
    graph, calls = random_graph(), []
    model = LGCN(5, 3, num_layers=1, layer_dropout=0.9, **{"adj_dropout": 0.0, **options})
    model.layers[0].register_forward_hook(lambda *_: calls.append(1))
    for _ in range(8):
        model(graph.x, graph)
    assert len(calls) == 8


def test_linear_embedding_sees_no_neighbours(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3, embedding="linear").eval()
    expected = graph.x @ model.embedding.weight
    torch.testing.assert_close(model.embedding(graph.x, graph), expected)


def test_options_reach_the_layers() -> None:
    model = LGCN(
        5,
        3,
        cnn="single",
        rank="raw",
        self_loops=False,
        zeros="pad",
        classifier="sum",
        dropout=0.25,
        adj_dropout=0.125,
        activation="elu",
    )
    for layer in model.layers:
        assert (layer.rank, layer.zeros, layer.self_loops) == ("raw", "pad", False)
        assert len(layer.cnn) == 1
    assert model.classifier.aggregate == "sum"
    for layer in (model.embedding, *model.layers, model.classifier):
        assert (layer.dropout, layer.adj_dropout) == (0.25, 0.125)
    assert not model.classifier.self_loops


def test_gcn_layers_have_self_loops_where_lgcls_have_none() -> None:
    model = LGCN(5, 3, self_loops=False, layer="gcn")
    for layer in (model.embedding, *model.layers, model.classifier):
        assert layer.aggregate == "normalized"
        assert layer.self_loops


@pytest.mark.parametrize(
    ("mode", "depends"), [("none", False), ("running", False), ("batch", True)]
)
def test_predictions_depend_on_the_batch_with_batch_statistics_only(
    random_graph: RandomGraph, mode: str, depends: bool
) -> None:
    graph, other = random_graph(), random_graph(seed=1)
    model = LGCN(5, 3, dropout=0, batch_norm=mode)
    model(graph.x, graph)  # one training step for the running averages
    model.eval()
    both = Graph.concat([graph, other])
    alone, beside = model(graph.x, graph), model(both.x, both)[: graph.num_nodes]
    assert torch.allclose(alone, beside, atol=1e-5) is not depends
    assert all(isinstance(norm, Identity) for norm in model.norms) is (mode == "none")


def test_sparse_features_equal_dense_features(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = LGCN(5, 3).eval()
    torch.testing.assert_close(model(graph.x.to_sparse_csr(), graph), model(graph.x, graph))


@pytest.mark.parametrize("weighted", [False, True])
def test_works_on_edge_index(random_graph: RandomGraph, weighted: bool) -> None:
    graph = random_graph(weighted=weighted)
    model = LGCN(5, 3).eval()
    actual = model(graph.x, graph.edge_index, graph.edge_weight)
    torch.testing.assert_close(actual, model(graph.x, graph))


def test_a_graph_has_its_own_weights(random_graph: RandomGraph) -> None:
    graph = random_graph()
    with pytest.raises(ValueError, match="edge_weight must be None with a Graph"):
        LGCN(5, 3)(graph.x, graph, torch.ones(graph.num_edges))


def test_training_drops_out_and_gradients_reach_all_parameters(random_graph: RandomGraph) -> None:
    graph = random_graph(40, 0.2)
    model = LGCN(5, 3, dropout=0.2, batch_norm="running")
    assert not torch.allclose(model(graph.x, graph), model(graph.x, graph))
    model(graph.x, graph).square().sum().backward()
    # Batch norm takes the mean away, and with it what the bias before it adds.
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert all(layer.cnn[-1].weight.grad.abs().sum() > 0 for layer in model.layers)
    assert model.embedding.weight.grad.abs().sum() > 0


def test_reset_parameters(random_graph: RandomGraph) -> None:
    model = LGCN(5, 3, batch_norm="running")
    before = [parameter.clone() for parameter in model.parameters() if parameter.dim() > 1]
    model.reset_parameters()
    after = [parameter for parameter in model.parameters() if parameter.dim() > 1]
    assert all(not torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_defaults_are_the_settings_of_cora() -> None:
    options = inspect.signature(LGCN).parameters
    shared = Settings.create(dataset="cora").model.options()
    own = {name for name, option in options.items() if option.kind is option.KEYWORD_ONLY}
    assert set(shared) == own
    assert {name: options[name].default for name in shared} == shared


@pytest.mark.parametrize("option", ["node_dropout", "layer_dropout"])
@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_wrong_rates_are_named_before_training(option: str, rate: float) -> None:
    with pytest.raises(ValueError, match=f"{option} must be a rate from 0 to below 1, got {rate}"):
        LGCN(5, 3, **{option: rate})


@pytest.mark.parametrize(
    "option",
    ["embedding", "layer", "activation", "batch_norm", "cnn", "rank", "zeros", "classifier"],
)
def test_unknown_options_are_named(option: str) -> None:
    name = "aggregate" if option == "classifier" else option
    with pytest.raises(ValueError, match=f"{name} must be .*, got 'odd'"):
        LGCN(5, 3, **{option: "odd"})


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("classifier", ["normalized", "sum", "diffusion"])
def test_gradients_reach_the_edge_weights(rank: str, classifier: str) -> None:
    model = LGCN(3, 2, hidden_channels=4, rank=rank, classifier=classifier)
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 1, 2]])
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0], requires_grad=True)
    for _ in range(2):
        model(torch.randn(4, 3), edges, weight).square().sum().backward()
    assert weight.grad.isfinite().all()
    assert weight.grad.abs().sum() > 0


def test_double_backward() -> None:
    model = LGCN(3, 2, hidden_channels=4, num_layers=1, dropout=0.0, adj_dropout=0.0).double()
    edges = torch.tensor([[0, 1, 2, 3], [1, 0, 1, 2]])
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.tensor([1.0, 2.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)

    def scores(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return model(x, edges, weight)

    assert torch.autograd.gradgradcheck(scores, (x, weight))
