"""A scikit-learn regressor: predict, intervals, score, and tables of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from torch import Tensor

from lgcn.estimator.base import LGCNEstimator
from lgcn.estimator.inputs import Array
from lgcn.estimator.number_outputs import NumberOutputs
from lgcn.graph import Graph

if TYPE_CHECKING:
    import pyarrow as pa


class LGCNRegressor(NumberOutputs, RegressorMixin, LGCNEstimator):  # type: ignore[misc]
    r"""An LGCN that predicts a number for each node of a graph, as a scikit-learn estimator.

    `y` holds one number per node. NaN and `None` mark nodes without one; -1 is a number like any
    other. Targets are standardised for the training, and predictions are in your units.

    An argument that is `None` has the default for your own data, which `lgcn settings --dataset
    tables` shows. `lgcn.Settings` and `lgcn.LGCN` describe the settings.

    Args:
        k, hidden_channels, lgcl_channels, num_layers, dropout, activation, lr, weight_decay: See
            `lgcn.LGCNClassifier`.
        training, max_nodes, max_epochs, patience: See `lgcn.LGCNClassifier`.
        metric: What chooses the best epoch: `"r2"`, `"rmse"` or `"mae"`. (default: `"r2"`)
        structural_features, positions, time_limit, device, settings: See `lgcn.LGCNClassifier`.
        validation_fraction: Share of the nodes with a target that is held out to choose the best
            epoch and the width of the intervals. It is ignored if the graph has a validation mask.
            With 0 the training nodes are used, and the intervals are too narrow. (default: 0.2)
        random_state, warm_start, verbose: See `lgcn.LGCNClassifier`. A warm start keeps the
            weights, but standardises the new targets anew.

    Attributes:
        interval_: The interval of `predict_interval`: its `level`, and its `half_width` in the
            units of `y`; `None` if there are too few validation nodes for this level.
        n_features_in_, feature_names_in_, n_iter_: See `lgcn.LGCNClassifier`.
        loss_curve_, validation_scores_, history_: See `lgcn.LGCNClassifier`.
        graph_, has_edges_, directed_, encoder_, model_, leaderboard_: See `lgcn.LGCNClassifier`.
        settings_, result_: See `lgcn.LGCNClassifier`.
    """

    _wanted_y = "one number per node, NaN if it is unknown"

    def predict(self, X: Any = None, edges: Any = None) -> Array:
        """The predicted numbers of nodes.

        Args:
            X, edges: See `lgcn.LGCNClassifier.predict`.
        """
        return self._values(*self._other(X, edges))

    def predict_interval(
        self, X: Any = None, edges: Any = None, *, level: float | None = None
    ) -> Array:
        """The lower and the upper end of an interval around each prediction, [nodes, 2].

        The intervals hold the true numbers of nodes like the validation nodes with probability
        `level` (split conformal prediction). All have the same width. They are infinite if there
        are too few validation nodes: a level of 0.9 needs at least 9.

        Args:
            X, edges: See `lgcn.LGCNClassifier.predict`.
            level: The probability, above 0 and below 1. A loaded estimator has only the default,
                since other levels need the validation nodes. (default: that of `interval_`, 0.9)
        """
        values = self.predict(X, edges)
        half = self._half_width(level)
        return np.stack([values - half, values + half], axis=1)

    def score(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, edges: Any = None
    ) -> float:
        """The coefficient of determination, R².

        Args:
            X, edges: See `lgcn.LGCNClassifier.predict`.
            y: The true numbers; nodes without one (NaN, `None`) do not count. (default: those of
                the graph; only of its test nodes if it has a test mask)
            sample_weight: One weight per node. (default: all one)
        """
        graph, nodes, targets, weight = self._truth(X, y, edges, sample_weight)
        known, predicted = targets.known, self._values(graph, nodes)
        return float(r2_score(targets.y[known], predicted[known], sample_weight=weight))

    def predictions(self, X: Any = None, edges: Any = None, *, truth: bool = True) -> pa.Table:
        """The predictions as an Arrow table: `node`, `predicted`, `lower` and `upper`.

        Args:
            X, edges: See `lgcn.LGCNClassifier.predict`.
            truth: Add the columns `true` and `split` if the nodes are those of the fit.
                (default: `True`)
        """
        from lgcn.inference.predictions import predicted_values

        graph, nodes = self._other(X, edges)
        ids = np.arange(graph.num_nodes) if graph.node_ids is None else graph.node_ids
        return predicted_values(
            self._spec.values(self._logits(graph, nodes)),
            half_width=self.interval_["half_width"],
            node_ids=ids if nodes is None else ids[nodes.numpy()],
            truth=self._known(graph, nodes, truth),
        )

    def _values(self, graph: Graph, nodes: Tensor | None) -> Array:
        found: Array = self._spec.values(self._logits(graph, nodes)).cpu().numpy()
        return found

    def _validation_residuals(self) -> Array | None:
        if self.graph_ is None:
            return None
        val, y = self.graph_.val_mask, self.graph_.y
        assert val is not None
        assert y is not None
        found: Array = y.numpy()[val.numpy()] - self.predict(val)
        return found
