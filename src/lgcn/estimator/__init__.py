"""The scikit-learn face, for nodes of a graph and for whole graphs."""

from lgcn.estimator.classifier import LGCNClassifier
from lgcn.estimator.graph_classifier import GraphClassifier
from lgcn.estimator.graph_regressor import GraphRegressor
from lgcn.estimator.regressor import LGCNRegressor

__all__ = ["GraphClassifier", "GraphRegressor", "LGCNClassifier", "LGCNRegressor"]
