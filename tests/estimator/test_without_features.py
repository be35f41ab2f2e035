"""Graphs without features in the estimator: ours, PyG's and NetworkX's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from lgcn import LGCNClassifier, from_scipy
from lgcn.datasets import synthetic
from lgcn.errors import UsageError
from lgcn.graph import Graph

from .small import adjacency, small


@pytest.fixture(scope="module")
def bare() -> Graph:
    graph = synthetic(num_nodes=200, num_classes=3, homophily=0.9, labels_per_class=20, seed=1)
    return replace(graph, x=None)


def as_pyg(graph: Graph) -> Data:
    masks = {f"{split}_mask": graph.mask(split) for split in ("train", "val", "test")}
    return Data(edge_index=graph.edge_index, y=graph.y, num_nodes=graph.num_nodes, **masks)


def as_networkx(graph: Graph) -> Any:
    found = nx.Graph()
    found.add_nodes_from((i, {"y": int(label)}) for i, label in enumerate(graph.y))
    found.add_edges_from(graph.edge_index.t().tolist())
    return found


def as_scipy(graph: Graph) -> Graph:
    return from_scipy(adjacency(graph), y=graph.y.numpy())


@pytest.mark.parametrize("convert", [lambda graph: graph, as_pyg, as_networkx, as_scipy])
def test_fit_and_predict(bare: Graph, convert: Any) -> None:
    model = small(max_epochs=25).fit(convert(bare))
    assert model.n_features_in_ == 0
    assert (model.predict().astype(int) == bare.y.numpy()).mean() > 0.6
    assert model.transform().shape[0] == 200
    assert len(model.predictions()) == 200
    assert (model.predict(convert(bare)) == model.predict()).all()
    assert model.predict_proba([3, 5]).shape == (2, 3)


def test_edges_and_labels_alone(bare: Graph) -> None:
    labels = bare.y.numpy()
    model = small(max_epochs=2).fit(None, labels, edges=bare.edge_index)
    assert model.n_features_in_ == 0
    assert model.graph_.num_edges == bare.num_edges
    assert model.predict().shape == labels.shape
    with pytest.raises(UsageError, match="come with edges"):
        small().fit(None, labels)
    with pytest.raises(UsageError, match="200 nodes"):
        small().fit(None, labels, edges=np.array([[0], [200]]))


def test_saved_and_loaded(bare: Graph, tmp_path: Path) -> None:
    model = small(max_epochs=2).fit(bare)
    model.save(tmp_path / "model")
    loaded = LGCNClassifier.load(tmp_path / "model")
    assert loaded.n_features_in_ == 0
    assert np.array_equal(loaded.predict_proba(bare), model.predict_proba())


def test_new_graphs(bare: Graph) -> None:
    other = replace(synthetic(num_nodes=90, num_classes=3, seed=2), x=None)
    model = small(max_epochs=2).fit(bare)
    with pytest.raises(UsageError, match="positions=none"):
        model.predict(other)
    model = small(max_epochs=2, settings={"positions": "none"}).fit(bare)
    assert model.predict(other).shape == (90,)


def test_beside_features(bare: Graph) -> None:
    graph = replace(bare, x=torch.rand(200, 5))
    model = small(max_epochs=2, settings={"structural_features": True}).fit(graph)
    assert model.n_features_in_ == 5
    assert model.model_.first_layer.weight.numel() > 0
    other = replace(graph, x=torch.rand(200, 5))
    assert not np.array_equal(model.predict_proba(other), model.predict_proba())
    with pytest.raises(UsageError, match="no features"):
        small(settings={"structural_features": False}).fit(bare)
