"""The registry: the core knows its own models, and others add themselves."""

import subprocess
import sys
from typing import Any

import pytest

import lgcn.paper  # noqa: F401 (registers the baselines)
from lgcn.errors import UsageError
from lgcn.training import Settings, models
from lgcn.training.groups import ModelSettings
from lgcn.training.models import find_model, model_names, network_class, register_model


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_does_not_import_the_papers_comparison() -> None:
    code = """
import sys
import lgcn, lgcn.training
from lgcn import LGCNClassifier
from lgcn.cli import app
from lgcn.training import Settings, train
from lgcn.training.models import model_names
from lgcn.training.presets import preset_names
assert not [name for name in sys.modules if name.startswith("lgcn.paper")]
print(model_names(), preset_names())
for given in ({"model": "gcn"}, {"preset": "paper"}):
    try:
        Settings.create(**given)
    except ValueError as error:
        print(error)
import lgcn.paper
print(Settings.create(model="gcn").preset, Settings.create(preset="best").model.name)
"""
    names, model, preset, after = run(code).splitlines()
    models = "['lgcn', 'residual', 'graph_lgcn', 'boosting']"
    presets = "['best', 'boosting', 'default', 'graphs', 'propagated', 'quick', 'residual']"
    assert names == f"{models} {presets}"
    assert "unknown model 'gcn'" in model
    assert "unknown preset 'paper'" in preset
    assert "import lgcn.paper" in model
    assert "import lgcn.paper" in preset
    assert after == "gcn lgcn"


def test_registering_and_settings_import_no_torch() -> None:
    code = """
import sys
import lgcn.paper
from lgcn.training.models import model_names
from lgcn.training.settings import Settings
for name in model_names():
    Settings.create(model=name)
print({"torch", "numba", "scipy"} & set(sys.modules))
"""
    assert run(code).strip() == "set()"


@pytest.mark.parametrize(
    "name",
    [n for n in model_names() if n not in ("lgcn", "residual", "graph_lgcn", "boosting")],
)
def test_a_baseline_has_settings_of_its_own(name: str) -> None:
    model = Settings.create(model=name).model
    assert type(model) is find_model(name).settings
    network = network_class(name)(5, 3, **model.options())
    assert network is not None
    with pytest.raises(UsageError, match=r"num_layers must .*1 to 1000, got 0"):
        Settings.create(model=name, num_layers=0)
    with pytest.raises(UsageError, match=f"unknown setting 'k' of model={name}"):
        Settings.create(model=name, k=3)


@pytest.mark.parametrize(
    ("name", "captured"), [("lgcn", True), ("gcn", True), ("mlp", True), ("gat", False)]
)
def test_a_model_says_whether_its_steps_can_be_captured(name: str, captured: bool) -> None:
    model = network_class(name)(5, 3)
    assert model.can_capture is captured


@pytest.mark.parametrize(
    ("name", "options", "padded"),
    [
        ("lgcn", {}, True),
        ("lgcn", {"batch_norm": "running"}, True),
        ("lgcn", {"embedding": "propagated"}, False),
        ("residual", {}, True),
        ("residual", {"recompute": True}, True),
        ("gcn", {}, True),
        ("mlp", {}, True),
        ("gat", {}, False),
    ],
)
def test_a_model_says_whether_added_nodes_change_nothing(
    name: str, options: dict[str, Any], padded: bool
) -> None:
    assert network_class(name)(5, 3, **options).can_pad is padded


def test_an_lgcn_that_removes_edges_is_not_captured() -> None:
    lgcn = network_class("lgcn")
    assert not lgcn(5, 3, zeros="pad", adj_dropout=0.1).can_capture
    assert lgcn(5, 3, zeros="pad", adj_dropout=0.0).can_capture
    assert lgcn(5, 3, zeros="pad", adj_dropout=0.1, layer="gcn").can_capture


class MineSettings(ModelSettings):
    depth: int = 3


def test_other_packages_add_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_models", dict(models._models))
    place = "lgcn.paper.baselines.mlp.network:MLP"
    register_model("mine", place, MineSettings, preset="default")
    assert not find_model("mine").for_graphs
    register_model("of graphs", place, MineSettings, preset="default", for_graphs=True)
    assert find_model("of graphs").for_graphs
    settings = Settings.create(model="mine", depth=4)
    assert (settings.model.name, settings.model.depth) == ("mine", 4)
    assert network_class("mine").__name__ == "MLP"


def test_unknown_models_are_named() -> None:
    with pytest.raises(UsageError, match=r"unknown model 'lgnc'; did you mean 'lgcn'\?"):
        Settings.create(model="lgnc")
    with pytest.raises(UsageError, match="unknown model 3; known: lgcn"):
        Settings.create(model=3)


def test_a_setting_of_a_model_must_not_have_the_name_of_another_setting() -> None:
    class Clashing(ModelSettings):
        clusters: int = 3

    with pytest.raises(ValueError, match="settings must not have a field clusters"):
        register_model("clashing", "nowhere:Nothing", Clashing, preset="default")
    assert "clashing" not in model_names()
