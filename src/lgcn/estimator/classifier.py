"""A scikit-learn classifier: predict, predict_proba, score, and tables of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from lgcn.estimator.base import LGCNEstimator
from lgcn.estimator.class_outputs import ClassOutputs
from lgcn.estimator.inputs import Array

if TYPE_CHECKING:
    import pyarrow as pa


class LGCNClassifier(ClassOutputs, ClassifierMixin, LGCNEstimator):  # type: ignore[misc]
    r"""An LGCN that classifies the nodes of a graph, as a scikit-learn estimator.

    An argument that is `None` has the default for your own data, which `lgcn settings --dataset
    tables` shows. `lgcn.Settings` and `lgcn.LGCN` describe the settings.

    `y` holds one label per node: integers, strings, booleans, or rows of zeros and ones if a node
    can have several labels. -1, NaN and `None` mark nodes without a label.

    Args:
        k: Number of values that an LGCL selects per feature.
        hidden_channels: Width of the embedding.
        lgcl_channels: Number of features that each LGCL adds, unless `cnn` is `"shared"`.
        num_layers: Number of LGCLs.
        dropout: Dropout rate of the features of each layer.
        activation: `"none"`, `"relu"`, `"elu"` or `"gelu"`.
        lr: Learning rate.
        weight_decay: L2 factor.
        training: `"whole"`, `"subgraph"` or `"auto"`, which trains on the whole graph unless that
            would need much time or memory. (default: `"auto"`)
        max_nodes: Number of nodes of a sub-graph.
        max_epochs: Largest number of epochs.
        patience: Number of epochs without a better validation score before training stops.
        class_weight: Weight of each class in the training loss: a mapping from your classes to
            numbers, where classes that it omits have 1; or `"balanced"`, inverse to the number of
            training nodes of the class. (default: all one)
        metric: What chooses the best epoch and the threshold: `"accuracy"`,
            `"balanced_accuracy"`, `"macro_f1"`, `"micro_f1"`, `"roc_auc"`, `"average_precision"`
            or `"log_loss"`. (default: accuracy, or micro F1 if a node can have several labels)
        threshold: For two classes, the calibrated probability from which on the second is
            predicted; or `"tuned"`, the one that is best on the validation nodes by the metric.
            (default: tuned if you name a metric that depends on it, else 0.5)
        structural_features: Whether to add degrees, clustering and other numbers that the edges
            give to the features. (default: only if the graph has no features)
        positions: Coordinates of the nodes to add to the features: `"spectral"`, `"learnt"` or
            `"none"`. (default: only if the graph has no features)
        time_limit: Time for trying several models and averaging the best, such as `"10m"`.
            (default: one model is trained)
        device: `"auto"`, `"cpu"` or `"cuda"`.
        settings: Further settings of `lgcn.Settings`, by name. (default: none)
        validation_fraction: Share of the labelled nodes that is held out to choose the best epoch
            and the temperature of the probabilities. It is ignored if the graph has a validation
            mask. With 0 the training nodes are used, and the probabilities are too confident.
            (default: 0.2)
        random_state: Seed of weights, dropout, sub-graphs and validation nodes. `None` draws one
            from NumPy's global generator. (default: `None`)
        warm_start: Start `fit` from the weights of the previous fit, with its classes.
            (default: `False`)
        verbose: Whether to show progress: a bar, or plain lines on standard error if there is no
            terminal. (default: in terminals and notebooks)

    Attributes:
        classes_: The classes; the numbers of the labels if a node can have several.
        label_names_: Their names, as strings; those of the graph if it has any.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, if `X` was a table with column names.
        n_iter_: Number of epochs trained.
        loss_curve_: Training loss of each epoch that was evaluated: all of them unless the
            setting `evaluate_every` is above 1.
        validation_scores_: Validation score of these epochs, by `metric`.
        history_: Both with the number of the epoch, and the validation loss.
        graph_: The graph of the last fit; `None` in a loaded estimator.
        has_edges_: Whether that graph had edges.
        directed_: Whether an edge counts for its target only.
        encoder_: How the user's columns became features, for reading new tables the same way;
            `None` if the features were numbers.
        model_: The `lgcn.LGCN`, with its best weights; with `time_limit`, an ensemble of models.
        leaderboard_: With `time_limit`, one row per model that was tried, else empty.
        settings_: The settings of the training, with all automatic choices made.
        result_: What was measured: scores, best epoch, temperature, calibration errors.
        temperature_: Softmax temperature.
        threshold_: Probability from which on the second of two classes is predicted; `None` with
            more classes, of which the most likely is predicted.
        multi_label_: Whether a node can have several labels.
    """

    _wanted_y = "one label per node, -1 if it is unknown"

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
        class_weight: Any = None,
        metric: str | None = None,
        threshold: float | str | None = None,
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
        super().__init__(
            k=k,
            hidden_channels=hidden_channels,
            lgcl_channels=lgcl_channels,
            num_layers=num_layers,
            dropout=dropout,
            activation=activation,
            lr=lr,
            weight_decay=weight_decay,
            training=training,
            max_nodes=max_nodes,
            max_epochs=max_epochs,
            patience=patience,
            metric=metric,
            structural_features=structural_features,
            positions=positions,
            time_limit=time_limit,
            device=device,
            settings=settings,
            validation_fraction=validation_fraction,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.threshold = threshold

    def predict(self, X: Any = None, edges: Any = None) -> Array:
        """The classes of nodes, or rows of zeros and ones if a node can have several labels.

        The features of the fit, or equal ones, stand for the fitted graph with its edges. Other
        features without `edges` are refused if the fitted graph had edges: nothing says which
        neighbours their nodes have. To change features of the fitted graph and keep its edges, as
        scikit-learn's `permutation_importance` does, pass
        `scoring=lambda model, X, y: model.score(X, y, edges="fitted")` to it.

        Args:
            X: Numbers of nodes of the fitted graph; or another graph, or its features, with as many
                features as the fitted one. (default: all nodes of the fitted graph)
            edges: With features: the edges of the other graph, see `fit`; an empty [2, 0]
                array if it has none; or `"fitted"`, the edges of the fitted graph for new
                features of all its nodes. (default: those of the fit for the features of the fit;
                none if the fit had none)
        """
        return self._classes_of(self._logits(*self._other(X, edges)))

    def predict_proba(self, X: Any = None, edges: Any = None) -> Array:
        """The calibrated probabilities of the classes, in the order of `classes_`.

        Args:
            X, edges: See `predict`.
        """
        found: Array = self._chances(self._logits(*self._other(X, edges))).cpu().numpy()
        return found

    def decision_function(self, X: Any = None, edges: Any = None) -> Array:
        """The confidence scores of nodes, as in scikit-learn.

        For two classes, one number per node: the calibrated log-odds of the second class minus
        those of the threshold, so that it is positive where `predict` gives the second class. For
        more classes, one score per class, the largest of which is predicted. If a node can have
        several labels, the calibrated log-odds of each label, [nodes, labels].

        Args:
            X, edges: See `predict`.
        """
        return self._decision_scores(self._logits(*self._other(X, edges)))

    def score(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, edges: Any = None
    ) -> float:
        """Accuracy; the exact-match ratio if a node can have several labels.

        Args:
            X, edges: See `predict`.
            y: The true labels; nodes without one (-1, NaN, `None`) do not count. (default: those
                of the graph; only of its test nodes if it has a test mask)
            sample_weight: One weight per node. (default: all one)
        """
        graph, nodes, labels, weight = self._truth(X, y, edges, sample_weight)
        predicted = self._classes_of(self._logits(graph, nodes))
        known = labels.known
        truth = labels.y[known] if self.multi_label_ else self.classes_[labels.y[known]]
        return float(accuracy_score(truth, predicted[known], sample_weight=weight))

    def predictions(
        self,
        X: Any = None,
        edges: Any = None,
        *,
        abstain_below: float | None = None,
        truth: bool = True,
    ) -> pa.Table:
        """The predictions as an Arrow table, see `lgcn.inference.predictions.predictions`.

        Args:
            X, edges: See `predict`.
            abstain_below: Confidence below which nothing is predicted. (default: none)
            truth: Add the columns `true` and `split` if the nodes are those of the fit.
                (default: `True`)
        """
        from lgcn.inference.predictions import predictions

        graph, nodes = self._other(X, edges)
        ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        return predictions(
            self._logits(graph, nodes),
            self._names_in_tables(),
            multi_label=self.multi_label_,
            temperature=self.temperature_,
            threshold=self.threshold_,
            node_ids=ids if nodes is None else ids[nodes.numpy()],
            abstain_below=abstain_below,
            truth=self._known(graph, nodes, truth),
        )
