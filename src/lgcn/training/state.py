"""Where training stands: what was measured, how fast, and its way into a checkpoint and back."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import CheckpointError
from lgcn.sampling.batches import BatchLoader
from lgcn.training.checkpoint import Run, load_weights


@dataclass
class State:
    """Where training stands; everything in it goes into the checkpoint.

    The honest rule reports the test score at the epoch with the best validation score (at ties,
    the lower validation loss). The released program's rule reports the best test score of all
    epochs at which validation did not get worse: it looks at the test set, so it is only recorded.
    """

    epoch: int = 0  # epochs done
    steps: int = 0  # of the optimiser
    best_epoch: int = 0
    best_val_score: float = -1.0
    best_val_loss: float = float("inf")
    released_val_score: float = -1.0
    released_test_score: float | None = None
    seconds: float = 0.0
    rates: str = ""  # of the loader and the model, for showing
    history: list[dict[str, Any]] = field(default_factory=list)

    def record(self, entry: dict[str, Any]) -> bool:
        """Takes in an evaluated epoch; tells whether it is the best so far."""
        self.history.append(entry)
        val_score, test_score = entry["val_score"], entry["test_score"]
        if val_score >= self.released_val_score:
            self.released_val_score = val_score
            if test_score is not None:
                self.released_test_score = max(test_score, self.released_test_score or 0.0)
        better = (val_score, -entry["val_loss"]) > (self.best_val_score, -self.best_val_loss)
        if better:
            self.best_epoch = entry["epoch"]
            self.best_val_score, self.best_val_loss = val_score, entry["val_loss"]
        return better


@dataclass
class Rates:
    """How fast batches are made and used: the slower of the two is what training waits for."""

    steps: int = 0
    seconds: float = 0.0  # of training, without evaluation
    waited: float = 0.0  # of these, for the next batch

    def record(self, loader: BatchLoader) -> dict[str, float]:
        made = loader.subgraphs_per_second
        used = self.steps / max(self.seconds - self.waited, 1e-9)
        return {
            "loader_subgraphs_per_second": 0.0 if made is None else made,
            "model_steps_per_second": used,
        }

    def text(self, loader: BatchLoader) -> str:
        """Both in batches a second."""
        rates = self.record(loader)
        made = rates["loader_subgraphs_per_second"] / loader.batch_size
        return f"loader {made:.0f}/s, model {rates['model_steps_per_second']:.0f}/s"


def save(run: Run, model: Module, optimizer: Optimizer, best: Any, state: State) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        return  # the next epoch's loss will say so; the checkpoint before stays
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in values.items()}
    run.save_checkpoint(state.epoch, tensors, vars(state))


def restore(
    run: Run, model: Module, optimizer: Optimizer, best: dict[str, Tensor]
) -> tuple[State, dict[str, Tensor]]:
    checkpoint = run.load_checkpoint()
    if checkpoint is None:  # stopped before the first checkpoint: begin anew
        return State(), best
    epoch, tensors, state = checkpoint
    path = run.folder / f"checkpoint-{epoch}.safetensors"
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
    for name, value in tensors.items():
        part, _, key = name.partition(".")
        parts.setdefault(part, {})[key] = value
    for part in ("best", "model"):
        load_weights(model, parts[part], path)
    optimizer_state = optimizer.state_dict()
    for name, value in parts["optimizer"].items():
        number, _, key = name.partition(".")
        optimizer_state["state"].setdefault(int(number), {})[key] = value
    optimizer.load_state_dict(optimizer_state)
    try:
        return State(**state), parts["best"]
    except TypeError as error:
        raise CheckpointError(f"{run.folder / 'checkpoint.json'} is damaged: {error}") from error


def copy_weights(model: Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in model.state_dict().items()}
