"""A loss or weights that are no numbers end a run."""

from pathlib import Path

import pytest
import torch

from lgcn.errors import TrainingDiverged
from lgcn.training import Result, Run, metrics, train

from ..graphs import digest, settings, small_graph
from .runs import go_on


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
    with pytest.raises(TrainingDiverged, match=r"in epoch 1\. A smaller learning rate"):
        train(small_graph(), settings())
