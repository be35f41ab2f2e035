"""A scikit-learn classifier of whole graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from lgcn.estimator.class_outputs import ClassOutputs
from lgcn.estimator.graph_base import GraphEstimator, ids_of
from lgcn.estimator.inputs import Array

if TYPE_CHECKING:
    import pyarrow as pa


class GraphClassifier(ClassOutputs, ClassifierMixin, GraphEstimator):  # type: ignore[misc]
    r"""An LGCN that classifies whole graphs, as a scikit-learn estimator over lists of graphs.

    An argument that is `None` has the default that `lgcn settings --set model=graph_lgcn` shows.
    `lgcn.Settings` and `lgcn.GraphLGCN` describe the settings.

    `y` holds one label per graph: integers, strings, booleans, or rows of zeros and ones if a graph
    can have several labels. -1, NaN and `None` mark graphs without a label.

    Args:
        k: Number of values that an LGCL selects per feature.
        hidden_channels: Width of the embedding.
        num_layers: Number of LGCLs.
        dropout: Dropout rate.
        readout: How a graph's nodes become one row, such as `"sum"`, `"mean"`, `"max"` or
            `"k_largest"`, see `lgcn.GraphLGCN`.
        pooling: `"none"`, `"topk"`, `"sag"` or `"cluster"`, see `lgcn.GraphLGCN`.
        lr: Learning rate.
        weight_decay: L2 factor.
        batch_size: Graphs in a mini-batch.
        max_epochs: Largest number of epochs.
        patience: Number of epochs without a better validation score before training stops.
        class_weight: Weight of each class in the training loss: a mapping from your classes to
            numbers, where classes that it omits have 1; or `"balanced"`, inverse to the number of
            training graphs of the class. (default: all one)
        metric: What chooses the best epoch and the threshold, see `lgcn.LGCNClassifier`.
            (default: accuracy, or micro F1 if a graph can have several labels)
        threshold: For two classes, the calibrated probability from which on the second is
            predicted; or `"tuned"`, the one that is best on the validation graphs by the metric.
            (default: tuned if you name a metric that depends on it, else 0.5)
        structural_features: Whether to add degrees, clustering and other numbers that the edges
            give to the features of nodes. (default: only if nodes have no features)
        device: `"auto"`, `"cpu"` or `"cuda"`.
        settings: Further settings of `lgcn.Settings`, by name; `{"model": NAME}` trains another
            model of whole graphs. (default: none)
        validation_fraction: Share of the labelled graphs that is held out to choose the best epoch
            and the temperature of the probabilities. It is ignored if `X` is an `lgcn.GraphSet`
            with a validation mask. With 0 the training graphs are used, and the probabilities are
            too confident. (default: 0.2)
        random_state: Seed of weights, dropout, batches and validation graphs. `None` draws one from
            NumPy's global generator. (default: `None`)
        verbose: Whether to show progress: a bar, or plain lines on standard error if there is no
            terminal. (default: in terminals and notebooks)

    Attributes:
        classes_: The classes; the numbers of the labels if a graph can have several.
        label_names_: Their names, as strings.
        n_features_in_: Number of features per node.
        n_iter_: Number of epochs trained.
        loss_curve_, validation_scores_, history_: See `lgcn.LGCNClassifier`.
        graphs_: The graphs of the fit, with their split; `None` in a loaded estimator.
        directed_: Whether an edge counts for its target only.
        encoder_: How node attributes became features; `None` if the features were numbers.
        model_: The network, with its best weights.
        settings_, result_, temperature_, threshold_, multi_label_: See `lgcn.LGCNClassifier`.

    Example:
        ```python
        import networkx as nx
        import lgcn

        sizes = range(5, 25)
        graphs = [nx.cycle_graph(n) for n in sizes] + [nx.star_graph(n) for n in sizes]
        y = ["ring"] * 20 + ["star"] * 20
        model = lgcn.GraphClassifier(max_epochs=20, random_state=0).fit(graphs, y)
        model.predict([nx.cycle_graph(40)])
        ```
    """

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
        class_weight: Any = None,
        metric: str | None = None,
        threshold: float | str | None = None,
        structural_features: bool | str | None = None,
        device: str | None = None,
        settings: dict[str, Any] | None = None,
        validation_fraction: float = 0.2,
        random_state: Any = None,
        verbose: bool | None = None,
    ) -> None:
        super().__init__(
            k=k,
            hidden_channels=hidden_channels,
            num_layers=num_layers,
            dropout=dropout,
            readout=readout,
            pooling=pooling,
            lr=lr,
            weight_decay=weight_decay,
            batch_size=batch_size,
            max_epochs=max_epochs,
            patience=patience,
            metric=metric,
            structural_features=structural_features,
            device=device,
            settings=settings,
            validation_fraction=validation_fraction,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.threshold = threshold

    def predict(self, X: Any = None) -> Array:
        """The classes of graphs, or rows of zeros and ones if a graph can have several labels.

        Args:
            X: Graphs as in `fit`, of which each node has as many features. (default: those of the
                fit)
        """
        return self._classes_of(self._logits(self._other(X)))

    def predict_proba(self, X: Any = None) -> Array:
        """The calibrated probabilities of the classes, in the order of `classes_`.

        Args:
            X: See `predict`.
        """
        found: Array = self._chances(self._logits(self._other(X))).numpy()
        return found

    def decision_function(self, X: Any = None) -> Array:
        """The confidence scores of graphs, see `lgcn.LGCNClassifier.decision_function`.

        Args:
            X: See `predict`.
        """
        return self._decision_scores(self._logits(self._other(X)))

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """Accuracy; the exact-match ratio if a graph can have several labels.

        Args:
            X: See `predict`.
            y: The true labels; graphs without one (-1, NaN, `None`) do not count. (default: those
                of the graphs; only of test graphs if `X` has a test mask)
            sample_weight: One weight per graph. (default: all one)
        """
        graphs, labels, weight = self._truth(X, y, sample_weight)
        predicted = self._classes_of(self._logits(graphs))
        known = labels.known
        truth = labels.y[known] if self.multi_label_ else self.classes_[labels.y[known]]
        return float(accuracy_score(truth, predicted[known], sample_weight=weight))

    def predictions(
        self, X: Any = None, *, abstain_below: float | None = None, truth: bool = True
    ) -> pa.Table:
        """The predictions as an Arrow table, see `lgcn.inference.predictions.predictions`.

        Args:
            X: See `predict`.
            abstain_below: Confidence below which nothing is predicted. (default: none)
            truth: Add the columns `true` and `split` if the graphs are those of the fit.
                (default: `True`)
        """
        from lgcn.inference.predictions import predictions

        graphs = self._other(X)
        return predictions(
            self._logits(graphs),
            self._names_in_tables(),
            multi_label=self.multi_label_,
            temperature=self.temperature_,
            threshold=self.threshold_,
            node_ids=ids_of(graphs),
            abstain_below=abstain_below,
            truth=self._known(graphs, truth),
            unit="graph",
        )
