"""The training loop: one for transductive and inductive, sub-graph and whole-graph training."""

import contextlib
import itertools
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import TrainingDiverged, TrainingInterrupted, UsageError, WriteError
from lgcn.graph import Graph
from lgcn.sampling import GraphLoader
from lgcn.sampling.batches import BatchLoader
from lgcn.training import metrics
from lgcn.training.checks import check_k, check_trainable, unusual_values
from lgcn.training.evaluation import (
    Scored,
    calibration,
    evaluate,
    evaluation_graphs,
    score_graphs,
    split_scores,
    whole_graphs,
)
from lgcn.training.model_spec import ModelSpec
from lgcn.training.run_folder import Run
from lgcn.training.settings import Settings
from lgcn.training.setup import make_loader, make_optimizer, pick_device
from lgcn.training.state import Rates, State, copy_weights, restore, save
from lgcn.training.step import Step
from lgcn.utils.generators import Generators, initializing_from, random_seed

CHECKPOINT_SECONDS = 10.0
BATCHES_LISTED = 100  # of the first epoch in the record


@dataclass(frozen=True)
class Result:
    """A finished training: the model with the best weights, and what was measured."""

    model: Module
    record: dict[str, Any]

    @property
    def test_score(self) -> float | None:
        """The test score at the epoch with the best validation score."""
        score: float | None = self.record["test_score"]
        return score


def train(
    graph: Graph,
    settings: Settings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    on_epoch: Callable[[State], None] | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> Result:
    """Trains an LGCN, or another model that the settings name.

    Args:
        graph: The graph, with features, labels, and training and validation masks.
        settings: The settings.
        out: Folder for checkpoints, model and result. (default: nothing is written)
        resume: Resume from the checkpoint in ``out``. (default: ``False``)
        overwrite: Replace a run that is in ``out``, unless ``resume``. (default: ``True``)
        on_epoch: Called after every epoch, for showing progress. (default: nothing)
        weights: The model's ``state_dict`` to start from, of another training with the same
            widths. (default: drawn by the seed)
    """
    if resume and weights is not None:
        raise UsageError("weights must be None with resume, which goes on from a checkpoint")
    check_trainable(graph)
    settings = settings.resolve(graph)
    run = None if out is None else Run(out)
    spec = ModelSpec.of(graph)
    spec.check_memory(settings)
    device = pick_device(settings.hardware.device)
    check_k(graph, settings, spec.build_without_memory(settings), device)
    with (
        contextlib.nullcontext() if run is None else run.locked(make=not resume),
        stop_request(run is not None) as stopped,
        contextlib.ExitStack() as undo,
    ):
        model, optimizer, loader, step = _prepare(graph, settings, spec, device)
        if weights is not None:
            _start_from(model, weights)
        best = copy_weights(model)
        state = State()
        if run is not None and resume:
            if run.read() != (settings, spec):
                raise UsageError(f"{run.folder} holds a run with other settings or another graph")
            state, best = restore(run, model, optimizer, best)
        evaluated = [part.to(device) for part in evaluation_graphs(graph, settings)]
        if run is not None and not resume:
            if run.holds_work and not overwrite:  # which may be so since the caller looked
                raise UsageError(f"{run.folder} already holds a run; choose another --out")
            undo.push(_empty_run_removed(run))
            run.start(settings, spec, graph.encoder)
        started, saved = time.monotonic() - state.seconds, time.monotonic()
        rates = Rates()
        max_steps, patience = settings.optimisation.max_steps, settings.optimisation.patience

        while not _at_the_end(state, settings):
            if state.epoch - state.best_epoch >= patience and state.history:
                break
            epoch = state.epoch + 1
            left = None if max_steps is None else max_steps - state.steps
            epoch_started = stopped.epoch_started = time.perf_counter()
            total, steps, waited = _train_epoch(model, step, loader, epoch, left)
            train_loss = float(total) / max(steps, 1)  # an epoch's only wait for the device
            rates.seconds += time.perf_counter() - epoch_started
            rates.steps, rates.waited = rates.steps + steps, rates.waited + waited
            if isinstance(loader, BatchLoader):
                state.rates = rates.text(loader)
            _check_finite("loss", train_loss, epoch, run, graph)
            state.epoch, state.steps = epoch, state.steps + steps
            state.seconds = time.monotonic() - started
            if epoch % settings.evaluation.evaluate_every == 0 or _at_the_end(state, settings):
                scores = evaluate(model, evaluated, ("val", "test"))
                _check_finite("validation loss", scores["val"]["loss"], epoch, run, graph)
                entry = {
                    "epoch": epoch,
                    "train_loss": train_loss,
                    "val_loss": scores["val"]["loss"],
                    "val_score": scores["val"]["score"],
                    "test_score": scores.get("test", {}).get("score"),
                }
                if state.record(entry):
                    best = copy_weights(model)
            if on_epoch is not None:
                on_epoch(state)
            if run is not None and (
                stopped.is_set() or time.monotonic() - saved > CHECKPOINT_SECONDS
            ):
                save(run, model, optimizer, best, state)
                saved = time.monotonic()
            if run is not None and stopped.is_set():
                raise TrainingInterrupted(
                    f"stopped after epoch {epoch}; its state is saved. "
                    f"Resume with: {run.resume_command}"
                )

        stopped.epoch_started = None
        model.load_state_dict(best)
        if (
            settings.evaluation.evaluate_on == "sampled"
        ):  # at the end, the exact scores of all nodes
            evaluated = whole_graphs(graph)
        scored = score_graphs(model, evaluated, settings)
        speed = rates.record(loader) if isinstance(loader, BatchLoader) else {}
        record = _summary(model, graph, scored, loader, settings, state)
        record |= {**calibration(scored), **speed}
        record["out"] = None if run is None else str(run.folder)
        if run is not None:
            with run.resumable():
                run.finish(best, {**record, "history": state.history})
    return Result(model.eval(), record)


def train_epochs(graph: Graph, settings: Settings, epochs: int) -> Module:
    """The training alone of so many epochs: no evaluation, no checkpoints, the last weights.

    Nothing waits for the device before the end.
    """
    check_trainable(graph)
    settings = settings.resolve(graph)
    device = pick_device(settings.hardware.device)
    model, _, loader, step = _prepare(graph, settings, ModelSpec.of(graph), device)
    losses = [_train_epoch(model, step, loader, epoch)[0] for epoch in range(1, epochs + 1)]
    for epoch, loss in enumerate(torch.stack(losses).tolist() if losses else [], start=1):
        _check_finite("loss", loss, epoch, None, graph)
    return model


def _prepare(
    graph: Graph, settings: Settings, spec: ModelSpec, device: torch.device
) -> tuple[Module, Optimizer, BatchLoader | GraphLoader, Step]:
    generators = Generators(device)
    generators.manual_seed(random_seed(settings.seed))
    with initializing_from(generators):
        model = spec.build(settings)
    model = model.to(device)
    optimizer = make_optimizer(model, settings)
    loader = make_loader(graph, settings)
    fixed = isinstance(loader, GraphLoader) or not loader.resample
    return model, optimizer, loader, Step(model, optimizer, settings, device, fixed, generators)


def _at_the_end(state: State, settings: Settings) -> bool:
    max_steps, max_epochs = settings.optimisation.max_steps, settings.optimisation.max_epochs
    return (max_steps is not None and state.steps >= max_steps) or state.epoch >= max_epochs


def _train_epoch(
    model: Module,
    step: Step,
    loader: BatchLoader | GraphLoader,
    epoch: int,
    max_steps: int | None = None,
) -> tuple[Tensor, int, float]:
    """The sum of the losses, on the device, their number, and the time spent waiting for batches.

    With ``max_steps``, the epoch ends after so many.
    """
    model.train()
    step.begin_epoch(epoch)
    total = torch.zeros((), device=step.device)
    steps, waited = 0, 0.0
    with contextlib.closing(loader.epoch(epoch)) as batches:
        while max_steps is None or steps < max_steps:
            asked = time.perf_counter()
            batch = next(batches, None)
            waited += time.perf_counter() - asked
            if batch is None:
                break
            loss = step(batch)
            if loss is not None:
                total += loss
                steps += 1
    return total, steps, waited


def _check_finite(name: str, value: float, epoch: int, run: Run | None, graph: Graph) -> None:
    if not np.isfinite(value):
        kept = run.load_checkpoint() if run is not None else None
        where = f" The last good checkpoint is of epoch {kept[0]}." if kept else ""
        cause = unusual_values(graph) or "A smaller learning rate may help: --set lr=0.01"
        raise TrainingDiverged(f"the {name} became {value} in epoch {epoch}.{where} {cause}")


def _empty_run_removed(run: Run) -> Callable[..., None]:
    """A run that ended before its first checkpoint leaves nothing in the way of the next.

    It stays where a write failed: the message says how to resume it.
    """

    def on_exit(kind: type[BaseException] | None, *_: object) -> None:
        if run.holds_work or (kind is not None and issubclass(kind, WriteError)):
            return
        run.clear()

    return on_exit


class StopRequest(threading.Event):
    """Whether the user wants to stop.

    Attributes:
        epoch_started: When the epoch that is being trained started; ``None`` where none is, so
            that there is nothing to wait for.
    """

    epoch_started: float | None = None


@contextlib.contextmanager
def stop_request(active: bool) -> Iterator[StopRequest]:
    """Turns Ctrl-C and SIGTERM into a request to stop after the epoch, and says so.

    A second one stops at once, as does the first where no epoch is being trained. Only the main
    thread can receive signals; elsewhere nothing changes.
    """
    requested = StopRequest()
    if not active or threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def handler(number: int, frame: Any) -> None:
        if requested.is_set() or requested.epoch_started is None:
            raise KeyboardInterrupt
        requested.set()
        so_far = time.perf_counter() - requested.epoch_started
        # Not through Python's streams, which may be in the midst of a line.
        line = f"stopping after this epoch ({so_far:.0f} s so far); Ctrl-C again stops at once\n"
        with contextlib.suppress(OSError):
            os.write(2, (b"\n" if os.isatty(2) else b"") + line.encode())

    # A shell's background jobs ignore Ctrl-C.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield requested
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _summary(
    model: Module,
    graph: Graph,
    scored: Scored,
    loader: BatchLoader | GraphLoader,
    settings: Settings,
    state: State,
) -> dict[str, Any]:
    scores = split_scores(scored, ("val", "test"))
    with contextlib.closing(loader.epoch(1)) as batches:
        nodes_per_batch = [b.num_nodes for b in itertools.islice(batches, BATCHES_LISTED)]
    test = scores.get("test", {})
    record: dict[str, Any] = {
        "model": settings.model.name,
        "dataset": settings.dataset,
        "graph": graph.name,
        "metric": metrics.metric_name(graph.multi_label),
        "seed": settings.seed,
        "val_score": scores["val"]["score"],
        "test_score": test.get("score"),
        "test_score_released_rule": state.released_test_score,
        "best_epoch": state.best_epoch,
        "epochs": state.epoch,
        "steps": state.steps,
        "seconds": state.seconds,
        "nodes_per_batch": nodes_per_batch,
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    if graph.multi_label:
        record["test_label_accuracy"] = test.get("label_accuracy")
    return record


def _start_from(model: Module, weights: Mapping[str, Tensor]) -> None:
    try:
        model.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise UsageError(
            f"weights must be those of a model of the same settings, features and classes: {error}"
        ) from error
