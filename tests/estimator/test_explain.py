"""The estimators explain their predictions."""

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
