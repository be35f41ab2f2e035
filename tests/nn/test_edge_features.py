"""Residual networks that read edge features, signs and directions, against slow dense ones."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.nn.edge_factor import EdgeFactor
from lgcn.nn.layerwise import layerwise
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.message_layer import MessageLayer
from lgcn.nn.residual import ResidualLGCN

RandomGraph = Callable[..., Graph]
READERS: list[dict[str, Any]] = [
    {"aggregate": "lgcl"},
    {"aggregate": "lgcl", "mean": False},
    {"aggregate": "lgcl", "cnn": "depthwise"},
    {"aggregate": "mean"},
    {"aggregate": "sum"},
    {"aggregate": "max"},
    {"aggregate": "gcn"},
]
EVERY = [*READERS, {"aggregate": "attention"}]


def random_attr(graph: Graph, width: int = 3, seed: int = 0) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    attr = torch.randn(graph.num_edges, width, generator=generator)
    return replace(graph, edge_attr=attr.to(graph.features().dtype))


def network(edge_channels: int = 3, **options: Any) -> ResidualLGCN:
    """A small network in double precision whose factors and kernels are random."""
    chosen: dict[str, Any] = {"hidden_channels": 4, "num_layers": 2, "k": 3, "dropout": 0.0}
    model = ResidualLGCN(5, 3, edge_channels=edge_channels, **(chosen | options)).double()
    for module in model.modules():
        if isinstance(module, EdgeFactor):
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
        if isinstance(module, MappedLGConv):
            torch.nn.init.normal_(module.lgcl.cnn.weight)
    return model


def dense_scores(model: ResidualLGCN, graph: Graph) -> Tensor:
    """The scores by loops over nodes, edges and features."""

    def conv(layer: Any, x: Tensor, turned: bool) -> Tensor:
        lgcl = layer.lgcl if isinstance(layer, MappedLGConv) else layer
        h = x if layer is lgcl and model.aggregate == "lgcl" else x @ layer.weight
        size, gcn = graph.num_nodes, model.aggregate == "gcn"
        # Per node, the neighbours, their weights and factors, and their values.
        messages: list[list[tuple[int, Tensor, Tensor, Tensor]]] = [[] for _ in range(size)]
        one = torch.tensor(1.0).double()
        source, target = graph.edge_index
        edges = list(zip(source.tolist(), target.tolist(), range(graph.num_edges), strict=True))
        if turned:  # rows are sorted by neighbour in the reversed graph, too
            edges = sorted((t, s, e) for s, t, e in edges)
        for s, t, e in edges:
            weight = one if graph.edge_weight is None else graph.edge_weight[e].double()
            factor = one
            if lgcl.edge_factor is not None:
                learned = lgcl.edge_factor
                factor = learned.bias[0] + (graph.edge_attr[e].double() * learned.weight).sum()
            messages[t].append((s, weight, factor, h[s]))
        if gcn:
            for i, row in enumerate(messages):
                if all(s != i for s, *_ in row):
                    row.append((i, one, one, h[i]))
            degree = [sum(float(w) for _, w, _, _ in row) for row in messages]
            return torch.stack(
                [
                    sum(w * f * v / (degree[i] * degree[s]) ** 0.5 for s, w, f, v in row)
                    for i, row in enumerate(messages)
                ]
            )
        out = []
        for i, row in enumerate(messages):
            values = [w * f * v for _, w, f, v in row]
            nothing = torch.zeros(h.size(1)).double()
            total = sum(values, nothing)
            norm = sum(abs(float(w)) for _, w, _, _ in row) or 1.0
            if model.aggregate == "mean":
                out.append(total / norm)
            elif model.aggregate == "sum":
                out.append(total)
            else:
                k = 1 if model.aggregate == "max" else lgcl.k
                ranked = torch.stack(values).sort(0, descending=True).values[:k] if values else None
                found = torch.zeros(k, h.size(1)).double()
                if ranked is not None:
                    found[: len(ranked)] = ranked
                if model.aggregate == "max":
                    out.append(found[0])
                    continue
                grid = [h[i][None], found]
                if lgcl.mean:
                    grid.append((total / norm)[None])
                out.append(torch.cat(grid))
        stacked = torch.stack(out)
        return stacked if model.aggregate != "lgcl" else lgcl.convolve(stacked)

    h = F.relu(graph.x.double() @ model.embedding.weight + model.embedding.bias)
    for layer in model.layers:
        new = conv(layer.conv, h, False)
        if layer.reverse is not None:
            new = new + conv(layer.reverse, h, True)
        h = F.relu(layer.norm(new + layer.linear(h)))
    return h @ model.classifier.weight + model.classifier.bias


@pytest.mark.parametrize("directions", ["in", "both"])
@pytest.mark.parametrize("options", READERS, ids=str)
@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 1000),
    nodes=st.integers(1, 9),
    weighted=st.booleans(),
    self_loops=st.booleans(),
)
def test_it_is_the_slow_dense_network(
    options: dict[str, Any],
    directions: str,
    seed: int,
    nodes: int,
    weighted: bool,
    self_loops: bool,
) -> None:
    from tests.conftest import make_graph

    graph = make_graph(nodes, 0.4, weighted=weighted, self_loops=self_loops, seed=seed)
    graph = random_attr(graph, seed=seed)
    model = network(norm="none", directions=directions, **options)
    x = graph.x.double()
    expected = dense_scores(model, graph)
    torch.testing.assert_close(model(x, graph), expected, rtol=1e-5, atol=1e-6)
    # As PyG has it, in any order of the edges.
    order = torch.randperm(graph.num_edges)
    weight = None if graph.edge_weight is None else graph.edge_weight[order]
    given_edges = (graph.edge_index[:, order], weight, graph.edge_attr[order])
    torch.testing.assert_close(model(x, *given_edges), model(x, graph))


@pytest.mark.parametrize("options", READERS, ids=str)
def test_gradients_of_factors_are_right(random_graph: RandomGraph, options: dict[str, Any]) -> None:
    graph = random_attr(random_graph(6, 0.4, weighted=True))
    model = network(num_layers=1, norm="none", directions="both", **options)
    factors = [p for name, p in model.named_parameters() if "edge_factor" in name]
    assert len(factors) == 4

    def run(x: Tensor, attr: Tensor, *weights: Tensor) -> Tensor:
        names = [name for name, _ in model.named_parameters() if "edge_factor" in name]
        changed = dict(zip(names, weights, strict=True))
        inputs = (x, replace(graph, edge_attr=attr))
        return torch.func.functional_call(model, changed, inputs)

    x = graph.x.double().requires_grad_()
    attr = graph.edge_attr.double().requires_grad_()
    assert torch.autograd.gradcheck(run, (x, attr, *(f.detach().requires_grad_() for f in factors)))


@pytest.mark.parametrize("options", READERS, ids=str)
def test_it_starts_as_the_network_without_edge_features(
    random_graph: RandomGraph, options: dict[str, Any]
) -> None:
    graph = random_attr(random_graph(20, weighted=True))
    found = []
    for channels in (0, 3):
        torch.manual_seed(1)
        model = ResidualLGCN(
            5,
            3,
            hidden_channels=8,
            num_layers=2,
            edge_channels=channels,
            adj_dropout=0.3,
            **options,
        )
        torch.manual_seed(2)
        trained = model(graph.x, graph)
        found.append((trained, model.eval()(graph.x, graph)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other)
    for module in model.modules():
        if isinstance(module, EdgeFactor):
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
    model.reset_parameters()
    factors = [module for module in model.modules() if isinstance(module, EdgeFactor)]
    assert all(not one.weight.any() and one.bias.tolist() == [1] for one in factors)


def test_dropped_edges_take_their_factors_along(random_graph: RandomGraph) -> None:
    graph = random_attr(random_graph(20, 0.5))
    for options in ({"aggregate": "lgcl"}, {"aggregate": "max"}):
        model = network(norm="none", num_layers=1, adj_dropout=0.5, residual=False, **options)
        conv = model.layers[0].conv
        x = graph.x.double()[:, :4]
        torch.manual_seed(0)
        out = conv(x, graph)
        torch.manual_seed(0)
        number = torch.arange(graph.num_edges)
        kept, entry = graph.adjacency().drop_edges_with(0.5, number)
        assert kept.col.numel() == len(entry) < graph.num_edges
        rest = replace(
            graph,
            rowptr=kept.rowptr,
            col=kept.col,
            edge_weight=kept.weight,
            edge_attr=graph.edge_attr[entry],
        )
        conv.adj_dropout = 0.0
        torch.testing.assert_close(out, conv(x, rest))


@pytest.mark.parametrize("memory", ["1GB", 40_000, 1])
@pytest.mark.parametrize("options", EVERY, ids=str)
@pytest.mark.parametrize("directions", ["in", "both"])
def test_layer_by_layer_it_gives_the_same(
    random_graph: RandomGraph, options: dict[str, Any], directions: str, memory: str | int
) -> None:
    channels = 0 if options["aggregate"] == "attention" else 3
    for self_loops in (False, True):
        graph = random_attr(random_graph(30, weighted=True, self_loops=self_loops))
        model = network(channels, directions=directions, **options).float()
        model(graph.x, graph)  # running averages
        expected = model.eval()(graph.x, graph)
        found = layerwise(model, graph, memory=memory)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
        embedded = layerwise(model, graph, layer=1, memory=memory)
        expected = model.embed(graph.x, graph, layer=1)
        torch.testing.assert_close(embedded, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("options", EVERY, ids=str)
def test_both_directions_read_the_graph_and_the_reversed_graph(
    random_graph: RandomGraph, options: dict[str, Any]
) -> None:
    channels = 0 if options["aggregate"] == "attention" else 3
    graph = random_attr(random_graph(weighted=True))
    x = graph.x.double()
    model = network(channels, directions="both", norm="none", **options)
    turned = network(channels, directions="both", norm="none", **options)
    names = {".conv.": ".reverse.", ".reverse.": ".conv."}
    state = {}
    for name, value in model.state_dict().items():
        for old, new in names.items():
            if old in name:
                name = name.replace(old, new)
                break
        state[name] = value
    turned.load_state_dict(state)
    torch.testing.assert_close(model(x, graph), turned(x, graph.reversed()))
    assert not torch.allclose(model(x, graph), model(x, graph.reversed()))


def test_an_undirected_graph_reads_the_same_in_both_directions(random_graph: RandomGraph) -> None:
    graph = random_graph(undirected=True)
    assert torch.equal(graph.reversed().col, graph.col)
    assert torch.equal(graph.reversed().rowptr, graph.rowptr)


def test_a_reversed_graph_has_the_edges_weights_and_features_of_the_other_direction(
    random_graph: RandomGraph,
) -> None:
    graph = random_attr(random_graph(weighted=True, self_loops=True))
    turned = graph.reversed()
    assert turned.x is graph.x

    def entries(one: Graph) -> dict[tuple[int, ...], list[float]]:
        columns = torch.cat([one.edge_weight[:, None], one.edge_attr], dim=1).tolist()
        return dict(zip(map(tuple, one.edge_index.t().tolist()), columns, strict=True))

    assert entries(turned) == {(t, s): row for (s, t), row in entries(graph).items()}
    assert entries(turned.reversed()) == entries(graph)
    assert turned.adjacency(normalize=True).weight is (
        graph.reversed().adjacency(normalize=True).weight  # kept
    )
    weight = graph.edge_weight.clone().requires_grad_()
    learned = replace(graph, edge_weight=weight)
    for _ in range(2):
        (gradient,) = torch.autograd.grad(learned.reversed().edge_weight.square().sum(), weight)
        torch.testing.assert_close(gradient, 2 * weight.detach())


@pytest.mark.parametrize("options", READERS, ids=str)
def test_torch_can_compile_it(random_graph: RandomGraph, options: dict[str, Any]) -> None:
    graph = random_attr(random_graph())
    model = network(directions="both", **options).float().eval()
    inputs = (graph.x, graph.edge_index, None, graph.edge_attr)
    program = torch.export.export(model, inputs)
    torch.testing.assert_close(program.module()(*inputs), model(graph.x, graph))


def test_masks_of_explainers_multiply_the_factors(random_graph: RandomGraph) -> None:
    from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

    graph = random_attr(random_graph())
    model = network(directions="both", norm="none", aggregate="sum").eval()
    mask = torch.rand(graph.num_edges).double()
    x = graph.x.double()
    set_masks(model, mask, graph.edge_index, apply_sigmoid=False)
    masked = model(x, graph.edge_index, None, graph.edge_attr)
    clear_masks(model)
    weighted = replace(graph, edge_weight=mask)
    # Both see a mask as a weight, since a sum has no denominator. The reversed graph's mask
    # follows its own entries.
    one_way = network(directions="in", norm="none", aggregate="sum").eval()
    one_way.load_state_dict(model.state_dict(), strict=False)
    set_masks(one_way, mask, graph.edge_index, apply_sigmoid=False)
    torch.testing.assert_close(
        one_way(x, graph), one_way(x, graph.edge_index, None, graph.edge_attr)
    )
    found = one_way(x, graph)
    clear_masks(one_way)
    torch.testing.assert_close(found, one_way(x, weighted))
    torch.testing.assert_close(masked, model(x, weighted))


def test_wrong_arguments(random_graph: RandomGraph) -> None:
    for aggregate in ("attention", "none"):
        with pytest.raises(ValueError, match=rf"edge_channels must be 0 with .*{aggregate}.*got 2"):
            ResidualLGCN(2, 2, aggregate=aggregate, edge_channels=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"directions must be one of in, both, got 'out'"):
        ResidualLGCN(2, 2, directions="out")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="directions must be 'in' with aggregate='none'"):
        ResidualLGCN(2, 2, directions="both", aggregate="none")
    graph = random_graph()
    model = ResidualLGCN(5, 3, hidden_channels=4, num_layers=1, edge_channels=3)
    with pytest.raises(UsageError, match=r"edge_attr must have the 3 features .* got none"):
        model(graph.x, graph)
    with pytest.raises(UsageError, match=r"edge_attr must have the 3 features .* got none"):
        layerwise(model, graph)
    with pytest.raises(UsageError, match=r"edge_attr must have the 3 features .* got 2"):
        model(graph.x, random_attr(graph, 2))
    with pytest.raises(ValueError, match="edge_attr must be None with a Graph"):
        model(graph.x, random_attr(graph), None, torch.ones(graph.num_edges, 3))


def test_steps_that_read_edge_features_or_both_directions_are_not_captured() -> None:
    assert ResidualLGCN(2, 2).can_capture
    assert not ResidualLGCN(2, 2, edge_channels=1).can_capture
    assert not ResidualLGCN(2, 2, directions="both").can_capture


@pytest.mark.slow
def test_onnx_runtime_gives_the_same(random_graph: RandomGraph, tmp_path: Path) -> None:
    pytest.importorskip("onnxscript")
    runtime = pytest.importorskip("onnxruntime")
    graph = random_attr(random_graph())
    for options in ({"aggregate": "lgcl"}, {"aggregate": "gcn"}):
        model = network(directions="both", **options).float().eval()
        weight = torch.rand(graph.num_edges)
        inputs = (graph.x, graph.edge_index, weight, graph.edge_attr)
        names = ["x", "edge_index", "edge_weight", "edge_attr"]
        program = torch.onnx.export(model, inputs, dynamo=True, input_names=names)
        assert program is not None
        program.save(tmp_path / "model.onnx")
        session = runtime.InferenceSession(tmp_path / "model.onnx")
        values = {name: value.numpy() for name, value in zip(names, inputs, strict=True)}
        (out,) = session.run(None, values)
        torch.testing.assert_close(torch.from_numpy(out), model(*inputs), rtol=1e-4, atol=1e-5)


def test_a_masked_graph_is_refused_where_a_mask_could_not_follow(random_graph: RandomGraph) -> None:
    graph = random_graph()
    model = ResidualLGCN(5, 3, hidden_channels=4, num_layers=1, directions="both")
    for module in model.modules():
        if isinstance(module, MessageLayer):
            module.explain = True
    with pytest.raises(UsageError, match=r"edge mask .*directions='both'.*edge_index"):
        model(graph.x, graph)


@pytest.mark.parametrize("options", [one for one in EVERY if one["aggregate"] != "gcn"], ids=str)
def test_signed_edge_weights_are_ranked_and_summed_with_their_signs(
    random_graph: RandomGraph, options: dict[str, Any]
) -> None:
    graph = random_graph(weighted=True)
    signed = graph.edge_weight * torch.where(torch.arange(graph.num_edges) % 3 == 0, -1, 1)
    graph = replace(graph, edge_weight=signed)
    model = network(0, norm="none", **options)
    found = model(graph.x.double(), graph)
    assert bool(found.isfinite().all())
    if options["aggregate"] != "attention":  # which ignores weights
        expected = dense_scores(model, graph)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
