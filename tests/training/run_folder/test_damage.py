"""Damaged files of a run are named."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from lgcn.errors import CheckpointError, UsageError
from lgcn.training import Run, train
from lgcn.utils import memory

from ..graphs import settings, small_graph
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


def nested(path: Path) -> None:
    path.write_text("[" * 100_000)


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def endless(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


JSON_DAMAGE = [truncate, empty, a_list, a_table, no_text, nested, a_pipe, endless]


@pytest.mark.parametrize("damage", JSON_DAMAGE)
@pytest.mark.parametrize("name", ["run.json", "result.json", "metrics.json"])
def test_damage_to_a_finished_run_is_named(
    finished: Path, name: str, damage: Callable[[Path], None]
):
    damage(finished / name)
    run = Run(finished)
    read = {"run.json": run.load_model, "result.json": run.result, "metrics.json": run.metrics}
    with pytest.raises(CheckpointError, match=str(finished / name)):
        read[name]()


@pytest.mark.parametrize("damage", JSON_DAMAGE)
def test_damage_to_the_checkpoint_is_named(stopped: Path, damage: Callable[[Path], None]):
    damage(stopped / "checkpoint.json")
    with pytest.raises(CheckpointError, match=str(stopped / "checkpoint.json")):
        go_on(stopped)


@pytest.mark.parametrize("damage", [truncate, empty, flip, Path.unlink, a_pipe, endless])
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


@pytest.mark.parametrize("damage", [truncate, empty, Path.unlink, a_pipe, endless])
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
        {"settings": {"k": -1}},
        {"settings": {"model": {"k": -1}}},
        {"settings": {"model": {"name": ["lgcn"]}}},
        {"settings": {"sampling": {"lr": 0.1}}},
        {"settings": {"sampling": 3}},
        {"settings": {"k": 4, "model": {"k": 5}}},
        {"settings": {"unknown": 1}},
        {"settings": None},
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
        {"label_names": ["a", "b", "\ud800"]},
        {"num_classes": 10**7},
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
        ("settings.model", {"hidden_channels": 10**12}),
        ("settings.model", {"num_layers": 900}),
    ],
)
def test_sizes_that_the_weights_do_not_have_ask_for_no_memory(
    finished: Path, table: str, values: dict[str, Any]
):
    change(finished / "run.json", table, **values)
    with pytest.raises(CheckpointError, match="do not fit the run's settings"):
        Run(finished).load_model()


@pytest.mark.parametrize("name", ["num_layers", "hops"])
def test_more_parts_than_can_be_are_damage(finished: Path, name: str):
    change(finished / "run.json", "settings.model", **{name: 10**12})
    with pytest.raises(CheckpointError, match=rf"run\.json is damaged: {name} .* 1000000000000"):
        Run(finished).load_model()


def test_a_run_of_an_unknown_model_is_not_damaged(finished: Path):
    change(finished / "run.json", "settings.model", name="other")
    with pytest.raises(CheckpointError, match=r"run\.json: unknown model 'other'; known: lgcn"):
        Run(finished).load_model()


def test_a_run_without_k_is_damaged(finished: Path):
    change(finished / "run.json", "settings.model", k=None)
    with pytest.raises(CheckpointError, match="k must be a whole number"):
        Run(finished).load_model()


@pytest.mark.parametrize("damage", JSON_DAMAGE)
def test_damage_to_the_features_is_named(tmp_path: Path, damage: Callable[[Path], None]):
    train(encoded_graph(), settings(max_epochs=1), out=tmp_path)
    damage(tmp_path / "features.json")
    with pytest.raises(CheckpointError, match=str(tmp_path / "features.json")):
        Run(tmp_path).encoder()


def with_tensors(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """The checkpoint with other tensors, and a checksum that fits."""
    epoch, tensors, state = Run(folder).load_checkpoint()
    change(tensors)
    Run(folder).save_checkpoint(epoch, tensors, state)


OPTIMIZER = {
    "no number": lambda t: t.update({"optimizer.zz.k": torch.ones(1)}),
    "negative": lambda t: t.update({"optimizer.-1.step": torch.ones(())}),
    "no such parameter": lambda t: t.update({"optimizer.99.step": torch.ones(())}),
    "another part": lambda t: t.update({"elsewhere.0": torch.ones(1)}),
    "no such moment": lambda t: t.update({"optimizer.0.k": t["optimizer.0.exp_avg"]}),
    "a moment is missing": lambda t: t.pop("optimizer.0.exp_avg_sq"),
    "another shape": lambda t: t.update({"optimizer.0.exp_avg": torch.ones(3)}),
    "steps": lambda t: t.update({"optimizer.0.step": torch.ones(2)}),
    "another type": lambda t: t.update(
        {"optimizer.0.exp_avg": torch.ones_like(t["optimizer.0.exp_avg"], dtype=torch.int64)}
    ),
    "not a number": lambda t: t["optimizer.0.exp_avg"].fill_(float("nan")),
    "below zero": lambda t: t["optimizer.0.exp_avg_sq"].fill_(-1),
}


@pytest.mark.parametrize("change", OPTIMIZER.values(), ids=OPTIMIZER)
def test_a_wrong_state_of_the_optimiser_is_named(stopped: Path, change: Callable[..., Any]):
    with_tensors(stopped, change)
    path = stopped / "checkpoint-3.safetensors"
    with pytest.raises(CheckpointError, match=rf"{path} is damaged: .*--overwrite") as caught:
        go_on(stopped)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.update({"model.more": torch.ones(1)}),
        lambda t: [t.pop(key) for key in list(t) if key.startswith("best.")],
        lambda t: t.update({"model.embedding.weight": torch.ones(2)}),
        lambda t: t.update({k: v.long() for k, v in t.items() if k.startswith("model.")}),
    ],
)
def test_wrong_weights_of_a_checkpoint_are_one_line(stopped: Path, change: Callable[..., Any]):
    with_tensors(stopped, change)
    with pytest.raises(CheckpointError, match=rf"{stopped}/checkpoint-3.*do not fit") as caught:
        go_on(stopped)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        {"epoch": "3"},
        {"epoch": 10**9},
        {"best_epoch": -1},
        {"steps": 1.5},
        {"best_val_loss": None},
        {"best_val_score": float("nan")},
        {"released_test_score": "high"},
        {"rates": 5},
        {"history": {}},
        {"history": [1]},
        {"history": [{"epoch": 1}]},
        {"history": [dict.fromkeys(("epoch", "train_loss", "val_loss", "val_score"), "x")]},
    ],
)
def test_wrong_values_of_a_state_are_named(stopped: Path, change: dict[str, Any]):
    path = stopped / "checkpoint.json"
    record = json.loads(path.read_text())
    record["state"].update(change)
    path.write_text(json.dumps(record))
    with pytest.raises(CheckpointError, match=rf"{path} is damaged: .*--overwrite"):
        go_on(stopped)


@pytest.mark.parametrize(
    ("dataset", "options", "named"),
    [
        ("store", {"path": "s", "verify": False}, "verify"),
        ("store", {"path": ["s"]}, "path"),
        ("tables", {"nodes": "n.csv", "encoder": {}}, "encoder"),
        ("tables", {"nodes": "n.csv", "label_names": ["a"]}, "label_names"),
        ("tables", {"nodes": {"id": [1]}}, "nodes"),
        ("tables", {"nodes": "a\0b"}, "nodes"),
        ("synthetic", {"num_nodes": "many"}, "num_nodes"),
        ("digits", {"root": "/"}, "root"),
        ("graph.npz", {"verify": False}, "verify"),
        ("a\0b", {}, "dataset"),
    ],
)
def test_options_of_a_file_pass_a_list(
    finished: Path, dataset: str, options: dict[str, Any], named: str
):
    change(finished / "run.json", "settings", dataset=dataset, dataset_options=options)
    with pytest.raises(CheckpointError, match=rf"run\.json is damaged: .*{named}"):
        Run(finished).load_model()


def test_a_file_larger_than_the_memory_is_not_read(finished: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "machine_memory", lambda: 500)
    with pytest.raises(
        CheckpointError, match=r"model\.safetensors with its .*would need .* memory"
    ):
        Run(finished).load_model()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"hidden_channels": 10**9}, "hidden_channels=1000000000 .*would need .* of memory"),
        ({"hidden_channels": 10**18}, "cannot build a model of these sizes"),
        ({"num_layers": 10**9}, "num_layers must be .* to 1000, got 1000000000"),
        ({"hops": 10**9}, "hops must be .* to 1000, got 1000000000"),
        ({"views": 10**9}, "views must be .* to 1000, got 1000000000"),
        ({"k": 10**12}, "k=1000000000000 would need"),
    ],
)
def test_sizes_that_no_machine_has_are_refused_before_training(
    tmp_path: Path, values: dict[str, Any], named: str
):
    with pytest.raises(UsageError, match=named):
        train(small_graph(), settings(**values), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("change", [{"epochs": "four"}, {"metric": None}, {"seconds": [1]}])
def test_a_result_of_wrong_types_is_named(finished: Path, change: dict[str, Any]):
    path = finished / "result.json"
    result = json.loads(path.read_text())
    (key,) = change
    path.write_text(json.dumps(result | change))
    with pytest.raises(CheckpointError, match=f"result.json is damaged: {key}"):
        Run(finished).result()
    del result[key]
    path.write_text(json.dumps(result))
    with pytest.raises(CheckpointError, match=f"result.json is damaged: {key}"):
        Run(finished).result()
