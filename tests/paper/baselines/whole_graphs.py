"""Batches of graphs for the tests of baselines that classify whole graphs."""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Module
from torch_geometric.data import Batch

from lgcn import Graph

FEATURES = 5


def some_graph(size: int, seed: int = 0, share: float = 0.4) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    edges = (torch.rand(size, size, generator=generator) < share).triu(1).nonzero().t()
    x = torch.randn(size, FEATURES, generator=generator)
    return Graph.from_edge_index(edges, size, x=x)


def side_by_side(graphs: list[Graph]) -> Graph:
    """A batch of graphs, some of which may have no nodes."""
    sizes = torch.tensor([0, *(graph.num_nodes for graph in graphs)])
    return replace(Graph.concat(graphs), ptr=sizes.cumsum(0))


def some_batch(*sizes: int, seed: int = 0) -> Graph:
    return side_by_side([some_graph(size, 100 * seed + n) for n, size in enumerate(sizes)])


def as_pyg(graph: Graph) -> Batch:
    return Batch.from_data_list([part.to_pyg() for part in graph.separate()])


def features(graph: Graph) -> Tensor:
    assert graph.x is not None
    return graph.x


def in_use(model: Module) -> Module:
    """The model in eval mode, with norms that are not the identity."""
    for module in model.modules():
        if isinstance(module, BatchNorm1d):
            assert module.running_mean is not None
            assert module.running_var is not None
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
            module.bias.data.normal_()
    return model.eval()
