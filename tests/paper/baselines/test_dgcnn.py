"""DGCNN against PyG's sorting and averaging, and its k against a definition by counting."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.nn import SimpleConv, SortAggregation

from lgcn import load_graphs
from lgcn.errors import UsageError
from lgcn.paper.baselines.dgcnn import LEAST_K, READOUT_K, k_of_share
from lgcn.paper.baselines.dgcnn.network import DGCNN, AveragingLayer
from lgcn.paper.systems import SYSTEMS
from lgcn.training import Settings

from .checks import parameters
from .whole_graphs import as_pyg, features, some_batch, some_graph


@pytest.mark.parametrize("k", [10, 13])
def test_it_equals_pygs_sorting_and_averaging(k: int) -> None:
    graph = some_batch(4, 1, 17, 12)
    model = DGCNN(5, 3, hidden_channels=4, num_layers=2, readout_k=k).eval()
    batch = as_pyg(graph)
    average, h, levels = SimpleConv("mean", combine_root="self_loop"), batch.x, []
    for conv in model.convs:
        h = average(conv.linear.linear(h), batch.edge_index).tanh()
        levels.append(h)
    assert h.shape == (34, 1)
    width = 2 * 4 + 1
    grid = SortAggregation(k)(torch.cat(levels, dim=1), batch.batch).view(4, k, width)
    # A convolution whose kernel and stride are a node's features is a linear map of each node.
    nodes = F.linear(grid, model.of_nodes.weight.squeeze(1), model.of_nodes.bias).relu()
    pooled = torch.stack([nodes[:, i : i + 2].amax(1) for i in range(0, k - k % 2, 2)], dim=2)
    places = pooled.unfold(2, 5, 1)  # [graphs, channels, places, kernel]
    out = torch.einsum("gcpk,dck->gdp", places, model.of_places.weight)
    out = (out + model.of_places.bias[:, None]).relu().flatten(1)
    torch.testing.assert_close(model.embed(features(graph), graph), out)
    scores = model.classifier.out(model.classifier.hidden(out).relu())
    torch.testing.assert_close(model(features(graph), graph), scores)


def test_a_layer_averages_over_a_node_and_its_neighbours() -> None:
    graph, layer = some_graph(8), AveragingLayer(5, 3)
    matrix = torch.eye(8)
    matrix[tuple(graph.edge_index)] = 1
    expected = torch.diag(1 / matrix.sum(1)) @ matrix @ layer.linear(features(graph))
    torch.testing.assert_close(layer(features(graph), graph), expected)


def test_its_size() -> None:
    convolutions = 5 * 32 + 32 + 2 * (32 * 32 + 32) + 32 + 1
    one_d = 97 * 16 + 16 + 5 * 16 * 32 + 32
    classifier = (15 - 4) * 32 * 128 + 128 + 128 * 2 + 2
    assert parameters(DGCNN(5, 2)) == convolutions + one_d + classifier


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=30),
    share=st.sampled_from([0.1, 0.5, 0.6, 0.9, 1.0]),
)
def test_k_is_the_least_that_a_share_of_the_graphs_do_not_exceed(
    sizes: list[int], share: float
) -> None:
    k = k_of_share(sizes, share)
    wanted = math.ceil(share * len(sizes))
    assert sum(size <= k for size in sizes) >= wanted
    assert k == LEAST_K or sum(size <= k - 1 for size in sizes) < wanted


@pytest.mark.usefixtures("data_root")
@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "IMDB-MULTI"])
def test_the_listed_k_are_those_of_the_data(name: str) -> None:
    sizes = load_graphs(name).sizes.tolist()
    assert READOUT_K[name] == (k_of_share(sizes, 0.6), k_of_share(sizes, 0.9))
    assert SYSTEMS["dgcnn"].on[name] == {"readout_k": READOUT_K[name][0]}


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="readout_k must be at least 10, got 9"):
        DGCNN(5, 3, readout_k=9)
    with pytest.raises(UsageError, match=r"readout_k must .* at least 10, got 9"):
        Settings.create(model="dgcnn", readout_k=9)
    with pytest.raises(ValueError, match="share must be above 0 and at most 1, got 0"):
        k_of_share([3], 0)
    with pytest.raises(ValueError, match=r"sizes must .* at least one graph, got none"):
        k_of_share([], 0.5)
