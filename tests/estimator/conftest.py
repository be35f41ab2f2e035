"""A graph and an estimator that learned it."""

from dataclasses import replace

import pytest

from lgcn import Graph
from lgcn.datasets import synthetic
from lgcn.estimator import LGCNClassifier

from .small import parts, small


@pytest.fixture(scope="module")
def graph() -> Graph:
    """200 nodes of three classes, without masks."""
    made = synthetic(num_nodes=200, num_classes=3, num_features=8, noise=1.0, seed=0)
    return replace(made, train_mask=None, val_mask=None, test_mask=None)


@pytest.fixture(scope="module")
def fitted(graph: Graph) -> LGCNClassifier:
    return small().fit(graph)


@pytest.fixture(scope="module")
def by_features(graph: Graph) -> LGCNClassifier:
    """Fitted with features and edges apart."""
    return small().fit(*parts(graph))
