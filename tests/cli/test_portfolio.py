"""`lgcn train` with a time limit or a preset: leaderboard, run folder, and what follows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lgcn.training.portfolio import members

from .small import SETTINGS, write_toml


@pytest.fixture(autouse=True)
def _two_members(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "WITH_FEW", members.WITH_FEW[:2])
    monkeypatch.setattr(members, "IN_STORE", members.IN_STORE[:2])


def test_a_portfolio_from_training_to_predictions(lgcn_: Any, place: Path) -> None:
    settings = {**SETTINGS, "max_trials": 2}
    settings.pop("model", None)
    write_toml(place / "two.toml", settings)
    shown = lgcn_("train", "--config", "two.toml", "--out", "run", "--no-baselines")
    assert shown.code == 0, shown.err
    assert "Leaderboard" in shown.out
    assert "ENSEMBLE" in shown.out
    stored = json.loads((place / "run" / "ensemble.json").read_text())
    names = [entry["name"] for entry in stored["entries"]]
    for name in names:
        assert f"{name}: validation" in shown.err
        assert (place / "run" / "members" / name / "model.safetensors").exists()
    result = json.loads((place / "run" / "result.json").read_text())
    assert [row["name"] for row in result["leaderboard"]] == sorted(
        names,
        key=lambda name: -next(e["val_score"] for e in stored["entries"] if e["name"] == name),
    )
    assert all("test_score" not in row for row in result["leaderboard"])
    assert lgcn_("predict", "run", "--output", "p.csv").code == 0
    assert lgcn_("embed", "run", "--output", "e.npy").code == 0
    assert len(np.load(place / "e.npy")) > 0
    scored = json.loads(lgcn_("evaluate", "run", "--json").out)
    assert scored["splits"]["test"]["score"] == pytest.approx(result["test_score"])
    # A finished run is shown again.
    again = lgcn_("train", "--resume", "--out", "run", "--json")
    assert json.loads(again.out)["leaderboard"] == result["leaderboard"]


def test_a_store(lgcn_: Any, store: Path, place: Path) -> None:
    given = ["--set", "max_epochs=2", "--set", "max_trials=2", "--no-baselines"]
    shown = lgcn_("train", "--graph", str(store), "--out", "run", *given, "--json")
    assert shown.code == 0, shown.err
    board = json.loads(shown.out)["leaderboard"]
    assert {row["name"] for row in board} == {"asked", "mean"}
    assert [row["error"] for row in board] == [None, None]
    assert lgcn_("predict", "run", "--output", "p.csv", "--memory", "1GB").code == 0


@pytest.mark.parametrize("limit", ["soon", "-5m", "0"])
def test_a_wrong_limit_is_told_at_once(lgcn_: Any, limit: str) -> None:
    shown = lgcn_("train", f"--time-limit={limit}")
    assert shown.code == 2
    assert "--time-limit must be a positive number" in shown.err
    assert limit in shown.err


def test_the_presets(lgcn_: Any) -> None:
    for preset, limit in (("quick", "none"), ("default", "none"), ("best", "10m")):
        rows = json.loads(lgcn_("settings", "--preset", preset, "--json").out)
        assert str(rows["time_limit"]["default"]).lower() == limit
    cora = json.loads(lgcn_("settings", "--preset", "best", "--dataset", "cora", "--json").out)
    assert cora["time_limit"]["default"] is None
