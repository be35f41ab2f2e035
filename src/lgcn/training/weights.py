"""The weights of the training nodes in the loss, and the graph that batches are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lgcn.errors import UsageError, did_you_mean
from lgcn.graph import Graph
from lgcn.training.metric_names import NODES_HAVE
from lgcn.training.model_spec import ModelSpec
from lgcn.training.settings import Settings


def training_graph(graph: Graph, settings: Settings, spec: ModelSpec) -> Graph:
    """The graph as batches are made of it: with the weights of the loss and standardised targets.

    Args:
        graph: The graph, checked by `lgcn.training.checks.check_trainable`.
        settings: The settings, of which ``class_weight`` matters.
        spec: What the model was built for.
    """
    weight = loss_weight(graph, settings.optimisation.class_weight)
    if graph.sample_weight is not None or weight is not None:
        graph = replace(graph, sample_weight=weight)
    if spec.task == "regression":
        assert graph.y is not None
        graph = replace(graph, y=spec.standardised(graph.y))
    return graph


def loss_weight(graph: Graph, class_weight: str | Mapping[str, float] = "none") -> Tensor | None:
    """The weight of each node in the loss, with mean one over the training nodes.

    It is the product of `lgcn.Graph.sample_weight` and the weight of the node's class. ``None`` if
    all training nodes weigh the same. Nodes outside of training have weight 0.

    Args:
        graph: The graph, with labels and training nodes.
        class_weight: ``"none"``; ``"balanced"``, n / (classes * n_c) with n_c of the n training
            nodes, as in scikit-learn; or weights by class name, 1 for classes without one.
            (default: ``"none"``)
    """
    assert graph.y is not None
    assert graph.train_mask is not None
    nodes = graph.train_mask.nonzero().squeeze(1)
    weight = torch.ones(len(nodes), dtype=torch.float64)
    if graph.sample_weight is not None:
        weight = graph.sample_weight.detach()[nodes].double().cpu()
    if class_weight != "none":
        weight = weight * _of_classes(graph, nodes, class_weight)
    total = float(weight.sum())
    if not total > 0:
        raise UsageError(
            "the weights of the training nodes sum to zero: class_weight gives 0 to all of their "
            "classes. Give some a weight above 0"
        )
    if bool((weight == weight[0]).all()):
        return None
    weight = weight * (len(nodes) / total)
    of_nodes = torch.zeros(graph.num_nodes)
    of_nodes[nodes.cpu()] = weight.float()
    return of_nodes.to(graph.y.device)


def _of_classes(graph: Graph, nodes: Tensor, class_weight: str | Mapping[str, float]) -> Tensor:
    if graph.task != "classification":
        raise UsageError(
            f"class_weight needs one class per node, {graph.name} has {NODES_HAVE[graph.task]}. "
            "Give weights per node instead, by sample_weight"
        )
    assert graph.y is not None
    y = graph.y[nodes].cpu().numpy()
    names = tuple(graph.label_names or map(str, range(graph.num_classes)))
    counts = np.bincount(y, minlength=len(names))
    return torch.from_numpy(class_weights(names, counts, class_weight, graph.name)[y])


def class_weights(
    names: Sequence[str],
    counts: Sequence[int] | NDArray[Any],
    class_weight: str | Mapping[str, float],
    graph_name: str,
) -> NDArray[Any]:
    """The weight of each class.

    Args:
        names: The names of the classes.
        counts: Training nodes of each class.
        class_weight: See `loss_weight`; not ``"none"``.
        graph_name: For messages.
    """
    counts = np.asarray(counts)
    if isinstance(class_weight, str):
        there = counts > 0
        return np.where(there, counts.sum() / (there.sum() * np.maximum(counts, 1)), 0.0)
    for name in class_weight:
        if name not in names:
            raise UsageError(
                f"class_weight names the class {name!r:.80}, which {graph_name} does not have; "
                f"{did_you_mean(name, names)}"
            )
    return np.array([float(class_weight.get(name, 1.0)) for name in names])
