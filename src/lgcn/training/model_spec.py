"""What a model was built for; building it again and loading its weights."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from lgcn.errors import START_AGAIN, CheckpointError, DataError, UsageError, one_line
from lgcn.training.groups import LGCNSettings
from lgcn.training.metric_names import NODES_HAVE
from lgcn.training.structure import Structure
from lgcn.utils.choices import Task, Unit
from lgcn.utils.limits import MAX_CLASSES
from lgcn.utils.memory import check_memory
from lgcn.utils.stored_json import strings

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from lgcn.graph import Graph, GraphSet
    from lgcn.training.settings import Settings

# PyG generates code when the first layer of a class is built. Two threads at once would break it.
_building = threading.Lock()
TRAINED = 4  # tensors per weight in training: the weight, its gradient and two moments


@dataclass(frozen=True)
class ModelSpec:
    """What a model was built for. Graphs to predict must match it.

    Args:
        num_features: Features per node.
        num_classes: Outputs of the network: one per class or label, one for a regression.
        task: What it predicts, see `lgcn.Graph.task`. (default: ``"classification"``)
        label_names: The names of the classes or labels. (default: their numbers)
        target_mean, target_scale: For a regression, mean and standard deviation of the training
            targets. The network predicts targets minus the mean, divided by the deviation.
            (default: 0 and 1)
        structure: How features that the edges give are made. (default: there are none)
        unit: What is predicted: ``"node"`` or ``"graph"``. (default: ``"node"``)
        edge_mean, edge_deviation: Of each edge feature, over the edges of the training. The network
            reads standardised features. (default: it reads none)
    """

    num_features: int
    num_classes: int
    task: Task = "classification"
    label_names: tuple[str, ...] | None = None
    target_mean: float = 0.0
    target_scale: float = 1.0
    structure: Structure | None = None
    unit: Unit = "node"
    edge_mean: tuple[float, ...] = ()
    edge_deviation: tuple[float, ...] = ()

    @classmethod
    def of(cls, graph: Graph, settings: Settings | None = None) -> ModelSpec:
        """The specification of a model for a graph.

        Args:
            graph: The graph as the user gave it.
            settings: They may add features that the edges give. (default: none are added)
        """
        structure = None if settings is None else Structure.fit(graph, settings)
        spec = cls._of(graph.num_features, graph, structure)
        if settings is None or graph.edge_attr is None or not settings.model.reads_edge_features:
            return spec
        mean, deviation = edge_moments(graph)
        return replace(spec, edge_mean=mean, edge_deviation=deviation)

    @classmethod
    def of_graphs(cls, graphs: GraphSet, settings: Settings) -> ModelSpec:
        """The specification of a model for whole graphs.

        Args:
            graphs: The graphs as the user gave them.
            settings: They may add features that the edges give.
        """
        train = graphs.mask("train")
        assert train is not None
        # Features are scaled by the nodes of the training graphs.
        nodes = replace(graphs.graph, train_mask=train.repeat_interleave(graphs.sizes))
        structure = Structure.fit(nodes, settings)
        spec = cls._of(graphs.num_features, graphs.targets, structure)
        return replace(spec, unit="graph")

    @classmethod
    def _of(cls, num_features: int, labelled: Graph, structure: Structure | None) -> ModelSpec:
        """The specification for so many features of nodes and these labels."""
        spec = cls(
            num_features + (0 if structure is None else structure.width),
            labelled.num_outputs,
            labelled.task,
            labelled.label_names,
            structure=structure,
        )
        if spec.task != "regression":
            return spec
        assert labelled.y is not None
        assert labelled.train_mask is not None
        targets = labelled.y[labelled.train_mask.to(labelled.y.device)].double().cpu().numpy()
        mean, scale = float(targets.mean()), float(targets.std())
        return replace(spec, label_names=None, target_mean=mean, target_scale=scale)

    @property
    def edge_channels(self) -> int:
        """Number of features per edge that the model reads."""
        return len(self.edge_mean)

    @property
    def given_features(self) -> int:
        """Number of features per node of the graph as the user gives it."""
        return self.num_features - (0 if self.structure is None else self.structure.width)

    def prepare(self, graph: Graph) -> Graph:
        """The graph with the features that the model takes. Call it once, before the model.

        It adds the features that the edges give, if the model uses any, and standardises those of
        the edges.

        Args:
            graph: The graph as the user gave it.
        """
        if self.edge_channels:
            graph = self._with_edge_features(graph)
        if self.structure is None:
            return graph
        if graph.num_features != self.given_features:
            raise UsageError(
                f"the model wants {self.given_features} features per node, to which it adds "
                f"{self.structure.width} that the edges give; {graph.name} has {graph.num_features}"
            )
        return self.structure.add_to(graph)

    def _with_edge_features(self, graph: Graph) -> Graph:
        attr = graph.edge_attr
        if attr is None or attr.size(1) != self.edge_channels:
            raise UsageError(
                f"the model wants {self.edge_channels} features per edge, {graph.name} has "
                f"{graph.num_edge_features}: give the graph the edge features of the training "
                "(edge_attr, or the edge table with its columns)"
            )
        if not bool(attr.isfinite().all()):
            raise UsageError(
                f"the edge features (edge_attr) of {graph.name} must be finite, some are NaN or inf"
            )
        mean, deviation = (attr.new_tensor(one) for one in (self.edge_mean, self.edge_deviation))
        return replace(graph, edge_attr=(attr - mean) / deviation)

    def prepare_graphs(self, graphs: GraphSet) -> GraphSet:
        """The same for whole graphs."""
        from lgcn.graph import GraphSet

        return GraphSet(self.prepare(graphs.graph), graphs.targets)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ModelSpec:
        """The stored specification, checked; raises ValueError or TypeError."""
        stored = dict(stored)
        if "task" not in stored:  # files of earlier versions
            several = stored.pop("multi_label")
            if not isinstance(several, bool):
                raise ValueError("multi_label must be true or false")
            stored["task"] = "multilabel" if several else "classification"
        spec = cls(**stored)
        # An ensemble takes graphs without features: each of its models makes its own.
        for key, least in (("num_features", 0), ("num_classes", 1)):
            if type(getattr(spec, key)) is not int or getattr(spec, key) < least:
                raise ValueError(f"{key} must be a whole number of at least {least}")
        if spec.num_classes > MAX_CLASSES:
            raise ValueError(f"num_classes must be at most {MAX_CLASSES}, got {spec.num_classes}")
        if spec.task not in get_args(Task):
            raise ValueError(f"task must be one of {', '.join(get_args(Task))}")
        if spec.unit not in get_args(Unit):
            raise ValueError(f"unit must be one of {', '.join(get_args(Unit))}")
        for key in ("target_mean", "target_scale"):
            value = getattr(spec, key)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value):
                raise ValueError(f"{key} must be a finite number")
        if spec.target_scale <= 0:
            raise ValueError("target_scale must be above 0")
        if spec.task == "regression" and (spec.num_classes != 1 or spec.label_names is not None):
            raise ValueError("a regression must have one output and no label_names")
        spec = replace(
            spec, edge_mean=tuple(spec.edge_mean), edge_deviation=tuple(spec.edge_deviation)
        )
        numbers = (*spec.edge_mean, *spec.edge_deviation)
        if not all(isinstance(one, float) and math.isfinite(one) for one in numbers):
            raise ValueError("edge_mean and edge_deviation must have finite numbers")
        if len(spec.edge_mean) != len(spec.edge_deviation) or min((1, *spec.edge_deviation)) <= 0:
            raise ValueError("edge_deviation must have a number above 0 per number in edge_mean")
        if spec.structure is not None:
            spec = replace(spec, structure=Structure.from_dict(spec.structure))
            assert spec.structure is not None
            if spec.structure.width > spec.num_features:
                raise ValueError(f"num_features must be at least {spec.structure.width}")
        if spec.label_names is None:
            return spec
        try:
            names = strings(spec.label_names, "label_names")
        except DataError as error:
            raise ValueError(str(error)) from error
        if len(names) != spec.num_classes:
            raise ValueError(f"label_names must have {spec.num_classes} names, got {len(names)}")
        return replace(spec, label_names=tuple(names))

    @property
    def multi_label(self) -> bool:
        """Whether a node can have several labels."""
        return self.task == "multilabel"

    def values(self, outputs: Tensor) -> Tensor:
        """The predictions of a regression in the units of the target, [nodes], in float64.

        Args:
            outputs: Those of the network, [nodes, 1].
        """
        return outputs.detach().double().reshape(-1) * self.target_scale + self.target_mean

    def standardised(self, y: Tensor) -> Tensor:
        """The targets of a regression in the units of the network, in float32."""
        return ((y.double() - self.target_mean) / self.target_scale).float()

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes or labels, by default their numbers; none for a regression."""
        if self.task == "regression":
            return ()
        return self.label_names or tuple(str(number) for number in range(self.num_classes))

    def build(self, settings: Settings) -> Module:
        """A model with new weights."""
        with _building:
            return settings.build_model(self.num_features, self.num_classes, self.edge_channels)

    def build_without_memory(self, settings: Settings) -> Module:
        """A model whose weights have shapes but no values; raises ValueError if it is too large."""
        import torch

        try:
            with torch.device("meta"):
                return self.build(settings)
        except (RuntimeError, OverflowError, TypeError) as error:  # a size beyond 64 bits
            raise ValueError(f"cannot build a model of these sizes: {one_line(error)}") from error

    def check_memory(self, settings: Settings) -> None:
        """Raises UsageError if the model is too large to be trained or stored."""
        if self.num_classes > MAX_CLASSES:
            raise UsageError(
                f"there can be at most {MAX_CLASSES} classes, got {self.num_classes}. Is the label "
                "column a number or an id instead of a class?"
            )
        try:
            model = self.build_without_memory(settings)
        except ValueError as error:
            raise UsageError(str(error)) from error
        what = (
            f"training a model of {self.num_features} features, {self.num_classes} classes, "
            f"hidden_channels={settings.model.hidden_channels}"
        )
        if isinstance(settings.model, LGCNSettings):
            what += f" and k={settings.model.k}"
        check_memory(TRAINED * _num_bytes(model), what)

    def check(self, graph: Graph) -> None:
        """Raises UsageError if the graph does not fit."""
        self._check_features(graph)
        self._check_labels(graph)

    def check_graphs(self, graphs: GraphSet) -> None:
        """Raises UsageError if whole graphs do not fit."""
        self._check_features(graphs.graph)
        self._check_labels(graphs.targets)

    def _check_features(self, graph: Graph) -> None:
        if graph.num_features != self.num_features:
            raise UsageError(
                f"the model wants {self.num_features} features per node, "
                f"{graph.name} has {graph.num_features}"
            )

    def _check_labels(self, graph: Graph) -> None:
        if graph.y is not None and graph.task != self.task:
            wants, has = (
                NODES_HAVE[task].replace("node", self.unit) for task in (self.task, graph.task)
            )
            raise UsageError(f"the model predicts {wants}, {graph.name} has {has}")
        if graph.y is not None and graph.num_classes > self.num_classes:
            raise UsageError(
                f"the model knows {self.num_classes} classes, {graph.name} has {graph.num_classes}"
            )


def edge_moments(graph: Graph) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each edge feature; a constant one has the deviation 1.

    If the splits are separate graphs, the edges of the training graphs alone count.

    Args:
        graph: The graph of the training, with edge features.
    """
    attr = graph.edge_attr
    assert attr is not None
    if graph.inductive:
        assert graph.train_mask is not None
        of_training = graph.train_mask.repeat_interleave(graph.rowptr.diff().long())
        attr = attr[of_training]
    values = attr.detach().double().cpu().numpy()
    if not len(values):
        return (0.0,) * attr.size(1), (1.0,) * attr.size(1)
    mean, deviation = values.mean(0), values.std(0)
    deviation[deviation <= 1e-6 * abs(mean)] = 1.0  # constant, up to rounding
    return tuple(mean.tolist()), tuple(deviation.tolist())


def load_weights(
    model: Module, weights: dict[str, Tensor], path: Path, *, assign: bool = False
) -> None:
    """Loads weights that were read from ``path`` into a model.

    Args:
        model: The model.
        weights: Its ``state_dict``.
        path: The file, for messages.
        assign: Use the tensors themselves instead of copying their values. (default: ``False``)
    """
    try:
        own = model.state_dict()
        for name, value in weights.items():
            if name in own and value.is_floating_point() != own[name].is_floating_point():
                raise ValueError(f"{name} must hold {own[name].dtype}, got {value.dtype}")
        model.load_state_dict(weights, assign=assign)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"the weights in {path} do not fit the run's settings: {one_line(error)}. {START_AGAIN}"
        ) from error


def _num_bytes(model: Module) -> int:
    return sum(p.numel() * p.element_size() for p in model.parameters())
