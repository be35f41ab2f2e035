"""What is said to be selected is what the layers select."""

from typing import Any

import pytest
import torch
from torch import Tensor

import lgcn
from lgcn.explain import NodeExplainer
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.lgcn import LGCN

from .networks import FEATURES, build, random_graph


def by_hand(model: Any, graph: lgcn.Graph, conv: LGConv, node: int) -> dict[tuple[int, int], int]:
    """(rank, feature) to neighbour: all neighbours sorted by value, by a whole forward."""
    seen: list[Tensor] = []
    hook = conv.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model(graph.features(), graph)
    hook.remove()
    rowptr, col, weight = graph.adjacency(**conv.adjacency_options)
    here = range(int(rowptr[node]), int(rowptr[node + 1]))
    found = {}
    for feature in range(conv.in_channels):
        values = []
        for entry in here:
            value = float(seen[0][int(col[entry]), feature])
            value *= 1 if weight is None else float(weight[entry])
            values.append((value, int(col[entry])))
        values.sort(key=lambda pair: -pair[0])
        for rank, (value, neighbour) in enumerate(values[: conv.k]):
            if conv.zeros == "pad" or value >= 0:
                found[rank, feature] = neighbour
    return found


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("zeros", ["pad", "compete"])
def test_counts_are_those_of_a_sort_by_hand(rank: str, zeros: str):
    model: Any = build("lgcn", {"rank": rank, "zeros": zeros, "k": 2, "self_loops": False})
    graph = random_graph(15, 40)
    nodes = [4, 0, 4, 11]
    layers = lgcn.selected_neighbours(model, graph, nodes)
    assert [layer.layer for layer in layers] == [1, 2]
    for layer, (conv, _) in zip(layers, model.lgcls(), strict=True):
        for node in set(nodes):
            chosen = list(by_hand(model, graph, conv, node).values())
            expected = {neighbour: chosen.count(neighbour) for neighbour in chosen}
            here = layer.node == node
            counts = layer.count[here].tolist()
            pairs = list(zip(layer.neighbour[here].tolist(), counts, strict=True))
            assert dict(pairs) == expected
            assert len(pairs) == len(expected) * nodes.count(node)


def test_an_explanation_names_feature_and_rank():
    model: Any = build("lgcn", {"num_layers": 1, "k": 3})
    graph = random_graph(15, 40)
    (found,) = lgcn.explain_nodes(model, graph, [6])
    expected = by_hand(model, graph, model.layers[0], 6)
    (layer,) = found.selected
    assert layer["filled"] == len(expected)
    assert sum(one["count"] for one in layer["neighbours"]) == len(expected)
    for one in layer["neighbours"]:
        assert one["first"] == sum(
            rank == 0 and node == one["node"] for (rank, _), node in expected.items()
        )
        for place in one["places"]:
            unit = int(place["feature"].removeprefix("unit "))
            assert expected[place["rank"] - 1, unit] == one["node"]
            assert place["feature"] in found.units


def test_units_of_later_layers_are_named_after_their_layer():
    model = build("lgcn", {"num_layers": 2, "cnn": "single"})
    (found,) = lgcn.explain_nodes(model, random_graph(15, 40), [6])
    names = {place["feature"] for one in found.selected[1]["neighbours"] for place in one["places"]}
    assert names <= {*(f"unit {i}" for i in range(4)), *(f"LGCL 1, unit {i}" for i in range(3))}
    assert any(name.startswith("LGCL 1") for name in names)


def test_an_lgcl_behind_a_linear_map_shows_what_it_selected():
    model: Any = build("residual", {"num_layers": 1, "k": 3, "cnn": "depthwise"})
    graph = random_graph(15, 40)
    layer = model.layers[0].conv
    x = model.embedding(graph.features(), graph).relu() @ layer.weight
    _, selection = layer.lgcl(x, graph, return_selection=True)
    (found,) = lgcn.selected_neighbours(model, graph, [6])
    near = selection.node[6].flatten()
    expected = near[near >= 0].bincount(minlength=15)
    assert dict(zip(found.neighbour.tolist(), found.count.tolist(), strict=True)) == {
        node: int(count) for node, count in enumerate(expected) if count
    }
    (explained,) = lgcn.explain_nodes(model, graph, [6])
    places = [place for one in explained.selected[0]["neighbours"] for place in one["places"]]
    assert {place["feature"] for place in places} <= {f"map of layer 1, unit {i}" for i in range(4)}


def test_a_model_without_lgcls_selects_nothing():
    model = build("residual", {"aggregate": "none"})
    graph = random_graph()
    assert lgcn.selected_neighbours(model, graph, [0, 1]) == []
    (found,) = lgcn.explain_nodes(model, graph, [0])
    assert found.selected == []
    assert any("no LGCL" in note for note in found.notes)
    assert [entry["hops"] for entry in found.by_node] == [0]


def test_batch_statistics_are_those_of_the_whole_graph():
    model = build("lgcn", {"batch_norm": "batch", "num_layers": 1})
    graph = random_graph(30, 30)
    explainer = NodeExplainer(model, graph)
    whole = model(graph.features(), graph)
    for node in range(4):
        scores = explainer.contributions(node).scores[0]
        torch.testing.assert_close(scores, whole[node].detach(), rtol=0, atol=1e-8)


def test_separate_graphs_have_their_own_statistics():
    parts = [random_graph(20, 20, seed=seed) for seed in (1, 2)]
    graph = lgcn.Graph.concat(parts)
    model = LGCN(FEATURES, 3, hidden_channels=4, batch_norm="batch").double().eval()
    expected = lgcn.predict(model, graph)
    for node in (0, 25):
        scores = NodeExplainer(model, graph).contributions(node).scores[0]
        torch.testing.assert_close(scores, expected[node], rtol=0, atol=1e-8)
