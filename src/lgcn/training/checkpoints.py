"""Saving a training in its run folder, and resuming it from there."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import START_AGAIN, CheckpointError, UsageError, one_line
from lgcn.training.model_spec import ModelSpec, load_weights
from lgcn.training.run_folder import Run
from lgcn.training.settings import Settings
from lgcn.training.state import State
from lgcn.workers import Workers
from lgcn.workers.tensors import share_tensors

MOMENTS = {"step", "exp_avg", "exp_avg_sq"}  # what Adam and Nadam keep per parameter
ENTRY = {"epoch", "train_loss", "val_loss", "val_score", "test_score"}  # keys of the history


def save(
    run: Run, model: Module, optimizer: Optimizer, best: dict[str, Tensor], state: State
) -> None:
    """Writes a checkpoint: weights, best weights, optimiser and state.

    If a weight is not finite, the checkpoint before stays.
    """
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        return  # the loss of the next epoch will report it
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in values.items()}
    run.save_checkpoint(state.epoch, tensors, vars(state))


class Checkpoint(NamedTuple):
    """A checkpoint as it was read: its state is checked, its tensors are not."""

    path: Path  # for messages
    tensors: dict[str, Tensor]
    state: State


def checkpoint_of(run: Run, settings: Settings, spec: ModelSpec) -> Checkpoint | None:
    """The checkpoint of a run; `None` if it has none yet.

    Args:
        run: The run folder.
        settings, spec: Those of the training, which the run must have as well.
    """
    if run.read() != (settings, spec):
        raise UsageError(f"{run.folder} holds a run with other settings or another graph")
    checkpoint = run.load_checkpoint()
    if checkpoint is None:  # stopped before the first checkpoint: start anew
        return None
    epoch, tensors, record = checkpoint
    path = run.folder / f"checkpoint-{epoch}.safetensors"
    try:
        state = _state(record, epoch)
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"{run.folder / 'checkpoint.json'} is damaged: {one_line(error)}. {START_AGAIN}"
        ) from error
    return Checkpoint(path, tensors, state)


def share_checkpoint(found: Checkpoint | None, workers: Workers) -> Checkpoint | None:
    """The checkpoint that rank 0 read, on all ranks."""
    if workers.size == 1:
        return found
    message = None if found is None else {"path": str(found.path), "state": vars(found.state)}
    message = workers.share(message, "the checkpoint")
    if message is None:
        return None
    tensors = share_tensors(workers, None if found is None else found.tensors, "the checkpoint")
    return Checkpoint(Path(message["path"]), tensors, State(**message["state"]))


def restore(
    found: Checkpoint, model: Module, optimizer: Optimizer
) -> tuple[State, dict[str, Tensor]]:
    """Loads a checkpoint into the model and its optimiser.

    Returns:
        The state and the best weights.
    """
    path = found.path
    parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "optimizer": {}}
    for name, value in found.tensors.items():
        part, _, key = name.partition(".")
        if part not in parts:
            raise CheckpointError(f"{path} is damaged: it holds {name!r:.80}. {START_AGAIN}")
        parts[part][key] = value
    for part in ("best", "model"):
        load_weights(model, parts[part], path)
    optimizer_state = optimizer.state_dict()
    try:
        optimizer_state["state"] = _moments(optimizer, parts["optimizer"])
    except ValueError as error:
        raise CheckpointError(f"{path} is damaged: {one_line(error)}. {START_AGAIN}") from error
    optimizer.load_state_dict(optimizer_state)
    return found.state, parts["best"]


def _moments(optimizer: Optimizer, tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    """What the optimiser keeps per parameter, by its number, checked; raises ValueError."""
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
    """The stored state, checked; raises ValueError or TypeError."""
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
        raise ValueError("rates must be a string, and history a list")
    for entry in state.history:
        if not isinstance(entry, dict) or not set(entry) >= ENTRY:
            raise ValueError(f"an entry of history must have {', '.join(sorted(ENTRY))}")
        for key in ENTRY:
            if not (_is_number(entry[key]) or (key == "test_score" and entry[key] is None)):
                raise ValueError(f"{key} of history must be numbers, got {entry[key]!r:.80}")
    return state


def _is_number(value: Any) -> bool:
    # Neither NaN nor a whole number too large for a float.
    number = isinstance(value, int | float) and not isinstance(value, bool) and value == value
    return number and (isinstance(value, float) or abs(value) < 2**63)
