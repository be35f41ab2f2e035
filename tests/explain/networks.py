"""Random networks of all kinds, and random graphs."""

from dataclasses import replace
from typing import Any

import torch
from hypothesis import strategies as st
from torch.nn import Module

from lgcn.graph import Graph, GraphSet
from lgcn.nn.graph_lgcn import GraphLGCN
from lgcn.nn.lgcn import LGCN
from lgcn.nn.residual import ResidualLGCN

FEATURES, CLASSES = 5, 3

LGCN_OPTIONS = {
    "num_layers": [0, 1, 2],
    "k": [1, 3, 8],
    "embedding": ["gcn", "linear", "propagated"],
    "input_hops": [0, 2],
    "input_norm": ["batch", "none"],
    "layer": ["lgcl", "lgcl", "gcn"],
    "cnn": ["double", "single", "shared", "depthwise"],
    "rank": ["raw", "normalized"],
    "self_loops": [True, False],
    "zeros": ["pad", "compete"],
    "mean": [True, False],
    "classifier": ["normalized", "sum", "none", "diffusion"],
    "hops": [0, 2],
    "activation": ["none", "relu", "elu", "gelu"],
    "batch_norm": ["none", "running", "batch"],
    "input_scale": [1.0, 0.5],
}
RESIDUAL_OPTIONS = {
    "num_layers": [0, 1, 2],
    "aggregate": ["lgcl", "lgcl", "mean", "max", "sum", "gcn", "attention", "none"],
    "cnn": ["single", "depthwise"],
    "mean": [True, False],
    "k": [1, 3],
    "residual": [True, False],
    "norm": ["batch", "layer", "none"],
}
GRAPH_OPTIONS = {
    "num_layers": [0, 1, 2],
    "k": [1, 3, 8],
    "cnn": ["single", "double"],
    "rank": ["raw", "normalized"],
    "self_loops": [True, False],
    "zeros": ["pad", "compete"],
    "append": ["none", "mean", "sum"],
    "activation": ["none", "relu", "elu", "gelu"],
    "norm": ["batch", "layer", "none"],
    "readout": ["sum", "mean", "max", "k_largest", "sort", "sum+max", "mean+k_largest+sort"],
    "readout_k": [1, 3, 40],
    "pooling": ["none", "none", "topk", "sag", "cluster"],
    "input_scale": [1.0, 0.5],
}


def _options(choices: dict[str, list[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({key: st.sampled_from(few) for key, few in choices.items()})


networks = st.one_of(
    st.tuples(st.just("lgcn"), _options(LGCN_OPTIONS)),
    st.tuples(st.just("residual"), _options(RESIDUAL_OPTIONS)),
)
graph_networks = _options(GRAPH_OPTIONS)


def build(kind: str, options: dict[str, Any], seed: int = 0) -> Module:
    """A network in double precision, with random weights, also where they start as zeros."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = {"hidden_channels": 4, **options}
    cls: Any = {"lgcn": LGCN, "residual": ResidualLGCN, "graph": GraphLGCN}[kind]
    sizes |= {"heads": 2} if kind == "residual" else {"lgcl_channels": 3}
    model: Module = cls(FEATURES, CLASSES, **sizes).double().eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
        for name, statistic in model.named_buffers():
            if name.endswith("running_mean"):
                statistic.normal_()
            elif name.endswith("running_var"):
                statistic.uniform_(0.5, 2)
    return model


def random_graph(
    num_nodes: int = 20,
    num_edges: int = 30,
    *,
    weights: bool = False,
    loops: bool = False,
    sparse: bool = False,
    seed: int = 0,
) -> Graph:
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(0, max(num_nodes, 1), (2, num_edges), generator=generator)
    x = torch.randn(num_nodes, FEATURES, generator=generator, dtype=torch.double)
    x[x.abs() < 0.4] = 0
    weight = torch.rand(num_edges, generator=generator).double() + 0.1 if weights else None
    if sparse:
        x = x.to_sparse_csr()
    graph = Graph.from_edge_index(edges, num_nodes, edge_weight=weight, x=x)
    if not loops:
        return graph
    ends = torch.arange(0, num_nodes, 3).repeat(2, 1)
    both = torch.cat([graph.edge_index, ends], dim=1)
    return Graph.as_given(both, num_nodes, x=x)


def random_graphs(
    sizes: tuple[tuple[int, int], ...] = ((7, 9), (20, 30), (1, 0), (5, 0)),
    **options: Any,
) -> GraphSet:
    """Graphs of so many nodes and edges; some nodes are isolated."""
    several = [random_graph(*size, **options) for size in sizes]
    offsets = torch.tensor([0, *(size for size, _ in sizes)]).cumsum(0)
    return GraphSet.create(replace(Graph.concat(several), ptr=offsets))
