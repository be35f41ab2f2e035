"""The estimators explain their predictions."""

import networkx as nx
import numpy as np
import pytest

import lgcn
from lgcn.errors import UsageError

RING = np.stack([np.arange(30), (np.arange(30) + 3) % 30])


def features() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 4)).astype(np.float32) + (np.arange(30) % 3)[:, None]


def test_a_classifier_explains_its_own_classes():
    y = np.array([10, 20, 30])[np.arange(30) % 3]
    model = lgcn.LGCNClassifier(random_state=0, max_epochs=3, hidden_channels=4)
    model.fit(features(), y, RING)
    found = model.explain([4, 5])
    assert [one.predicted for one in found] == [str(one) for one in model.predict([4, 5])]
    chances = model.predict_proba([4, 5]).max(axis=1)
    assert [one.confidence for one in found] == pytest.approx(chances.tolist(), abs=1e-5)
    (other,) = model.explain(4, target=20)
    assert other.explained == "20"
    with pytest.raises(UsageError, match="no node '30'"):
        model.explain(30)


def test_a_regressor_explains_its_number():
    model = lgcn.LGCNRegressor(random_state=0, max_epochs=3, hidden_channels=4)
    model.fit(features(), 100.0 + np.arange(30), RING)
    (found,) = model.explain(4)
    assert found.predicted == pytest.approx(float(model.predict([4])[0]), rel=1e-5)
    added = sum(entry["contribution"] for entry in found.by_column)
    assert added == pytest.approx(found.score - found.baseline, rel=1e-3)
    assert found.score == pytest.approx(found.predicted, rel=1e-5)


def rings_and_paths() -> list[nx.Graph]:
    return [make(n) for n in range(5, 20) for make in (nx.cycle_graph, nx.path_graph)]


def test_a_classifier_of_graphs_explains_its_own_classes():
    y = np.array(["ring", "path"] * 15)
    model = lgcn.GraphClassifier(random_state=0, max_epochs=5, hidden_channels=4, num_layers=1)
    model.fit(rings_and_paths(), y)
    found = model.explain([4, 5])
    assert [one.predicted for one in found] == model.predict()[4:6].tolist()
    chances = model.predict_proba()[4:6].max(axis=1)
    assert [one.confidence for one in found] == pytest.approx(chances.tolist(), abs=1e-5)
    assert [len(one.by_node) for one in found] == [7, 7]
    assert all("(from the edges)" in one["column"] for one in found[0].by_column)
    (other,) = model.explain(0, target="ring", X=[nx.cycle_graph(30)])
    assert (other.explained, len(other.by_edge)) == ("ring", 30)
    with pytest.raises(UsageError, match="no graph '30'"):
        model.explain(30)
    with pytest.raises(UsageError, match="graphs must name at least one graph"):
        model.explain([])


def test_a_regressor_of_graphs_explains_its_number():
    model = lgcn.GraphRegressor(random_state=0, max_epochs=5, hidden_channels=4, num_layers=1)
    model.fit(rings_and_paths(), np.arange(30) * 10.0 + 100)
    (found,) = model.explain(4)
    assert found.predicted == pytest.approx(float(model.predict()[4]), rel=1e-5)
    added = sum(entry["contribution"] for entry in found.by_node)
    assert added == pytest.approx(found.score - found.baseline, rel=1e-3)
