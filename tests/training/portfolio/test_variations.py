"""Variations of the best members: always valid, repeatable, and never of what the user gave."""

import sys

import pytest

from lgcn.training import Settings
from lgcn.training.portfolio.entries import Entry
from lgcn.training.portfolio.variations import SPACES, vary
from lgcn.training.settings import flat_names


@pytest.fixture(params=["optuna", "without"])
def _with_or_without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "without":
        monkeypatch.setitem(sys.modules, "optuna", None)
    else:
        pytest.importorskip("optuna")


ASKED = Settings.create(dataset="tables", max_trials=9, lr=0.123)
SETTINGS = {
    "few": Settings.create(dataset="tables", labels="few"),
    "deep": Settings.create(dataset="tables", model="residual"),
    "trees": Settings.create(dataset="tables", model="boosting"),
}
ENTRIES = [
    Entry("few", "few", "lgcn", val_score=0.7),
    Entry("deep", "deep", "residual", val_score=0.9),
    Entry("trees", "trees", "boosting", val_score=0.8),
    Entry("bad", "bad", "lgcn", error="failed"),
]


@pytest.mark.usefixtures("_with_or_without")
def test_the_best_families_are_varied_in_turn() -> None:
    for number, name in enumerate(["deep", "trees", "few", "deep"]):
        found = vary(number, ENTRIES, SETTINGS, ASKED)
        assert found is not None
        entry, settings = found
        assert entry.changes["of"] == name
        assert settings.model.name == SETTINGS[name].model.name
        assert "lr" not in entry.changes  # the user gave it
        assert settings != SETTINGS[name]
        assert vary(number, ENTRIES, SETTINGS, ASKED) == found


@pytest.mark.usefixtures("_with_or_without")
def test_smaller_is_better() -> None:
    found = vary(0, ENTRIES, SETTINGS, ASKED, greater_is_better=False)
    assert found is not None
    assert found[0].changes["of"] == "few"


def test_nothing_to_vary() -> None:
    assert vary(0, ENTRIES[3:], SETTINGS, ASKED) is None


def test_the_spaces_are_settings_of_their_models() -> None:
    for model, space in SPACES.items():
        assert set(space) <= set(flat_names(model))
        for name, values in space.items():
            for value in values:
                Settings.create(dataset="tables", model=model, **{name: value})
