"""Explanations of a network and a graph on a GPU are those on the CPU."""

import copy

import pytest
import torch

import lgcn

from .networks import build, random_graph


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
