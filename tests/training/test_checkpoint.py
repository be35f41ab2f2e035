"""Run folders: what is in them, going on after a stop, and damage that is named."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file, save_file

from lgcn.data.tables.encoder import FeatureEncoder
from lgcn.errors import CheckpointError, TrainingDiverged, TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.training import Config, Result, Run, State, loop, train

from .graphs import digest, lasting, settings, several_graphs, small_graph

RECIPES: dict[str, dict[str, Any]] = {
    "whole": {},
    "sub-graphs": {"training": "subgraph", "max_nodes": 80, "n_init": 15, "num_workers": 1},
    "fixed sub-graphs": {"training": "subgraph", "max_nodes": 80, "resample": False},
    "weighted sub-graphs": {
        "training": "subgraph",
        "max_nodes": 80,
        "n_init": 15,
        "start_nodes": "degree",
    },
    "walks": {"training": "subgraph", "max_nodes": 80, "n_init": 15, "sampler": "walks"},
    "steps": {"training": "subgraph", "max_nodes": 80, "n_init": 8, "max_steps": 18},
    "sampled evaluation": {"evaluate_on": "sampled", "max_nodes": 80},
    "running batch norm": {"batch_norm": "running"},
    "nadam": {"optimizer": "nadam"},
    "every other epoch": {"evaluate_every": 2},
    "patience": {"lr": 0.0, "patience": 3},
}


class Killed(Exception):
    """Stands for whatever ends a process."""


def at_epoch(number: int, act: Callable[[], Any]) -> Callable[[State], None]:
    def on_epoch(state: State) -> None:
        if state.epoch == number:
            act()

    return on_epoch


def die() -> None:
    raise Killed


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint after every epoch."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", -1.0)


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    folder = tmp_path_factory.mktemp("finished") / "run"
    return folder, train(small_graph(), settings(), out=folder)


@pytest.fixture
def finished(finished_run: tuple[Path, Result], tmp_path: Path) -> Path:
    """A copy of a finished run, to be damaged."""
    return Path(shutil.copytree(finished_run[0], tmp_path / "run"))


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(TrainingInterrupted):
        train(small_graph(), settings(), out=folder, on_epoch=at_epoch(3, interrupt))
    return folder


@pytest.fixture
def stopped(stopped_run: Path, tmp_path: Path) -> Path:
    """A copy of a run that was stopped after epoch 3, to be damaged or gone on with."""
    return Path(shutil.copytree(stopped_run, tmp_path / "run"))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def go_on(folder: Path, config: Config | None = None) -> Result:
    return train(small_graph(), config or settings(), out=folder, resume=True)


def test_a_finished_run_holds_settings_weights_and_result(finished_run: tuple[Path, Result]):
    folder, result = finished_run
    assert names(folder) == {"run.json", "model.safetensors", "result.json"}
    record = json.loads((folder / "run.json").read_text())
    assert Config.create(**record["config"]) == settings()
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


def test_an_interrupted_run_says_how_to_go_on_and_does(
    stopped: Path, finished_run: tuple[Path, Result]
):
    assert names(stopped) == {"run.json", "checkpoint.json", "checkpoint-3.safetensors"}
    result = go_on(stopped)
    assert digest(result.model) == digest(finished_run[1].model)
    assert lasting(result.record) == lasting(finished_run[1].record)
    assert names(stopped) == names(finished_run[0])
    # Times aside, the files are the same too.
    for name in ("run.json", "model.safetensors"):
        assert (stopped / name).read_bytes() == (finished_run[0] / name).read_bytes()
    assert Run(stopped).result()["history"] == Run(finished_run[0]).result()["history"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_the_epoch(tmp_path: Path, number: signal.Signals):
    before = signal.getsignal(number)
    stop = at_epoch(2, lambda: os.kill(os.getpid(), number))
    with pytest.raises(TrainingInterrupted, match=rf"epoch 2; .*--resume --out {tmp_path}"):
        train(small_graph(), settings(), out=tmp_path, on_epoch=stop)
    assert Run(tmp_path).load_checkpoint()[0] == 2
    assert signal.getsignal(number) is before


def test_a_second_signal_stops_at_once(tmp_path: Path):
    def twice() -> None:
        interrupt()
        interrupt()

    with pytest.raises(KeyboardInterrupt):
        train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(2, twice))
    assert Run(tmp_path).load_checkpoint() is None


def test_without_a_folder_signals_do_as_ever():
    with pytest.raises(KeyboardInterrupt):
        train(small_graph(), settings(), on_epoch=at_epoch(2, interrupt))


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_killed_run_goes_on_to_the_same_end(tmp_path: Path, recipe: str):
    config = settings(**RECIPES[recipe])
    whole = train(small_graph(), config, out=tmp_path / "whole")
    with pytest.raises(Killed):
        train(small_graph(), config, out=tmp_path / "killed", on_epoch=at_epoch(4, die))
    assert Run(tmp_path / "killed").load_checkpoint()[0] == 3
    seen: list[int] = []
    resumed = train(
        small_graph(),
        config,
        out=tmp_path / "killed",
        resume=True,
        on_epoch=lambda state: seen.append(state.epoch),
    )
    assert seen[0] == 4
    assert digest(resumed.model) == digest(whole.model)
    assert lasting(resumed.record) == lasting(whole.record)


@pytest.mark.usefixtures("checkpoints")
@pytest.mark.parametrize("epoch", range(1, 7))
def test_a_run_can_be_killed_at_any_epoch(
    tmp_path: Path, epoch: int, finished_run: tuple[Path, Result]
):
    with pytest.raises(Killed):
        train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(epoch, die))
    resumed = go_on(tmp_path)
    assert digest(resumed.model) == digest(finished_run[1].model)
    assert lasting(resumed.record) == lasting(finished_run[1].record)


@pytest.mark.usefixtures("checkpoints")
def test_the_best_weights_survive_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    true_evaluate = loop.evaluate

    def best_at_epoch_2() -> None:
        scores = iter([0.5, 0.9])

        def evaluate(*args: Any) -> dict[str, dict[str, float]]:
            found = true_evaluate(*args)
            found["val"]["score"] = next(scores, 0.1)
            return found

        monkeypatch.setattr(loop, "evaluate", evaluate)

    best_at_epoch_2()
    whole = train(small_graph(), settings())
    assert whole.record["best_epoch"] == 2
    best_at_epoch_2()
    with pytest.raises(Killed):
        train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(5, die))
    assert digest(go_on(tmp_path).model) == digest(whole.model)


@pytest.mark.usefixtures("checkpoints")
def test_separate_graphs_go_on_too(tmp_path: Path):
    whole = train(several_graphs(), settings())
    with pytest.raises(Killed):
        train(several_graphs(), settings(), out=tmp_path, on_epoch=at_epoch(3, die))
    resumed = train(several_graphs(), settings(), out=tmp_path, resume=True)
    assert digest(resumed.model) == digest(whole.model)
    assert lasting(resumed.record) == lasting(whole.record)


FRESH = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from training.graphs import digest, settings, small_graph
from lgcn.training import loop, train
print(digest(train(small_graph(), settings()).model), flush=True)
loop.CHECKPOINT_SECONDS = -1.0
kill = lambda state: state.epoch == 4 and os.kill(os.getpid(), signal.SIGKILL)
train(small_graph(), settings(), out=sys.argv[2], on_epoch=kill)
"""


def test_a_fresh_process_gives_the_same_and_can_be_killed(
    tmp_path: Path, finished_run: tuple[Path, Result]
):
    tests = Path(__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(tests), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.strip() == digest(finished_run[1].model)
    assert Run(tmp_path / "run").load_checkpoint()[0] == 3
    assert digest(go_on(tmp_path / "run").model) == digest(finished_run[1].model)


@pytest.mark.usefixtures("checkpoints")
def test_one_checkpoint_is_kept(tmp_path: Path):
    with pytest.raises(Killed):
        train(small_graph(), settings(), out=tmp_path, on_epoch=at_epoch(5, die))
    assert names(tmp_path) == {"run.json", "checkpoint.json", "checkpoint-4.safetensors"}


def test_a_new_run_in_an_old_folder_leaves_nothing_of_the_old(finished: Path):
    with pytest.raises(Killed):
        train(small_graph(), settings(seed=1), out=finished, on_epoch=at_epoch(1, die))
    assert names(finished) == {"run.json"}
    assert Run(finished).read()[0].seed == 1


def test_other_files_in_the_folder_stay(finished: Path):
    (finished / "notes.txt").write_text("mine")
    Run(finished).clear()
    assert names(finished) == {"notes.txt"}


def test_going_on_needs_the_same_settings(stopped: Path):
    with pytest.raises(UsageError, match="run with other settings"):
        go_on(stopped, settings(seed=1))


def test_going_on_needs_a_run(tmp_path: Path):
    with pytest.raises(UsageError, match="no such run folder"):
        go_on(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"is not a run folder: no run\.json"):
        go_on(tmp_path)


def test_an_unfinished_run_has_no_model(stopped: Path):
    with pytest.raises(CheckpointError, match=rf"not finished; .*--resume --out {stopped}"):
        Run(stopped).load_model()


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


def change(path: Path, table: str, **values: Any) -> None:
    record = json.loads(path.read_text())
    (record[table] if table else record).update(values)
    path.write_text(json.dumps(record))


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
        with pytest.raises(CheckpointError, match=r"temperature must be a number from 0\.05"):
            Run(finished).temperature()
    record = json.loads((finished / "result.json").read_text())
    del record["temperature"]  # as in runs of version 0.1
    (finished / "result.json").write_text(json.dumps(record))
    assert Run(finished).temperature() == 1.0


def encoded_graph() -> Graph:
    table = pa.table({"size": [float(i) for i in range(200)], "kind": ["a", "b"] * 100})
    encoder = FeatureEncoder.fit(table, np.ones(200, dtype=bool))
    return replace(small_graph(), x=encoder.transform(table).float(), encoder=encoder)


def test_a_run_keeps_how_features_are_made(tmp_path: Path):
    graph = encoded_graph()
    train(graph, settings(max_epochs=1), out=tmp_path)
    assert "features.json" in names(tmp_path)
    kept = Run(tmp_path).encoder()
    assert kept.to_dict() == graph.encoder.to_dict()
    train(small_graph(), settings(max_epochs=1), out=tmp_path)  # in the same folder
    assert Run(tmp_path).encoder() is None


@pytest.mark.parametrize("damage", [truncate, empty, a_list, a_table, no_text])
def test_damage_to_the_features_is_named(tmp_path: Path, damage: Callable[[Path], None]):
    train(encoded_graph(), settings(max_epochs=1), out=tmp_path)
    damage(tmp_path / "features.json")
    with pytest.raises(CheckpointError, match=str(tmp_path / "features.json")):
        Run(tmp_path).encoder()


def break_loss(monkeypatch: pytest.MonkeyPatch, step: int, *, gradient_only: bool) -> None:
    """Makes the loss, or its gradient alone, NaN in that step of training."""
    true_loss = loop.metrics.loss
    steps = iter(range(1, 1000))

    def loss(
        logits: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None = None
    ) -> torch.Tensor:
        value = true_loss(logits, y, weight)
        if torch.is_grad_enabled() and next(steps) == step:
            return value + (logits.sum() * 0).sqrt() if gradient_only else value * float("nan")
        return value

    monkeypatch.setattr(loop.metrics, "loss", loss)


@pytest.mark.usefixtures("checkpoints")
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_checkpoint(
    tmp_path: Path, finished_run: tuple[Path, Result]
):
    with pytest.MonkeyPatch.context() as monkeypatch:
        break_loss(monkeypatch, 3, gradient_only=False)
        message = r"loss became nan in epoch 3\. The last good checkpoint is of epoch 2\."
        with pytest.raises(TrainingDiverged, match=message):
            train(small_graph(), settings(), out=tmp_path)
    assert digest(go_on(tmp_path).model) == digest(finished_run[1].model)


@pytest.mark.usefixtures("checkpoints")
def test_weights_that_are_no_numbers_are_never_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    break_loss(monkeypatch, 3, gradient_only=True)
    config = settings(evaluate_every=6)
    with pytest.raises(TrainingDiverged, match=r"loss became nan in epoch 4\..* of epoch 2\."):
        train(small_graph(), config, out=tmp_path)
    _, tensors, _ = Run(tmp_path).load_checkpoint()
    assert all(bool(torch.isfinite(value).all()) for value in tensors.values())


def test_a_last_step_that_ruins_the_weights_is_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    break_loss(monkeypatch, 3, gradient_only=True)
    with pytest.raises(TrainingDiverged, match="validation loss became nan in epoch 3"):
        train(small_graph(), settings(max_epochs=3), out=tmp_path)
    assert not Run(tmp_path).finished


def test_divergence_without_a_folder_names_no_checkpoint(monkeypatch: pytest.MonkeyPatch):
    break_loss(monkeypatch, 1, gradient_only=False)
    with pytest.raises(TrainingDiverged, match=r"in epoch 1\. A smaller learning rate"):
        train(small_graph(), settings())
