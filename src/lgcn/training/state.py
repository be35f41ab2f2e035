"""Where training stands: what was measured, how fast, and its way into a checkpoint and back."""

import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import START_AGAIN, CheckpointError, one_line
from lgcn.sampling.batches import BatchLoader
from lgcn.training.model_spec import load_weights
from lgcn.training.run_folder import Run

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # of Adam and Nadam
ENTRY = {"epoch", "train_loss", "val_loss", "val_score", "test_score"}  # of the history


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
    epoch, tensors, record = checkpoint
    path = run.folder / f"checkpoint-{epoch}.safetensors"
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
    for name, value in tensors.items():
        part, _, key = name.partition(".")
        if part not in parts:
            raise CheckpointError(f"{path} is damaged: it holds {name!r:.80}. {START_AGAIN}")
        parts[part][key] = value
    # Read in full before anything is changed by it.
    try:
        state = _state(record, epoch)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{run.folder / 'checkpoint.json'} is damaged: {one_line(error)}. {START_AGAIN}"
        ) from error
    for part in ("best", "model"):
        load_weights(model, parts[part], path)
    optimizer_state = optimizer.state_dict()
    try:
        optimizer_state["state"] = _moments(optimizer, parts["optimizer"])
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {one_line(error)}. {START_AGAIN}") from error
    optimizer.load_state_dict(optimizer_state)
    return state, parts["best"]


def _moments(optimizer: Optimizer, tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """What the optimiser keeps for each parameter, by its number; raises ValueError."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    found: dict[int, dict[str, Tensor]] = {}
    for name, value in tensors.items():
        number, _, key = name.partition(".")
        if not re.fullmatch("[0-9]{1,9}", number) or int(number) >= len(parameters):
            raise ValueError(f"optimizer.{name:.80} must name one of {len(parameters)} parameters")
        wanted = () if key == "step" else tuple(parameters[int(number)].shape)
        if tuple(value.shape) != wanted or not value.is_floating_point():
            raise ValueError(
                f"optimizer.{name:.80} must hold floating-point numbers in shape {list(wanted)}, "
                f"got {value.dtype} in shape {list(value.shape)}"
            )
        if not bool(torch.isfinite(value).all()) or (key != "exp_avg" and bool((value < 0).any())):
            raise ValueError(f"optimizer.{name:.80} must hold finite numbers, none below zero")
        found.setdefault(int(number), {})[key] = value
    for place, kept in found.items():
        if set(kept) != MOMENTS:
            raise ValueError(f"optimizer.{place} must have {', '.join(sorted(MOMENTS))}")
    return found


def _state(stored: Any, epoch: int) -> State:
    """The state in a file, checked; raises ValueError or TypeError."""
    state = State(**stored)
    for key in ("epoch", "steps", "best_epoch"):
        if type(getattr(state, key)) is not int or getattr(state, key) < 0:
            raise ValueError(f"{key} must be a whole number, got {getattr(state, key)!r:.80}")
    if state.epoch != epoch or state.best_epoch > epoch:
        raise ValueError(f"it is of epoch {epoch}, but its state of epoch {state.epoch}")
    for key in ("best_val_score", "best_val_loss", "released_val_score", "seconds"):
        if not _is_number(getattr(state, key)):
            raise ValueError(f"{key} must be a number, got {getattr(state, key)!r:.80}")
    if not (state.released_test_score is None or _is_number(state.released_test_score)):
        raise ValueError("released_test_score must be a number or null")
    if not isinstance(state.rates, str) or not isinstance(state.history, list):
        raise ValueError("rates must be a text, and history a list")
    for entry in state.history:
        if not isinstance(entry, dict) or not set(entry) >= ENTRY:
            raise ValueError(f"an entry of history must have {', '.join(sorted(ENTRY))}")
        for key in ENTRY:
            if not (_is_number(entry[key]) or (key == "test_score" and entry[key] is None)):
                raise ValueError(f"{key} of history must be numbers, got {entry[key]!r:.80}")
    return state


def _is_number(value: Any) -> bool:
    # Not NaN, and no whole number that a float cannot hold.
    number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return number and (isinstance(value, float) or abs(value) < 2**63)


def copy_weights(model: Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in model.state_dict().items()}
