"""A scikit-learn regressor of whole graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from lgcn.estimator.graph_base import GraphEstimator, ids_of
from lgcn.estimator.inputs import Array
from lgcn.estimator.number_outputs import NumberOutputs
from lgcn.graph import GraphSet

if TYPE_CHECKING:
    import pyarrow as pa


class GraphRegressor(NumberOutputs, RegressorMixin, GraphEstimator):  # type: ignore[misc]
    r"""An LGCN that predicts a number for whole graphs, as a scikit-learn estimator over lists of
    graphs.

    `y` holds one number per graph. NaN and `None` mark graphs without one. Targets are standardised
    for the training, and predictions are in your units.

    Args:
        k, hidden_channels, num_layers, dropout, readout, pooling: See `lgcn.GraphClassifier`.
        lr, weight_decay, batch_size, max_epochs, patience: See `lgcn.GraphClassifier`.
        metric: What chooses the best epoch: `"r2"`, `"rmse"` or `"mae"`. (default: `"r2"`)
        structural_features, device, settings: See `lgcn.GraphClassifier`.
        validation_fraction: Share of the graphs with a target that is held out to choose the best
            epoch and the width of the intervals. (default: 0.2)
        random_state, verbose: See `lgcn.GraphClassifier`.

    Attributes:
        interval_: See `lgcn.LGCNRegressor`.
        graphs_, directed_, encoder_, model_, n_features_in_: See `lgcn.GraphClassifier`.
        n_iter_, loss_curve_, validation_scores_, history_: See `lgcn.LGCNClassifier`.
        settings_, result_: See `lgcn.LGCNClassifier`.
    """

    def predict(self, X: Any = None) -> Array:
        """The predicted numbers of graphs.

        Args:
            X: See `lgcn.GraphClassifier.predict`.
        """
        return self._values(self._other(X))

    def predict_interval(self, X: Any = None, *, level: float | None = None) -> Array:
        """The lower and the upper end of an interval around each prediction, [graphs, 2].

        Args:
            X: See `lgcn.GraphClassifier.predict`.
            level: See `lgcn.LGCNRegressor.predict_interval`.
        """
        values = self.predict(X)
        half = self._half_width(level)
        return np.stack([values - half, values + half], axis=1)

    def score(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> float:
        """The coefficient of determination, R².

        Args:
            X: See `lgcn.GraphClassifier.predict`.
            y: The true numbers; graphs without one (NaN, `None`) do not count. (default: those of
                the graphs; only of test graphs if `X` has a test mask)
            sample_weight: One weight per graph. (default: all one)
        """
        graphs, targets, weight = self._truth(X, y, sample_weight)
        known, predicted = targets.known, self._values(graphs)
        return float(r2_score(targets.y[known], predicted[known], sample_weight=weight))

    def predictions(self, X: Any = None, *, truth: bool = True) -> pa.Table:
        """The predictions as an Arrow table: `graph`, `predicted`, `lower` and `upper`.

        Args:
            X: See `lgcn.GraphClassifier.predict`.
            truth: Add the columns `true` and `split` if the graphs are those of the fit.
                (default: `True`)
        """
        from lgcn.inference.predictions import predicted_values

        graphs = self._other(X)
        return predicted_values(
            self._spec.values(self._logits(graphs)),
            half_width=self.interval_["half_width"],
            node_ids=ids_of(graphs),
            truth=self._known(graphs, truth),
            unit="graph",
        )

    def _values(self, graphs: GraphSet) -> Array:
        found: Array = self._spec.values(self._logits(graphs)).numpy()
        return found

    def _validation_residuals(self) -> Array | None:
        if self.graphs_ is None:
            return None
        val, y = self.graphs_.mask("val"), self.graphs_.y
        assert val is not None
        assert y is not None
        found: Array = (y.numpy() - self.predict())[val.numpy()]
        return found
