"""Explanations of a network and a graph on a GPU are those on the CPU."""

import copy

import pytest
import torch

import lgcn
from lgcn.explain import GraphExplainer

from .networks import build, random_graph, random_graphs


@pytest.mark.gpu
def test_where_the_network_is_does_not_matter() -> None:
    model, graph = build("lgcn", {"num_layers": 2, "k": 3}), random_graph(15, 40)
    on_gpu, there = copy.deepcopy(model).cuda(), graph.to("cuda")
    ours, theirs = (lgcn.explain_nodes(*pair, [0, 5]) for pair in ((model, graph), (on_gpu, there)))
    assert [one.to_dict() for one in theirs] == [one.to_dict() for one in ours]
    for layer, other in zip(
        lgcn.selected_neighbours(model, graph, range(15)),
        lgcn.selected_neighbours(on_gpu, there, range(15)),
        strict=True,
    ):
        assert torch.equal(other.neighbour, layer.neighbour)
        assert torch.equal(other.count, layer.count)
    assert next(on_gpu.parameters()).is_cuda


@pytest.mark.gpu
def test_whole_graphs_on_a_gpu_are_explained_alike() -> None:
    model, graphs = build("graph", {"readout": "sum+k_largest"}), random_graphs()
    on_gpu, there = copy.deepcopy(model).cuda(), graphs.to("cuda")
    ours, theirs = (
        GraphExplainer(*pair).explain([0, 1]) for pair in ((model, graphs), (on_gpu, there))
    )
    assert [one.to_dict() for one in theirs] == [one.to_dict() for one in ours]
    assert next(on_gpu.parameters()).is_cuda
