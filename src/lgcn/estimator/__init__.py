"""The scikit-learn face: `lgcn.LGCNClassifier` and `lgcn.LGCNRegressor`."""

from lgcn.estimator.classifier import LGCNClassifier
from lgcn.estimator.regressor import LGCNRegressor

__all__ = ["LGCNClassifier", "LGCNRegressor"]
