"""Runs that are stopped, killed or diverge are resumed to the same end."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn.errors import CheckpointError, TrainingDiverged, TrainingInterrupted, UsageError
from lgcn.training import Result, Run, data, metrics, train

from ..graphs import digest, lasting, settings, several_graphs, small_graph
from .runs import STOPPED, Killed, at_epoch, die, go_on, interrupt, names

PRESETS: dict[str, dict[str, Any]] = {
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
    "trend": {"lr": 0.0, "patience": 3, "early_stop": "trend"},
    "schedule": {"lr_schedule": "one_cycle"},
    "views": {"views": 2, "agreement": 1.0, "views_from": 4},
}


def test_an_interrupted_run_says_how_to_go_on_and_does(
    stopped: Path, finished_run: tuple[Path, Result]
):
    assert names(stopped) == {*STOPPED, "checkpoint-3.safetensors"}
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
@pytest.mark.parametrize("preset", PRESETS)
def test_a_killed_run_goes_on_to_the_same_end(tmp_path: Path, preset: str):
    config = settings(**PRESETS[preset])
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
@pytest.mark.parametrize("epoch", range(2, 7))
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
    true_evaluate = data.evaluate

    def best_at_epoch_2() -> None:
        scores = iter([0.5, 0.9])

        def evaluate(*args: Any) -> dict[str, dict[str, float]]:
            found = true_evaluate(*args)
            found["val"]["score"] = next(scores, 0.1)
            return found

        monkeypatch.setattr(data, "evaluate", evaluate)

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
from tests.training.graphs import digest, settings, small_graph
from lgcn.training import loop, train
print(digest(train(small_graph(), settings()).model), flush=True)
loop.CHECKPOINT_SECONDS = -1.0
kill = lambda state: state.epoch == 4 and os.kill(os.getpid(), signal.SIGKILL)
train(small_graph(), settings(), out=sys.argv[2], on_epoch=kill)
"""


def test_a_fresh_process_gives_the_same_and_can_be_killed(
    tmp_path: Path, finished_run: tuple[Path, Result]
):
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", FRESH, str(root), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.strip() == digest(finished_run[1].model)
    assert Run(tmp_path / "run").load_checkpoint()[0] == 3
    assert digest(go_on(tmp_path / "run").model) == digest(finished_run[1].model)


def test_going_on_needs_the_same_settings(stopped: Path):
    with pytest.raises(UsageError, match="run with other settings"):
        go_on(stopped, settings(seed=1))


def test_going_on_needs_a_run(tmp_path: Path):
    with pytest.raises(UsageError, match="no such run folder"):
        go_on(tmp_path / "none")
    with pytest.raises(CheckpointError, match=r"is not a run folder: no run\.json"):
        go_on(tmp_path)


def break_loss(monkeypatch: pytest.MonkeyPatch, step: int, *, gradient_only: bool) -> None:
    """Makes the loss, or its gradient alone, NaN in that step of training."""
    true_loss = metrics.loss
    steps = iter(range(1, 1000))

    def loss(
        logits: torch.Tensor, y: torch.Tensor, weight: torch.Tensor | None = None
    ) -> torch.Tensor:
        value = true_loss(logits, y, weight)
        if torch.is_grad_enabled() and next(steps) == step:
            return value + (logits.sum() * 0).sqrt() if gradient_only else value * float("nan")
        return value

    monkeypatch.setattr(metrics, "loss", loss)


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
    with pytest.raises(TrainingDiverged, match=r"in epoch 1.*lr="):
        train(small_graph(), settings())
