"""Explains the predictions of a model on a graph, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError, did_you_mean
from lgcn.explain.columns import Columns
from lgcn.explain.contributions import (
    NO_EDGES,
    NO_FEATURES,
    Contributions,
    contributions,
    threads_for,
)
from lgcn.explain.edge_importance import MaskedEdges
from lgcn.explain.explanation import Explanation
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.parts import fixed_parts, network_parts, on_cpu
from lgcn.explain.report_lists import by_column, by_edge, by_node, selections
from lgcn.explain.selection import as_numbers
from lgcn.graph import Graph
from lgcn.training.calibration import confidence, decide, probabilities
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Ensemble
from lgcn.utils.choices import Unit

if TYPE_CHECKING:
    from lgcn.tables.encoder import FeatureEncoder

VALUE = "value"  # what a regression explains


class NodeExplainer:
    """Explains the predictions of one model on one graph.

    It keeps what all nodes share, so that a node costs little. Explaining a node reads its
    neighbourhood only, unless the model is an ensemble with trees or has batch norms without
    running statistics: these need one pass over the graph.

    Args:
        model: An `lgcn.LGCN`, a `lgcn.nn.residual.ResidualLGCN`, or an ensemble of them.
        graph: The graph, with features as the model takes them; for an ensemble, as the user
            gives it.
        spec: What the model was built for. (default: as the graph says)
        columns: The names of the features. (default: from the encoder)
        encoder: How the user's columns became features. (default: that of the graph)
        node_id: Gives the user's id of a node number. (default: from the graph, else numbers)
        temperature: Softmax temperature of the probabilities. (default: 1)
        threshold: For two classes, the probability from which on the second is predicted.
            (default: the more likely class)
    """

    unit: ClassVar[Unit] = "node"  # what is explained

    def __init__(
        self,
        model: Module,
        graph: Graph,
        *,
        spec: ModelSpec | None = None,
        columns: Columns | None = None,
        encoder: FeatureEncoder | None = None,
        node_id: Callable[[int], Any] | None = None,
        temperature: float = 1.0,
        threshold: float | None = None,
    ) -> None:
        if graph.x is None and not isinstance(model, Ensemble):
            raise UsageError(f"{graph.name} has no features (x), which the model needs")
        self.model = model = on_cpu(model)
        self.graph = graph.to("cpu")
        self.spec = spec_of(model, graph) if spec is None else spec
        self.encoder = graph.encoder if encoder is None else encoder
        if columns is None and not isinstance(model, Ensemble):
            columns = Columns.of(graph.num_features, self.encoder, self.spec.structure)
        of_graphs = self.unit == "graph"
        self.parts = network_parts(model, self.graph, columns, of_graphs=of_graphs)
        self.node_id = ids_of(graph) if node_id is None else node_id
        self.averaged = isinstance(model, Ensemble)
        self.temperature = temperature
        self.threshold = threshold
        self.fixed = fixed_parts(model, self.graph)

    def explain(
        self,
        nodes: Any,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
    ) -> list[Explanation]:
        """Explains nodes, each on its own: the others in the call change nothing.

        Args:
            nodes: Node numbers; those of graphs for `GraphExplainer`.
            target: The class or label to explain, by name. (default: what is predicted; if a node
                can have several labels, the likeliest)
            against: The class to compare with, for "why this and not that".
                (default: all other classes)
            counterfactual: Also find what would change the prediction. (default: `False`)
        """
        wanted, other = self._output("target", target), self._output("against", against)
        if wanted is not None and wanted == other:
            raise UsageError(f"target and against must differ, got {target!r} for both")
        numbers = as_numbers(nodes).tolist()
        for number in numbers:
            self._check(number)
        return [self._explain(number, wanted, other, counterfactual) for number in numbers]

    @property
    def count(self) -> int:
        """How many nodes or graphs can be explained."""
        return self.graph.num_nodes

    def name_of(self, number: int) -> Any:
        """The user's id of what is explained."""
        return self.node_id(number)

    def _check(self, number: int) -> None:
        """Raises UsageError if there is nothing of that number to explain."""
        if not 0 <= number < self.count:
            raise UsageError(f"{self.unit}s must lie between 0 and {self.count - 1}, got {number}")

    def contributions(
        self, node: int, target: int | None = None, against: int | None = None
    ) -> Contributions:
        """The contributions to the score of one node, as tensors.

        Args:
            node: The node number.
            target: The number of the output to explain. (default: as in `explain`)
            against: That of the output to compare with. (default: all others)
        """

        def choose(scores: Tensor) -> tuple[int, int | None]:
            chosen = self.decided(scores) if target is None else target
            if chosen == against:
                name = self._name(chosen)
                raise UsageError(f"against must differ from the explained class, got {name!r}")
            return chosen, against

        self._check(node)
        return contributions(
            self.parts,
            self.fixed,
            node,
            task=self.spec.task,
            averaged=self.averaged,
            temperature=self.temperature,
            choose=choose,
        )

    def important_edges(
        self, node: int, target: int | None = None, *, thorough: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Ranks edges by how much a prediction depends on them, for or against it.

        Contributions say what each edge adds; the ranking says which few edges to keep or to cut.
        It is for a single network.

        Args:
            node: The node number.
            target: The number of the output. (default: as in `explain`)
            thorough: Try the first edges in the network, for classes; takes several times as long.
                (default: `False`)

        Returns:
            The places of the edges in the graph's adjacency, and their importance.
        """
        if self.averaged:
            raise UsageError("important_edges is for a single network, got an ensemble")
        if thorough and self.spec.task != "classification":
            raise UsageError(f"thorough is for classes, got a model for {self.spec.task}")
        (part,) = self.parts
        field = part.field(node)
        with threads_for([field]):
            worlds = MaskedEdges(part, field, node)
            importance = worlds.importance(
                self.spec.task, lambda scores: self.decided(scores) if target is None else target
            )
            if thorough:
                importance = worlds.thorough_importance(importance)
        return field.entry, importance

    def _explain(
        self, node: int, target: int | None, against: int | None, counterfactual: bool
    ) -> Explanation:
        found = self.contributions(node, target, against)
        with threads_for([share.field for share in found.shares]):
            return self._told(node, found, target, against, counterfactual)

    def _told(
        self,
        node: int,
        found: Contributions,
        target: int | None,
        against: int | None,
        counterfactual: bool,
    ) -> Explanation:
        scores = found.scores[0]
        chosen = self.decided(scores) if target is None else target
        scale = self.spec.target_scale if self.spec.task == "regression" else 1.0
        shift = self.spec.target_mean if self.spec.task == "regression" else 0.0
        predicted, sure = self.prediction(scores)
        selected, readouts, units = selections(found, scale, self.node_id)
        values = [float(number) * scale + shift for number in found.explained]
        changes = None
        if counterfactual:
            from lgcn.explain.counterfactual import find_changes

            changes = find_changes(self, node, found)
        return Explanation(
            node=self.name_of(node),
            predicted=predicted,
            confidence=sure,
            explained=self._name(chosen),
            against=None if against is None else self._name(against),
            score=values[0],
            baseline=values[NO_FEATURES],
            without_edges=values[NO_EDGES],
            by_node=by_node(found, scale, self.node_id),
            by_edge=by_edge(found, scale, self.node_id),
            by_column=by_column(found, scale),
            selected=selected,
            units=units,
            nodes_read=max(len(share.field.nodes) for share in found.shares),
            counterfactual=changes,
            notes=self._notes(found),
            unit=self.unit,
            readouts=readouts,
        )

    def with_made_features(self, field: Neighbourhood) -> Neighbourhood:
        """A field whose edges were changed, with the features that the model makes of them.

        Those of a node's neighbourhood stay as they are: they may depend on the whole graph.
        """
        return field

    @property
    def given_features(self) -> int:
        """Features that the user gives, which come before those that the edges give."""
        return self.graph.num_features if self.averaged else self.spec.given_features

    @property
    def described_columns(self) -> list[dict[str, Any]]:
        """The user's columns in the order of the features; none if they came as numbers."""
        encoder = self.encoder
        if encoder is None or encoder.num_features != self.given_features:
            return []
        stored = encoder.to_dict()["columns"]
        return [
            {**described, "width": info.width}
            for described, info in zip(stored, encoder.columns, strict=True)
        ]

    def _notes(self, found: Contributions) -> tuple[str, ...]:
        notes = [
            f"{one.name} ({one.weight:.0%} of the ensemble) is not explained: its prediction is "
            "held as it is"
            for one in self.fixed
        ]
        if all(share.field.graph.rowptr[1] == 0 for share in found.shares):
            notes.append("the node has no neighbours")
        if not any(share.chosen for share in found.shares):
            notes.append("the model has no LGCL, so nothing is selected")
        if len(self.parts) > 1:
            notes.append(
                f"{len(self.parts)} networks are averaged; the selections are those of the one "
                "with LGCLs that counts most"
            )
        return tuple(notes)

    def decided(self, scores: Tensor) -> int:
        """The output that is explained by default."""
        if self.spec.task == "regression":
            return 0
        if self.spec.multi_label:
            return int(scores.argmax())
        return int(decide(self._chances(scores), self.threshold))

    def prediction(self, scores: Tensor) -> tuple[Any, float | None]:
        """The prediction by the scores [outputs], and its probability."""
        if self.spec.task == "regression":
            return float(self.spec.values(scores)), None
        chances = self._chances(scores)
        if self.spec.multi_label:
            names = [self._name(i) for i in (chances[0] > 0.5).nonzero().flatten().tolist()]
            return ";".join(names), float(confidence(chances, True))
        chosen = self.decided(scores)
        return self._name(chosen), float(chances[0, chosen])

    def _chances(self, scores: Tensor) -> Tensor:
        return probabilities(scores[None].float(), self.spec.multi_label)

    def _name(self, output: int) -> str:
        return VALUE if self.spec.task == "regression" else str(self.spec.class_names[output])

    def _output(self, argument: str, name: Any) -> int | None:
        """The number of an output by its name."""
        if name is None:
            return None
        if self.spec.task == "regression":
            raise UsageError(f"{argument} is for classes, and the model predicts a number")
        names = [str(one) for one in self.spec.class_names]
        if str(name) not in names:
            raise UsageError(
                f"{argument} must be a class of the model, got {str(name)!r}; "
                f"{did_you_mean(name, names)}"
            )
        return names.index(str(name))


def explain_nodes(
    model: Module,
    graph: Graph,
    nodes: Any,
    *,
    target: Any = None,
    against: Any = None,
    counterfactual: bool = False,
    feature_names: Sequence[str] | None = None,
) -> list[Explanation]:
    """Explains why a network predicts what it predicts for some nodes.

    ```python
    graph = lgcn.load_dataset("digits")
    model = lgcn.LGCN(graph.num_features, graph.num_classes)
    (found,) = lgcn.explain_nodes(model, graph, [0])
    found.by_node[:3]  # the nodes that mattered most
    ```

    Args:
        model: An `lgcn.LGCN`, a `lgcn.nn.residual.ResidualLGCN`, or an ensemble of them.
        graph: The graph, with features as the model takes them; for an ensemble, as the user
            gives it.
        nodes: Node numbers.
        target: The class or label to explain, by name. (default: the predicted one)
        against: The class to compare with. (default: all other classes)
        counterfactual: Also find what would change the prediction. (default: `False`)
        feature_names: One name per feature. (default: from the graph's encoder, else numbers)
    """
    columns = None
    if feature_names is not None:
        if len(feature_names) != graph.num_features:
            raise UsageError(
                f"feature_names must have one name per feature ({graph.num_features}), got "
                f"{len(feature_names)}"
            )
        columns = Columns.of(graph.num_features, feature_names=feature_names)
    explainer = NodeExplainer(model, graph, columns=columns)
    return explainer.explain(nodes, target=target, against=against, counterfactual=counterfactual)


def spec_of(model: Module, graph: Graph) -> ModelSpec:
    """What a model was built for, as far as it and the graph tell."""
    if isinstance(model, Ensemble):
        return model.parts[0].spec
    layer: Any = getattr(model, "classifier", None)
    outputs = getattr(layer, "out_channels", graph.num_outputs)
    names = graph.label_names
    known = names is not None and len(names) == outputs and graph.task != "regression"
    return ModelSpec(graph.num_features, outputs, graph.task, names if known else None)


def ids_of(graph: Graph) -> Callable[[int], Any]:
    """Names nodes by the ids that the graph holds, else by their numbers."""
    ids = graph.node_ids
    if ids is None:
        return int
    return lambda node: _plain(ids[node])


def _plain(value: Any) -> Any:
    """An id as a plain value of Python, which JSON can hold."""
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool) else str(value)
