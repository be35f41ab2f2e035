"""The networks that a model consists of, each with its graph."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.explain.columns import Columns
from lgcn.explain.neighbourhood import Neighbourhood, neighbourhood, num_hops, whole_graph
from lgcn.explain.worlds import GRAPH_NETWORKS, NETWORKS, Statistics
from lgcn.graph import Graph
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.residual import ResidualLGCN
from lgcn.nn.whole_graph import predict
from lgcn.training.portfolio.ensemble import Ensemble, calibrated


@dataclass(eq=False)
class Part:
    """A network that can be explained.

    Args:
        model: The network, in evaluation mode.
        graph: The graph, with features as the network takes them.
        columns: The names of the features.
        weight: Its share in an ensemble. (default: 1)
        temperature: Its softmax temperature in an ensemble. (default: 1)
    """

    model: Any
    graph: Graph
    columns: Columns
    weight: float = 1.0
    temperature: float = 1.0
    _statistics: dict[int, Statistics] = field(default_factory=dict, repr=False)

    def field(self, number: int) -> Neighbourhood:
        """What the scores of a node, or of a whole graph, depend on.

        Args:
            number: The number of the node or graph.
        """
        hops = num_hops(self.model)
        if isinstance(self.model, GRAPH_NETWORKS):
            return whole_graph(self.graph, number, hops)
        return neighbourhood(self.graph, torch.tensor([number]), hops)

    def statistics(self, node: int) -> Statistics:
        """Means and variances of batch norms that have no running ones, computed once.

        Args:
            node: The node; of separate graphs, its own counts.
        """
        ptr = self.graph.ptr
        number = 0 if ptr is None else int(torch.searchsorted(ptr, node, right=True)) - 1
        if number not in self._statistics:
            self._statistics[number] = _batch_statistics(self.model, self.graph, number)
        return self._statistics[number]


@dataclass(frozen=True, eq=False)
class Fixed:
    """A model of an ensemble that cannot be explained, such as trees. Its part stays as it is."""

    name: str
    weight: float
    predictions: Tensor  # calibrated, [nodes, outputs]


def on_cpu(model: Module) -> Module:
    """The model, or a copy of it on the CPU: neighbourhoods are small."""
    if next(model.parameters()).device.type == "cpu":
        return model
    return copy.deepcopy(model).cpu()


def network_parts(
    model: Module, graph: Graph, columns: Columns | None = None, *, of_graphs: bool = False
) -> list[Part]:
    """The networks of a model, those that count most first.

    Args:
        model: A network or an ensemble.
        graph: The graph as the model takes it.
        columns: The names of the features. (default: their numbers)
        of_graphs: Whether whole graphs are explained. (default: `False`)
    """
    if of_graphs and not isinstance(model, GRAPH_NETWORKS):
        raise UsageError(
            f"a {type(model).__name__} cannot be explained; of models of whole graphs, a GraphLGCN "
            "can"
        )
    if any(module.training for module in model.modules()):  # to set it takes longer
        model.eval()
    if not isinstance(model, Ensemble):
        if not of_graphs and isinstance(model, GRAPH_NETWORKS):
            raise UsageError(
                f"a {type(model).__name__} predicts whole graphs: use lgcn.explain.GraphExplainer"
            )
        if not of_graphs and not isinstance(model, NETWORKS):
            raise UsageError(
                f"a {type(model).__name__} cannot be explained; an LGCN, a ResidualLGCN and an "
                "ensemble with one of them can"
            )
        why = not_explained(model)
        if why:
            raise UsageError(why)
        return [Part(model, graph, columns or Columns.of(graph.num_features))]
    total = sum(part.weight for part in model.parts)
    found = []
    for part in model.parts:
        if isinstance(part.model, NETWORKS) and not not_explained(part.model):
            names = columns
            if part.spec.structure is not None or names is None:
                names = Columns.of(
                    part.spec.num_features,
                    graph.encoder,
                    part.spec.structure,
                    None if columns is None else columns.features,
                )
            prepared = part.spec.prepare(graph)
            share = part.weight / total
            found.append(Part(part.model, prepared, names, share, part.temperature))
    if not found:
        raise UsageError(
            "none of the models of this run can be explained: "
            + ", ".join(f"{part.name} ({type(part.model).__name__})" for part in model.parts)
        )
    return sorted(found, key=lambda part: -part.weight)


def not_explained(model: Module) -> str:
    """Why a network of a kind that can be explained cannot; empty if it can."""
    if not isinstance(model, ResidualLGCN):
        return ""
    if model.edge_channels:
        return (
            "a network that reads edge features cannot be explained: train with edge_features=none "
            "to explain predictions"
        )
    if model.directions == "both":
        return (
            "a network with directions=both cannot be explained: train with directions=in to "
            "explain predictions"
        )
    return ""


def fixed_parts(model: Module, graph: Graph) -> list[Fixed]:
    """The models of an ensemble that cannot be explained."""
    if not isinstance(model, Ensemble):
        return []
    total = sum(part.weight for part in model.parts)
    return [
        Fixed(
            part.name,
            part.weight / total,
            calibrated(predict(part.model, part.spec.prepare(graph)), model.task, part.temperature),
        )
        for part in model.parts
        if not isinstance(part.model, NETWORKS) or not_explained(part.model)
    ]


def _batch_statistics(model: Module, graph: Graph, number: int) -> Statistics:
    """Runs the network on a whole graph, if it has such norms, and notes what they see."""
    norms = [
        module
        for module in model.modules()
        if isinstance(module, BatchNorm) and module.running_mean is None
    ]
    found: Statistics = {}

    def note(norm: Module, inputs: tuple[Tensor]) -> None:
        found[norm] = (inputs[0].mean(0), inputs[0].var(0, correction=0))

    if norms:
        if graph.ptr is not None:
            graph = graph.subgraph(torch.arange(*graph.ptr[number : number + 2].tolist()))
        hooks = [norm.register_forward_pre_hook(note) for norm in norms]
        try:
            with torch.no_grad():
                model(graph.features(), graph)
        finally:
            for hook in hooks:
                hook.remove()
    return found
