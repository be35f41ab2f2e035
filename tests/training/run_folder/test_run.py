"""What a run folder holds, and what is read from it."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import lgcn.paper  # noqa: F401 (registers the baselines)
from lgcn.errors import CheckpointError
from lgcn.training import Result, Run, Settings, train
from lgcn.training.settings import flatten

from ..graphs import digest, settings, small_graph
from .runs import FINISHED, STOPPED, Killed, at_epoch, change, die, encoded_graph, names


def test_a_finished_run_holds_settings_weights_and_result(finished_run: tuple[Path, Result]):
    folder, result = finished_run
    assert names(folder) == FINISHED
    record = json.loads((folder / "run.json").read_text())
    assert Settings.create(**record["settings"]) == settings()
    saved = json.loads((folder / "result.json").read_text())
    assert len(saved.pop("history")) == 6
    assert saved == result.record
    assert saved["out"] == str(folder)
    weights = load_file(folder / "model.safetensors")
    assert all(torch.equal(weights[k], v) for k, v in result.model.state_dict().items())


def test_the_model_comes_back(finished_run: tuple[Path, Result]):
    folder, result = finished_run
    model, config, spec = Run(folder).load_model()
    assert digest(model) == digest(result.model)
    assert not model.training
    assert config == settings()
    assert (spec.num_features, spec.num_classes, spec.multi_label) == (8, 3, False)


def test_a_run_from_before_a_setting_has_its_default_not_that_of_the_preset(tmp_path: Path):
    small = {"num_layers": 1, "hidden_channels": 4, "max_epochs": 1}
    config = Settings.create(preset="residual", cnn="single", **small)
    assert Settings.create(preset="residual").model.cnn == "depthwise"
    result = train(small_graph(), config, out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    for name in ("cnn", "mean", "lgcl_dropout", "recompute", "edge_features", "directions"):
        del record["settings"]["model"][name]
    (tmp_path / "run.json").write_text(json.dumps(record))
    model, settings, _ = Run(tmp_path).load_model()
    assert settings.model.cnn == "single"
    assert digest(model) == digest(result.model)


@pytest.mark.usefixtures("checkpoints")
def test_one_checkpoint_is_kept(tmp_path: Path):
    with pytest.raises(Killed):
        train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(5, die))
    assert names(tmp_path) == {*STOPPED, "checkpoint-4.safetensors"}


def test_a_new_run_in_an_old_folder_leaves_nothing_of_the_old(finished: Path):
    with pytest.raises(Killed):
        train(small_graph(), settings(seed=1), out=finished, on_epoch=at_epoch(1, die))
    assert names(finished) == set()  # not even of the new one, which had no checkpoint


def test_other_files_in_the_folder_stay(finished: Path):
    (finished / "notes.txt").write_text("mine")
    (finished / "checkpoint-mine.safetensors").write_text("mine")
    Run(finished).clear()
    assert names(finished) == {"notes.txt", "checkpoint-mine.safetensors"}


def test_an_unfinished_run_has_no_model(stopped: Path):
    with pytest.raises(CheckpointError, match=rf"not finished; .*--resume --out {stopped}"):
        Run(stopped).load_model()


def test_loaded_weights_are_the_saved_ones(finished_run: tuple[Path, Result]):
    folder, result = finished_run
    model, _, _ = Run(folder).load_model()
    assert digest(model) == digest(result.model)
    assert all(p.requires_grad and p.device.type == "cpu" for p in model.parameters())


def test_weights_of_another_type_are_converted(finished: Path):
    path = finished / "model.safetensors"
    save_file({key: value.double() for key, value in load_file(path).items()}, path)
    model, _, _ = Run(finished).load_model()
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_the_temperature_of_a_run(finished: Path, finished_run: tuple[Path, Result]):
    assert Run(finished).temperature() == finished_run[1].record["temperature"]
    for value in ("1", None, True, 0, 1e9, float("nan")):
        change(finished / "result.json", "", temperature=value)
        with pytest.raises(CheckpointError, match=r"temperature must .*0\.05"):
            Run(finished).temperature()
    record = json.loads((finished / "result.json").read_text())
    del record["temperature"]  # as in runs of version 0.1
    (finished / "result.json").write_text(json.dumps(record))
    assert Run(finished).temperature() == 1.0


def test_a_run_keeps_how_features_are_made(tmp_path: Path):
    graph = encoded_graph()
    train(graph, settings(max_epochs=1), out=tmp_path)
    assert "features.json" in names(tmp_path)
    kept = Run(tmp_path).encoder()
    assert kept.to_dict() == graph.encoder.to_dict()
    train(small_graph(), settings(max_epochs=1), out=tmp_path)  # in the same folder
    assert Run(tmp_path).encoder() is None


# What run.json of version 0.1.0 had beside the settings of the model.
OF_ALL_MODELS = {
    **{"order": 2, "heads": 8, "out_heads": 1, "alpha": 0.5, "theta": 1.0, "aggregator": "mean"},
    **{name: value for name, value in settings().flat().items() if name != "preset"},
    "recipe": "default",
}


@pytest.mark.parametrize("given", [{}, {"model": "gcn"}, {"model": "gat", "heads": 2}])
def test_runs_with_flat_settings_of_all_models_are_read(tmp_path: Path, given: dict[str, Any]):
    train(small_graph(), settings(**given), out=tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    new = flatten(record.pop("settings"))
    new["recipe"] = new.pop("preset")
    record["config"] = {**OF_ALL_MODELS, **new}
    (tmp_path / "run.json").write_text(json.dumps(record))
    model, found, _ = Run(tmp_path).load_model()
    assert found == settings(**given)
    assert found.preset == given.get("model", "default")
    assert model is not None
    record["config"]["lr"] = -1
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=r"run\.json is damaged: lr must be .* got -1"):
        Run(tmp_path).read()
