"""The training loop: the same one for sub-graphs and whole graphs, and for all models."""

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.sampling import GraphLoader
from lgcn.sampling.batches import BatchLoader
from lgcn.training.checkpoints import restore, save
from lgcn.training.checks import check_k, check_metric, check_trainable
from lgcn.training.choose import describe
from lgcn.training.divergence import check_finite
from lgcn.training.evaluation import (
    SplitScores,
    evaluate,
    evaluation_graphs,
    score_graphs,
    whole_graphs,
)
from lgcn.training.interrupts import stop_request
from lgcn.training.model_spec import ModelSpec
from lgcn.training.record import final_scoring, run_record
from lgcn.training.run_folder import Run
from lgcn.training.run_metrics import run_metrics
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.setup import make_loader, make_optimizer, pick_device
from lgcn.training.split_file import check_split, split_of
from lgcn.training.state import Rates, State
from lgcn.training.step import Step
from lgcn.training.weights import training_graph
from lgcn.utils.generators import Generators, initializing_from, random_seed
from lgcn.utils.progress import OnEpoch, OnStart

CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True)
class Result:
    """A finished training: the model with the best weights, its specification, and the record.

    The history is the losses and scores of the epochs.
    """

    model: Module
    record: dict[str, Any]
    spec: ModelSpec
    history: list[dict[str, Any]] = field(default_factory=list, kw_only=True)

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
    on_epoch: OnEpoch | None = None,
    on_start: OnStart | None = None,
    weights: Mapping[str, Tensor] | None = None,
    deadline: float | None = None,
) -> Result:
    """Trains an LGCN, or another model that the settings name.

    Args:
        graph: The graph, with labels, training and validation masks, and features. Without
            features, ``structural_features`` and ``positions`` make some from its edges.
        settings: The settings.
        out: Folder for checkpoints, model and result. (default: nothing is written)
        resume: Resume from the checkpoint in ``out``. (default: ``False``)
        overwrite: Replace a run that is in ``out``, unless ``resume``. (default: ``True``)
        on_epoch: Called after every epoch with the `State`, to show progress. (default: none)
        on_start: Called before the first epoch with a line that says what is trained on, and
            whether steps are on whole graphs. (default: none)
        weights: The ``state_dict`` to start from, of a model of the same sizes.
            (default: drawn by the seed)
        deadline: Stop after the epoch in which `time.monotonic` passes this, with the best weights
            so far. (default: none)
    """
    if settings.model.name == "boosting":  # trees are grown, not optimised step by step
        from lgcn.training.boosting import train_boosting

        return train_boosting(graph, settings, out=out, overwrite=overwrite, deadline=deadline)
    if resume and weights is not None:
        raise UsageError("weights must be None with resume=True, which starts from a checkpoint")
    check_trainable(graph, settings)
    given, settings = settings, settings.resolve(graph)
    plain = graph  # as it was given, for the baselines
    spec = ModelSpec.of(graph, settings)
    graph = spec.prepare(graph)
    spec.check_memory(settings)
    scoring = Scoring.of(settings, spec)
    device = pick_device(settings.hardware.device)
    check_k(graph, settings, spec.build_without_memory(settings), device)
    run = None if out is None else Run(out)
    with contextlib.ExitStack() as stack:
        if run is not None:
            stack.enter_context(run.locked(make=not resume))
        stop = stack.enter_context(stop_request(run is not None))
        model, optimizer, loader, step = _prepare(graph, settings, spec, device)
        if weights is not None:
            _start_from(model, weights)
        state, best, rates = State(), _copy_weights(model), Rates()
        if run is not None and resume:
            check_split(run.folder, graph, run.split(graph.num_nodes))
            state, best = restore(run, settings, spec, model, optimizer, best)
        evaluated = [part.to(device) for part in evaluation_graphs(graph, settings)]
        check_metric(graph, evaluated, scoring.metric)
        if run is not None and not resume:
            split = split_of(graph)
            stack.enter_context(
                run.begin(settings, spec, graph.encoder, split, overwrite=overwrite)
            )
        if on_start is not None:
            on_start(describe(graph, settings, given), settings.sampling.training == "whole")
        started, saved = time.monotonic() - state.seconds, time.monotonic()

        while not (_at_the_limit(state, settings) or _out_of_patience(state, settings)):
            epoch = state.epoch + 1
            if state.history and _past(deadline):
                break

            # Train on all batches.
            epoch_started = stop.epoch_started = time.perf_counter()
            steps_left = _steps_left(state, settings)
            total, steps, waited = _train_epoch(model, step, loader, epoch, steps_left)
            train_loss = float(total) / max(steps, 1)  # the only wait for the device in an epoch
            rates.add(steps, time.perf_counter() - epoch_started, waited)
            check_finite("loss", train_loss, epoch, graph, settings, run)
            state.epoch, state.steps = epoch, state.steps + steps
            state.seconds = time.monotonic() - started
            state.rates = rates.text(loader) if isinstance(loader, BatchLoader) else ""

            # Evaluate, record, and keep the best weights.
            last = _at_the_limit(state, settings) or _past(deadline)
            if epoch % settings.evaluation.evaluate_every == 0 or last:
                scores = evaluate(model, evaluated, ("val", "test"), scoring)
                check_finite("validation loss", scores["val"]["loss"], epoch, graph, settings, run)
                entry = _history_entry(epoch, train_loss, scores)
                if state.record(entry, greater_is_better=scoring.greater_is_better):
                    best = _copy_weights(model)
            if on_epoch is not None:
                on_epoch(state)

            # Save a checkpoint now and then, and before stopping at the user's request.
            if run is not None and (stop.is_set() or time.monotonic() - saved > CHECKPOINT_SECONDS):
                save(run, model, optimizer, best, state)
                saved = time.monotonic()
            if run is not None and stop.is_set():
                raise TrainingInterrupted(
                    f"stopped after epoch {epoch}; its state is saved. "
                    f"Resume with: {run.resume_command}"
                )

        stop.epoch_started = None
        model.load_state_dict(best)
        if settings.evaluation.evaluate_on == "sampled":
            evaluated = whole_graphs(graph)  # the final scores are exact, over all nodes
        scored = score_graphs(model, evaluated, settings)
        record = run_record(model, graph, settings, loader, state, rates, scored, scoring)
        record["out"] = None if run is None else str(run.folder)
        if run is not None:
            metrics = run_metrics(plain, settings, scored, *final_scoring(record, scoring))
            with run.resumable():
                run.finish(best, {**record, "history": state.history}, metrics)
    return Result(model.eval(), record, spec, history=state.history)


def train_epochs(graph: Graph, settings: Settings, epochs: int) -> Module:
    """Trains for some epochs, without evaluation or checkpoints, and gives the last weights.

    It waits for the device only once, at the end.

    Args:
        graph: The graph.
        settings: The settings.
        epochs: Number of epochs.
    """
    check_trainable(graph, settings)
    settings = settings.resolve(graph)
    spec = ModelSpec.of(graph, settings)
    graph = spec.prepare(graph)
    device = pick_device(settings.hardware.device)
    model, _, loader, step = _prepare(graph, settings, spec, device)
    losses = [_train_epoch(model, step, loader, epoch)[0] for epoch in range(1, epochs + 1)]
    for epoch, loss in enumerate(torch.stack(losses).tolist() if losses else [], start=1):
        check_finite("loss", loss, epoch, graph, settings)
    return model


def _prepare(
    graph: Graph, settings: Settings, spec: ModelSpec, device: torch.device
) -> tuple[Module, Optimizer, BatchLoader | GraphLoader, Step]:
    """The model with new weights, its optimiser, the batches, and the step that joins them."""
    generators = Generators(device)
    generators.manual_seed(random_seed(settings.seed))
    with initializing_from(generators):
        model = spec.build(settings)
    model = model.to(device)
    optimizer = make_optimizer(model, settings)
    loader = make_loader(training_graph(graph, settings, spec), settings)
    fixed = isinstance(loader, GraphLoader) or not loader.resample
    return model, optimizer, loader, Step(model, optimizer, settings, device, fixed, generators)


def _train_epoch(
    model: Module,
    step: Step,
    loader: BatchLoader | GraphLoader,
    epoch: int,
    max_steps: int | None = None,
) -> tuple[Tensor, int, float]:
    """Trains on the batches of an epoch, or on the first ``max_steps`` of them.

    Returns:
        The sum of the losses, which stays on the device; the number of steps; the seconds spent
        waiting for batches.
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


def _at_the_limit(state: State, settings: Settings) -> bool:
    return state.epoch >= settings.optimisation.max_epochs or _steps_left(state, settings) == 0


def _past(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _steps_left(state: State, settings: Settings) -> int | None:
    max_steps = settings.optimisation.max_steps
    return None if max_steps is None else max(0, max_steps - state.steps)


def _out_of_patience(state: State, settings: Settings) -> bool:
    """Early stopping: the best validation score is too many epochs ago."""
    waited = state.epoch - state.best_epoch
    return bool(state.history) and waited >= settings.optimisation.patience


def _history_entry(epoch: int, train_loss: float, scores: SplitScores) -> dict[str, Any]:
    return {
        "epoch": epoch,
        "train_loss": train_loss,
        "val_loss": scores["val"]["loss"],
        "val_score": scores["val"]["score"],
        "test_score": scores.get("test", {}).get("score"),
    }


def _copy_weights(model: Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in model.state_dict().items()}


def _start_from(model: Module, weights: Mapping[str, Tensor]) -> None:
    try:
        model.load_state_dict(dict(weights))
    except RuntimeError as error:
        raise UsageError(
            "weights must be those of a model with the same settings, features and classes: "
            f"{error}"
        ) from error
