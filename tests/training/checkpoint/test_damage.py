"""Damaged files of a run are named."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from lgcn.errors import CheckpointError
from lgcn.training import Run, train

from ..graphs import settings
from .runs import change, encoded_graph, go_on


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def a_list(path: Path) -> None:
    path.write_text("[]")


def a_table(path: Path) -> None:
    path.write_text("{}")


def no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize("damage", [truncate, empty, a_list, a_table, no_text])
@pytest.mark.parametrize("name", ["run.json", "result.json"])
def test_damage_to_a_finished_run_is_named(
    finished: Path, name: str, damage: Callable[[Path], None]
):
    damage(finished / name)
    read = {"run.json": Run(finished).load_model, "result.json": Run(finished).result}
    with pytest.raises(CheckpointError, match=str(finished / name)):
        read[name]()


@pytest.mark.parametrize("damage", [truncate, empty, a_list, a_table, no_text])
def test_damage_to_the_checkpoint_is_named(stopped: Path, damage: Callable[[Path], None]):
    damage(stopped / "checkpoint.json")
    with pytest.raises(CheckpointError, match=str(stopped / "checkpoint.json")):
        go_on(stopped)


@pytest.mark.parametrize("damage", [truncate, empty, flip, Path.unlink])
def test_damage_to_the_checkpoints_tensors_is_named(stopped: Path, damage: Callable[[Path], None]):
    damage(stopped / "checkpoint-3.safetensors")
    message = rf"{stopped}/checkpoint-3\.safetensors is missing or does not match its checksum"
    with pytest.raises(CheckpointError, match=message):
        go_on(stopped)


@pytest.mark.parametrize(
    ("epoch", "name"),
    [
        (3, "../elsewhere.safetensors"),
        (3, "/etc/passwd"),
        (3, "checkpoint-4.safetensors"),
        ("3/../../x", "checkpoint-3/../../x.safetensors"),
    ],
)
def test_a_checkpoint_leads_to_no_other_file(stopped: Path, epoch: Any, name: str):
    path = stopped / "checkpoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "epoch": epoch, "tensors": name}))
    with pytest.raises(CheckpointError, match=rf"checkpoint\.json names '{name}'"):
        go_on(stopped)


@pytest.mark.parametrize("change", [{"epoch": 3, "more": 1}, [1], 5])
def test_a_checkpoint_with_another_state_is_named(stopped: Path, change: Any):
    path = stopped / "checkpoint.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": change}))
    with pytest.raises(CheckpointError, match=str(path)):
        go_on(stopped)


def test_checkpointed_weights_that_do_not_fit_are_named(stopped: Path):
    epoch, tensors, state = Run(stopped).load_checkpoint()
    tensors = {key: value for key, value in tensors.items() if "classifier" not in key}
    Run(stopped).save_checkpoint(epoch, tensors, state)
    with pytest.raises(CheckpointError, match=rf"{stopped}/checkpoint-3\.safetensors do not fit"):
        go_on(stopped)


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink])
def test_damage_to_the_model_is_named(finished: Path, damage: Callable[[Path], None]):
    damage(finished / "model.safetensors")
    message = rf"{finished}/model\.safetensors is (damaged|missing)"
    with pytest.raises(CheckpointError, match=message):
        Run(finished).load_model()


def test_weights_that_do_not_fit_are_named(finished: Path):
    path = finished / "model.safetensors"
    save_file({"embedding.weight": torch.zeros(2, 2)}, path)
    with pytest.raises(CheckpointError, match=rf"{path} do not fit the run's settings"):
        Run(finished).load_model()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"config": {"k": -1}},
        {"config": {"unknown": 1}},
        {"config": None},
        {"model": "text"},
        {"model": {"num_features": 8}},
    ],
)
def test_a_run_file_of_other_content_is_named(finished: Path, change: dict[str, Any]):
    path = finished / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(CheckpointError, match=str(path)):
        Run(finished).read()


@pytest.mark.parametrize(
    "values",
    [
        {"num_features": "8"},
        {"num_features": True},
        {"num_classes": 0},
        {"multi_label": 1},
        {"label_names": "abc"},
        {"label_names": [1, 2, 3]},
        {"label_names": ["a"]},
        {"more": 1},
    ],
)
def test_a_wrong_description_of_the_model_is_named(finished: Path, values: dict[str, Any]):
    change(finished / "run.json", "model", **values)
    with pytest.raises(CheckpointError, match=str(finished / "run.json")):
        Run(finished).load_model()


@pytest.mark.parametrize(
    ("table", "values"),
    [
        ("model", {"num_features": 10**15}),
        ("config", {"hidden_channels": 10**12}),
        ("config", {"num_layers": 10**12}),
    ],
)
def test_sizes_that_the_weights_do_not_have_ask_for_no_memory(
    finished: Path, table: str, values: dict[str, Any]
):
    change(finished / "run.json", table, **values)
    with pytest.raises(CheckpointError, match="do not fit the run's settings"):
        Run(finished).load_model()


def test_a_run_without_k_is_damaged(finished: Path):
    change(finished / "run.json", "config", k=None)
    with pytest.raises(CheckpointError, match="k must be a whole number"):
        Run(finished).load_model()


@pytest.mark.parametrize("damage", [truncate, empty, a_list, a_table, no_text])
def test_damage_to_the_features_is_named(tmp_path: Path, damage: Callable[[Path], None]):
    train(encoded_graph(), settings(max_epochs=1), out=tmp_path)
    damage(tmp_path / "features.json")
    with pytest.raises(CheckpointError, match=str(tmp_path / "features.json")):
        Run(tmp_path).encoder()
