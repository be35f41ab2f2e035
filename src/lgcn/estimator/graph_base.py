"""What the estimators over lists of graphs share: settings, inputs, fit, embeddings, saving."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.estimator.fitted import FittedEstimator
from lgcn.estimator.fitting import keep_history, seed_of, settings_of
from lgcn.estimator.inputs import Array
from lgcn.estimator.targets import Targets, split_masks
from lgcn.estimator.weights import as_float32, read_sample_weight
from lgcn.graph import Graph, GraphSet
from lgcn.training import Settings, train
from lgcn.training.graph_scores import score_graphs
from lgcn.utils.progress import epoch_progress

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation
    from lgcn.inference.truth import Truth

# Constructor arguments that are not settings of the training, or have another name there.
OWN = ("class_weight", "settings", "validation_fraction", "random_state", "verbose", "batch_size")


class GraphEstimator(FittedEstimator):
    """The common part of `lgcn.GraphClassifier` and `lgcn.GraphRegressor`."""

    graphs_: GraphSet | None

    unit = "graph"

    def __init__(
        self,
        k: int | None = None,
        *,
        hidden_channels: int | None = None,
        num_layers: int | None = None,
        dropout: float | None = None,
        readout: str | None = None,
        pooling: str | None = None,
        lr: float | None = None,
        weight_decay: float | None = None,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        metric: str | None = None,
        structural_features: bool | str | None = None,
        device: str | None = None,
        settings: dict[str, Any] | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        verbose: bool | None = None,
    ) -> None:
        self.k = k
        self.hidden_channels = hidden_channels
        self.num_layers = num_layers
        self.dropout = dropout
        self.readout = readout
        self.pooling = pooling
        self.lr = lr
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.patience = patience
        self.metric = metric
        self.structural_features = structural_features
        self.device = device
        self.settings = settings
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, sample_weight: Any = None, directed: bool = False
    ) -> Self:
        """Trains the network.

        Args:
            X: The graphs: a list of PyG's `Data`, of NetworkX graphs or of `lgcn.Graph`; or an
                `lgcn.GraphSet`, whose splits are used if it has any.
            y: One target per graph, see the class. (default: those that the graphs hold)
            sample_weight: One weight per graph, at least 0, in the training loss. A graph of weight
                0 is neither trained on nor drawn for validation. (default: all one)
            directed: Whether only an edge's target aggregates from its source. It also holds for
                later graphs. An `lgcn.Graph` stays as it is. (default: `False`)
        """
        self.directed_ = directed
        self.encoder_ = None
        seed = seed_of(self.random_state)
        graphs = self._read(X, labels=y is None)
        if y is None:
            targets = self._targets_of(graphs.targets, False)
        else:
            targets = self._read_y(y, False)
            check_consistent_length(range(len(graphs)), targets.y)
        counted, known = targets, graphs.targets
        if sample_weight is not None:
            weight = read_sample_weight(sample_weight, len(graphs))
            graphs = graphs.with_targets(sample_weight=as_float32(weight))
            counted = targets._replace(known=targets.known & (weight > 0))
        masks = split_masks(
            known if y is None else None, counted, self.validation_fraction, seed, "graph"
        )
        labelled = self._with_targets(graphs.targets, targets)
        graphs = GraphSet(graphs.graph, labelled).with_targets(**masks)
        chosen = self._for_targets(self._chosen(seed), targets, graphs.targets)
        limits = chosen.optimisation
        with epoch_progress(limits.max_epochs, limits.patience, show=self.verbose) as progress:
            start = None if progress is None else progress.start
            result = train(graphs, chosen, on_epoch=progress, on_start=start)
        self.encoder_ = graphs.graph.encoder
        self.graphs_ = graphs
        self.n_features_in_ = graphs.num_features
        self.settings_ = chosen
        self.model_ = result.model
        self.result_ = result.record
        keep_history(self, result.history)
        self.n_iter_ = result.record["epochs"]
        self._spec = result.spec
        self._keep(targets)
        return self

    def transform(self, X: Any = None) -> Array:
        """The embeddings of graphs: what the classifier sees of each.

        Args:
            X: Graphs as in `fit`. (default: those of the fit)
        """
        graphs = self._spec.prepare_graphs(self._other(X))
        found: Array = score_graphs(self.model_, graphs, embed=True).numpy()
        return found

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> Array:
        """`fit`, then the embeddings of the graphs."""
        return self.fit(X, y, **options).transform()

    def explain(
        self,
        graphs: Any,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
        X: Any = None,
    ) -> list[Explanation]:
        """Explains why the model predicts what it predicts for some graphs.

        Args:
            graphs: One id or several; places in the list if the graphs have no ids.
            target: The class or label to explain. (default: the predicted one; if a graph can have
                several labels, the likeliest)
            against: The class to compare with. (default: all other classes)
            counterfactual: Also find what would change the prediction. (default: `False`)
            X: Graphs as in `fit`. (default: those of the fit)
        """
        found = self._spec.prepare_graphs(self._other(X))
        options = {"target": target, "against": against, "counterfactual": counterfactual}
        return self._explain(found, found.targets.node_ids, graphs, **options)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # but a list of graphs
        return tags

    @property
    def graph_(self) -> Graph | None:
        """The graphs of the fit as one graph."""
        return None if self.graphs_ is None else self.graphs_.graph

    def _chosen(self, seed: int) -> Settings:
        given = {key: getattr(self, key) for key in self.get_params() if key not in OWN}
        given["graphs_per_batch"] = self.batch_size
        further = {"model": "graph_lgcn", **(self.settings or {})}
        return settings_of(given, further, "graphs", seed)

    def _read(self, X: Any, *, labels: bool) -> GraphSet:
        """The graphs, with the labels that they hold if these are asked for."""
        if isinstance(X, GraphSet):
            return X if labels else X.with_targets(y=None, label_names=None)
        if isinstance(X, np.ndarray):
            X = X.tolist()
        from lgcn.tables.graph_lists import graphs_from_list

        found: GraphSet = graphs_from_list(
            X,
            own_labels=labels,
            directed=self.directed_,
            encoder=self.encoder_,
            task="regression" if self._tasks == ("regression",) else "classification",
        )
        return found.with_targets(train_mask=None, val_mask=None, test_mask=None)

    def _other(self, X: Any) -> GraphSet:
        """The graphs to predict."""
        check_is_fitted(self)
        if X is None:
            if self.graphs_ is None:
                raise UsageError("X must be graphs: a loaded estimator has none of its own")
            return self.graphs_
        graphs = self._read(X, labels=False)
        if graphs.num_features != self.n_features_in_:
            raise UsageError(
                f"the graphs of X have {graphs.num_features} features per node, but "
                f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        return graphs

    def _logits(self, graphs: GraphSet) -> Tensor:
        """What the network gives for graphs."""
        return score_graphs(self.model_, self._spec.prepare_graphs(graphs))

    def _truth(self, X: Any, y: Any, sample_weight: Any) -> tuple[GraphSet, Targets, Array | None]:
        """The graphs to score, their true targets, and the weights of those known."""
        graphs = self._other(X)
        if y is not None:
            targets = self._read_y(y, True)
            check_consistent_length(range(len(graphs)), targets.y)
        else:
            labelled = graphs if X is None else self._read(X, labels=True)
            targets = self._targets_of(labelled.targets, True)
            test = labelled.mask("test")
            if test is not None and bool(test.any()):
                targets = targets._replace(known=targets.known & test.numpy())
        if not targets.known.any():
            raise UsageError("y must have labels to score, got none: pass the true labels as y=")
        weight = None if sample_weight is None else read_sample_weight(sample_weight, len(graphs))
        return graphs, targets, None if weight is None else weight[targets.known]

    def _known(self, graphs: GraphSet, truth: bool) -> Truth | None:
        """The true targets and the split of the fitted graphs, for a table; else `None`."""
        if not truth or graphs is not self.graphs_:
            return None
        from lgcn.inference.truth import Truth
        from lgcn.training.split_file import split_of

        return Truth.of(graphs.targets, split_of(graphs.targets))


def ids_of(graphs: GraphSet) -> Any:
    """The ids of graphs; their numbers if they have none."""
    ids = graphs.targets.node_ids
    return np.arange(len(graphs)) if ids is None else ids
