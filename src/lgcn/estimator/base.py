"""What the estimators share: settings, inputs, fit, embeddings, saving."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.estimator.fitted import FittedEstimator
from lgcn.estimator.fitting import flat_settings, keep_history, seed_of
from lgcn.estimator.inputs import (
    Array,
    as_features,
    as_graph,
    as_matrix,
    check_nodes,
    graph_of,
    node_numbers,
    nodes_of,
    same_features,
    which_edges,
    with_features,
)
from lgcn.estimator.targets import Targets, split_masks
from lgcn.estimator.weights import as_float32, read_sample_weight, spread_weight
from lgcn.graph import Graph
from lgcn.inference import embed, predict
from lgcn.training import ModelSpec, Result, Settings, train
from lgcn.training.portfolio.choice import DEEP, label_members, wants_several
from lgcn.utils.progress import epoch_progress

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation
    from lgcn.inference.truth import Truth
    from lgcn.tables.encoder import FeatureEncoder

# Constructor arguments that are not settings of the training.
OWN = ("class_weight", "settings", "validation_fraction", "random_state", "warm_start", "verbose")


class LGCNEstimator(FittedEstimator):
    """The common part of `lgcn.LGCNClassifier` and `lgcn.LGCNRegressor`."""

    graph_: Graph | None
    has_edges_: bool
    leaderboard_: list[dict[str, Any]]

    unit = "node"

    def __init__(
        self,
        k: int | None = None,
        *,
        hidden_channels: int | None = None,
        lgcl_channels: int | None = None,
        num_layers: int | None = None,
        dropout: float | None = None,
        activation: str | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        training: str | None = None,
        max_nodes: int | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        metric: str | None = None,
        structural_features: bool | str | None = None,
        positions: str | None = None,
        time_limit: str | None = None,
        device: str | None = None,
        settings: dict[str, Any] | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: bool | None = None,
    ) -> None:
        self.k = k
        self.hidden_channels = hidden_channels
        self.lgcl_channels = lgcl_channels
        self.num_layers = num_layers
        self.dropout = dropout
        self.activation = activation
        self.lr = lr
        self.weight_decay = weight_decay
        self.training = training
        self.max_nodes = max_nodes
        self.max_epochs = max_epochs
        self.patience = patience
        self.metric = metric
        self.structural_features = structural_features
        self.positions = positions
        self.time_limit = time_limit
        self.device = device
        self.settings = settings
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        graph: Any = None,
        *,
        sample_weight: Any = None,
        directed: bool = False,
    ) -> Self:
        """Trains the network. Features and edges are not copied if their types allow it.

        Args:
            X: One of

                - a graph: `lgcn.Graph`, PyG's `Data`, or a NetworkX graph, whose node
                  attribute "y" is the label and whose other attributes are features
                  (`lgcn.from_networkx`). Without features, the model learns from features that
                  the edges give, see `structural_features` and `positions`,
                - features of **all** nodes, [nodes, features]: an array, a SciPy sparse matrix, a
                  tensor or a table of numbers,
                - `None` for `edges` between nodes without features, of which `y` tells the number,
                - numbers of the labelled nodes of `graph`, one-dimensional integers. Use this
                  form with `GridSearchCV`, which splits `X`.
            y: One target per row or number of `X`, see the class. (default: the labels of the
                graph, with its masks)
            edges: With features or `None`: PyG's `edge_index` of shape [2, edges]; a sparse
                [nodes, nodes] tensor, PyG's `adj_t`; or a SciPy sparse matrix, whose entry
                (i, j) is an edge from node i to node j. Values other than 1 are weights. Self-loops
                are left out and duplicates merged. (default: no edges, each node stands alone)
            graph: With node numbers: their graph. (default: `X` is the graph)
            sample_weight: One weight per row or number of `X`, at least 0, in the training loss. A
                node of weight 0 is neither trained on nor drawn for validation.
                (default: those of the graph, else all one)
            directed: Whether only an edge's target aggregates from its source. It also holds for
                later edges and graphs, such as those of `predict`. An `lgcn.Graph`
                stays as it is. (default: `False`, every edge counts both ways)
        """
        warm = self.warm_start and hasattr(self, "model_")
        self.directed_ = directed
        seed = seed_of(self.random_state)
        chosen = self._chosen(seed, warm)
        whole, nodes, labels = self._read(X, y, edges, graph, warm)
        counted = labels
        if sample_weight is not None:
            rows = whole.num_nodes if nodes is None else len(nodes)
            weight = read_sample_weight(sample_weight, rows)
            weight = spread_weight(weight, nodes, whole.num_nodes)
            whole = replace(whole, sample_weight=as_float32(weight))
            counted = labels._replace(known=labels.known & (weight > 0))
        own_masks = None if y is not None or graph is not None else whole
        masks = split_masks(own_masks, counted, self.validation_fraction, seed)
        whole = replace(self._with_targets(whole, labels), **masks)
        asked = self._for_targets(chosen, labels, whole)
        several = wants_several(asked, whole) and not (warm and not _is_limited(asked))
        chosen = asked.resolve(whole)
        # Several models make their own choices.
        result = self._train(whole, asked if several else chosen, several, warm)
        if "labels" in result.record:  # the best of a few settings
            chosen = dict(label_members(asked, whole))[result.record["labels"]].resolve(whole)
        self.encoder_ = whole.encoder
        self.graph_ = whole
        self.has_edges_ = whole.num_edges > 0
        self.settings_ = chosen
        self.model_ = result.model
        self.result_ = result.record
        self._keep_history(result.history)
        self.n_iter_ = result.record["epochs"]
        self._spec = result.spec
        self._keep(labels)
        return self

    def transform(self, X: Any = None, edges: Any = None) -> Array:
        """The embeddings of nodes: what the classifier sees, see `lgcn.LGCN.embed`.

        Args:
            X, edges: See `predict`.
        """
        graph, nodes = self._other(X, edges)
        found: Array = _rows(embed(self.model_, self._spec.prepare(graph)), nodes).cpu().numpy()
        return found

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        edges: Any = None,
        graph: Any = None,
        *,
        sample_weight: Any = None,
        directed: bool = False,
    ) -> Array:
        """`fit`, then the embeddings of the nodes in `X`."""
        self.fit(X, y, edges, graph, sample_weight=sample_weight, directed=directed)
        nodes = None if graph is None else node_numbers(X)
        return self.transform(nodes)

    def explain(
        self,
        nodes: Any,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
        X: Any = None,
        edges: Any = None,
    ) -> list[Explanation]:
        """Explains why the model predicts what it predicts for some nodes.

        Args:
            nodes: One id or several of the graph; numbers if its nodes have no ids.
            target: The class or label to explain. (default: the predicted one; if a node can have
                several labels, the likeliest)
            against: The class to compare with. (default: all other classes)
            counterfactual: Also find what would change the prediction. (default: `False`)
            X, edges: See `predict`. (default: the fitted graph)
        """
        graph, _ = self._other(X, edges)
        options = {"target": target, "against": against, "counterfactual": counterfactual}
        return self._explain(self._spec.prepare(graph), graph.node_ids, nodes, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @abstractmethod
    def _to_json(self) -> dict[str, Any]:
        """Those that a run folder does not hold."""

    @classmethod
    @abstractmethod
    def _from_json(cls, stored: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
        """The attributes in what `_to_json` gave; KeyError, TypeError or ValueError if wrong."""

    def _train(self, graph: Graph, settings: Settings, several: bool, warm: bool) -> Result:
        """Trains a model; or several, within a limit or to choose between two settings."""
        limits = settings.optimisation
        with epoch_progress(
            limits.max_epochs, limits.patience, max_steps=limits.max_steps, show=self.verbose
        ) as progress:
            if not several:
                weights = self.model_.state_dict() if warm else None
                start = None if progress is None else progress.start
                return train(graph, settings, on_epoch=progress, on_start=start, weights=weights)
            if warm:
                raise UsageError(
                    "warm_start must be False with time_limit, which trains several new models"
                )
            from lgcn.training.portfolio import train_portfolio

            return train_portfolio(graph, settings, on_epoch=progress)

    def _keep_history(self, history: list[dict[str, Any]]) -> None:
        self.leaderboard_ = self.result_.get("leaderboard", [])
        keep_history(self, history)

    def _chosen(self, seed: int, warm: bool) -> Settings:
        given = {key: getattr(self, key) for key in self.get_params() if key not in OWN}
        settings = flat_settings(given, self.settings or {}, "tables", seed)
        if warm:  # what depends on the first graph stays, or the weights would not fit
            before = self.settings_
            is_default = settings.get("preset", "default") == "default" and "model" not in settings
            if is_default and before.preset == DEEP["preset"]:  # which validation chose
                settings = {**DEEP, **settings, "preset": DEEP["preset"]}
            else:
                settings.setdefault("labels", "many" if before.labels == "many" else "few")
            for key in ("k", "input_scale"):
                if getattr(Settings.create(**settings).model, key) is None:
                    settings[key] = getattr(before.model, key)
        return Settings.create(**settings)

    def _read(
        self, X: Any, y: Any, edges: Any, graph: Any, warm: bool
    ) -> tuple[Graph, Tensor | None, Targets]:
        """The graph to train on, the nodes that X names, and the targets of all nodes."""
        nodes = None
        if graph is None and X is None and edges is not None and y is not None:
            # Edges alone: training makes features from them.
            whole = graph_of(torch.zeros(len(y), 0), edges, directed=self.directed_)
            self._check_width(whole, reset=not warm)
        elif graph is None:
            whole = self._as_graph(X, edges, reset=not warm)
        else:
            whole, nodes = nodes_of(self._given_graph(graph), X, edges, type(graph))
            self._check_width(whole, reset=not warm)
        if y is not None:
            labels = self._read_y(y, warm)
            check_consistent_length(whole.rowptr[:-1] if nodes is None else nodes, labels.y)
        elif whole.y is not None:
            labels = self._targets_of(whole, warm).take(nodes)
        else:
            raise UsageError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                f"is None: pass {self._wanted_y}"
            )
        return whole, nodes, labels if nodes is None else labels.spread(nodes, whole.num_nodes)

    def _as_graph(self, X: Any, edges: Any, reset: bool) -> Graph:
        """X as a graph, or the graph that X and edges make."""
        graph = self._given_graph(X, None if reset else self.encoder_)
        if graph is None:
            return graph_of(self._features(X, reset), edges, directed=self.directed_)
        if edges is not None:
            raise UsageError("edges must be None if X is a graph, which has its own edges")
        self._check_width(graph, reset)
        return graph

    def _given_graph(self, value: Any, encoder: FeatureEncoder | None = None) -> Graph | None:
        """`value` as a graph if it is one, see `lgcn.estimator.inputs.as_graph`."""
        return as_graph(value, encoder, directed=self.directed_, task=self._tasks[0])

    def _features(self, X: Any, reset: bool) -> Tensor:
        """Features as a tensor, after scikit-learn's checks."""
        options = {"accept_sparse": "csr", "dtype": np.float32}
        return as_features(validate_data(self, as_matrix(X), reset=reset, **options))

    def _check_width(self, graph: Graph, reset: bool) -> None:
        if reset:
            self.n_features_in_ = graph.num_features
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        elif graph.num_features != self.n_features_in_:
            raise UsageError(
                f"X has {graph.num_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )

    def _logits(self, graph: Graph, nodes: Tensor | None) -> Tensor:
        """What the network gives for nodes."""
        return _rows(predict(self.model_, self._spec.prepare(graph)), nodes)

    def _other(self, X: Any, edges: Any) -> tuple[Graph, Tensor | None]:
        """The graph to predict, and its nodes that are asked for."""
        check_is_fitted(self)
        of_fit = isinstance(edges, str) and edges == "fitted"
        if edges is not None and not of_fit:
            if X is None:
                raise UsageError("edges must come with X, the features of their nodes, got X=None")
            return self._as_graph(X, edges, reset=False), None
        numbers = None if X is None else node_numbers(X)
        if X is not None and numbers is None:
            return self._graph_of(X, edges), None
        if self.graph_ is None:
            raise UsageError(
                "X must be a graph, or features with edges: a loaded estimator has no graph"
            )
        if numbers is None:
            return self.graph_, None
        return self.graph_, check_nodes(numbers, self.graph_.num_nodes)

    def _graph_of(self, X: Any, edges: str | None) -> Graph:
        """X as a graph, or the graph that its features belong to."""
        graph = self._given_graph(X, self.encoder_)
        if graph is not None:
            return self._as_graph(graph, edges, reset=False)
        x = self._features(X, reset=False)
        if edges is not None:
            return with_features(self.graph_, x)
        if not self.has_edges_:
            return graph_of(x, None)
        if self.graph_ is not None and same_features(self.graph_.features(), x):
            return self.graph_
        raise UsageError(which_edges(x.size(0), self.graph_))

    def _truth(
        self, X: Any, y: Any, edges: Any, sample_weight: Any
    ) -> tuple[Graph, Tensor | None, Targets, Array | None]:
        """The graph and nodes to score, their true targets, and the weights of those known."""
        graph, nodes = self._other(X, edges)
        rows = graph.num_nodes if nodes is None else len(nodes)
        if y is not None:
            targets = self._read_y(y, fitted=True)
            check_consistent_length(range(rows), targets.y)
        else:
            targets = self._test_targets(graph).take(nodes)
        if not targets.known.any():
            raise UsageError("y must have labels to score, got none: pass the true labels as y=")
        weight = None if sample_weight is None else read_sample_weight(sample_weight, rows)
        return graph, nodes, targets, None if weight is None else weight[targets.known]

    def _known(self, graph: Graph, nodes: Tensor | None, truth: bool) -> Truth | None:
        """The true targets and the split of nodes of the fitted graph, for a table; else `None`."""
        if not truth or graph is not self.graph_:
            return None
        from lgcn.inference.truth import Truth
        from lgcn.training.split_file import split_of

        known = Truth.of(graph, split_of(graph))
        return known if nodes is None else known.take(nodes.numpy())

    def _test_targets(self, graph: Graph) -> Targets:
        """The labels of a graph; only those of its test nodes if it has a test mask."""
        if self.graph_ is not None and graph.y is self.graph_.y:
            assert graph.y is not None
            assert graph.test_mask is not None
            return Targets(graph.y.numpy(), graph.test_mask.numpy())
        labels = self._targets_of(graph, fitted=True)
        if graph.test_mask is None:
            return labels
        return labels._replace(known=labels.known & graph.test_mask.numpy())


def _rows(values: Tensor, nodes: Tensor | None) -> Tensor:
    return values if nodes is None else values[nodes]


def _is_limited(settings: Settings) -> bool:
    return settings.time_limit is not None or settings.max_trials is not None
