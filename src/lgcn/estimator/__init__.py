"""The scikit-learn face: :class:`lgcn.LGCNClassifier`."""

from lgcn.estimator.classifier import LGCNClassifier

__all__ = ["LGCNClassifier"]
