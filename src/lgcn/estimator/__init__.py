"""The scikit-learn face: `lgcn.LGCNClassifier`."""

from lgcn.estimator.classifier import LGCNClassifier

__all__ = ["LGCNClassifier"]
