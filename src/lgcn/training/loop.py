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
from lgcn.graph import Graph, GraphSet
from lgcn.partition import Partition
from lgcn.sampling.batches import BatchLoader
from lgcn.training.checkpoints import checkpoint_of, restore, save, share_checkpoint
from lgcn.training.data import Loader, TrainingData
from lgcn.training.divergence import check_finite
from lgcn.training.early_stop import EarlyStop
from lgcn.training.evaluation import SplitScores
from lgcn.training.interrupts import stop_request
from lgcn.training.model_spec import ModelSpec
from lgcn.training.record import final_scoring, run_record
from lgcn.training.run_folder import Run
from lgcn.training.run_metrics import run_metrics
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.setup import make_optimizer, pick_device
from lgcn.training.shared_data import training_data, whole_in_one_process
from lgcn.training.split_file import check_split
from lgcn.training.state import Rates, State
from lgcn.training.step import Step
from lgcn.utils.generators import Generators, initializing_from, random_seed
from lgcn.utils.progress import OnEpoch, OnStart
from lgcn.workers import Workers

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
    graph: Graph | GraphSet | Partition,
    settings: Settings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    on_epoch: OnEpoch | None = None,
    on_start: OnStart | None = None,
    weights: Mapping[str, Tensor] | None = None,
    deadline: float | None = None,
    workers: Workers | None = None,
) -> Result:
    """Trains an LGCN, or another model that the settings name.

    Args:
        graph: The graph, with labels, training and validation masks, and features. Without
            features, ``structural_features`` and ``positions`` make some from its edges. Or a
            graph in parts (`lgcn.partition.open_partition`). Or whole graphs
            (`lgcn.load_graphs`), for a model of whole graphs.
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
        workers: The processes that share the training, see `lgcn.workers.connected`. Each of them
            calls this function with the same arguments. The first one writes. (default: one)
    """
    if settings.model.name == "boosting":  # trees are grown, not optimised step by step
        from lgcn.training.boosting import train_boosting

        graph = whole_in_one_process(graph, workers, "model=boosting")
        return train_boosting(graph, settings, out=out, overwrite=overwrite, deadline=deadline)
    if resume and weights is not None:
        raise UsageError("weights must be None with resume=True, which starts from a checkpoint")
    data = training_data(graph, settings, workers)
    given, settings, spec, workers = settings, data.settings, data.spec, data.workers
    spec.check_memory(settings)
    scoring = Scoring.of(settings, spec)
    device = pick_device(settings.hardware.device)
    data.check_k(device)
    run = None if out is None or not workers.is_first else Run(out)
    with contextlib.ExitStack() as stack:
        if run is not None:
            stack.enter_context(run.locked(make=not resume))
        stop = stack.enter_context(stop_request(out is not None))
        model, optimizer, loader, step = _prepare(data, device)
        if weights is not None:
            _start_from(model, weights)
        state, best, rates = State(), _copy_weights(model), Rates()
        if resume and out is not None:
            found = None
            if run is not None:
                check_split(run.folder, data.graph, run.split(data.graph.num_nodes))
                found = checkpoint_of(run, settings, spec)
            found = share_checkpoint(found, workers)
            if found is not None:
                state, best = restore(found, model, optimizer)
        data.prepare_evaluation(scoring.metric, device)
        if run is not None and not resume:
            given_by = (data.graph.encoder, data.split(), data.graph.edge_encoder)
            stack.enter_context(run.begin(settings, spec, *given_by, overwrite=overwrite))
        if on_start is not None:
            on_start(data.describe(given), settings.sampling.training == "whole")
        started, saved = time.monotonic() - state.seconds, time.monotonic()

        early = EarlyStop(settings.optimisation, scoring.greater_is_better)
        early.replay(state.history, state.best_epoch)
        while not (_at_the_limit(state, settings) or (state.history and early.is_due(state.epoch))):
            epoch = state.epoch + 1
            if state.history and _on_any(_past(deadline), workers):
                break

            # Train on all batches.
            epoch_started = stop.epoch_started = time.perf_counter()
            steps_left = _steps_left(state, settings)
            step.begin_epoch(epoch, state.steps)
            total, steps, waited = _train_epoch(model, step, loader, epoch, steps_left)
            total = workers.sum(total, "the loss of the epoch")
            train_loss = float(total) / max(steps, 1)  # the only wait for the device in an epoch
            rates.add(steps, time.perf_counter() - epoch_started, waited)
            check_finite("loss", train_loss, epoch, data.graph, settings, run)
            state.epoch, state.steps = epoch, state.steps + steps
            state.seconds = time.monotonic() - started
            state.rates = rates.text(loader) if isinstance(loader, BatchLoader) else ""

            # Evaluate, record, and keep the best weights.
            last = _at_the_limit(state, settings) or _on_any(_past(deadline), workers)
            if epoch % settings.evaluation.evaluate_every == 0 or last:
                scores = data.evaluate(model, scoring)
                val_loss = scores["val"]["loss"]
                check_finite("validation loss", val_loss, epoch, data.graph, settings, run)
                entry = _history_entry(epoch, train_loss, scores)
                better = state.record(entry, greater_is_better=scoring.greater_is_better)
                if better:
                    best = _copy_weights(model)
                early.add(entry, better=better)
                state.progress_epoch = early.progress_epoch
            if on_epoch is not None:
                on_epoch(state)

            # Save a checkpoint now and then, and before stopping at the user's request.
            stopping = _on_any(stop.is_set(), workers)
            if run is not None and (stopping or time.monotonic() - saved > CHECKPOINT_SECONDS):
                save(run, model, optimizer, best, state)
                saved = time.monotonic()
            if out is not None and stopping:
                raise TrainingInterrupted(
                    f"stopped after epoch {epoch}; its state is saved. "
                    f"Resume with: {Run(out).resume_command}"
                )

        stop.epoch_started = None
        model.load_state_dict(best)
        scored = data.scored(model)
        record: dict[str, Any] = {}
        if scored is not None:
            record = run_record(model, data.graph, settings, loader, state, rates, scored, scoring)
        record = workers.share(record, "the scores of rank 0")
        record["out"] = None if out is None else str(Path(out))
        if run is not None and scored is not None:
            metrics = run_metrics(data.plain, settings, scored, *final_scoring(record, scoring))
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
    data = TrainingData(graph, settings)
    model, _, loader, step = _prepare(data, pick_device(data.settings.hardware.device))
    losses, steps = [], 0
    for epoch in range(1, epochs + 1):
        step.begin_epoch(epoch, steps)
        loss, done, _ = _train_epoch(model, step, loader, epoch)
        losses.append(loss)
        steps += done
    for epoch, loss in enumerate(torch.stack(losses).tolist() if losses else [], start=1):
        check_finite("loss", loss, epoch, data.graph, data.settings)
    return model


def _prepare(data: TrainingData, device: torch.device) -> tuple[Module, Optimizer, Loader, Step]:
    """The model with new weights, its optimiser, the batches, and the step that joins them."""
    generators = Generators(device)
    generators.manual_seed(random_seed(data.settings.seed))
    with initializing_from(generators):
        model = data.spec.build(data.settings)
    model = model.to(device)
    optimizer = make_optimizer(model, data.settings)
    loader = data.loader()
    return model, optimizer, loader, data.step(model, optimizer, loader, device, generators)


def _train_epoch(
    model: Module,
    step: Step,
    loader: Loader,
    epoch: int,
    max_steps: int | None = None,
) -> tuple[Tensor, int, float]:
    """Trains on the batches of an epoch, or on the first ``max_steps`` of them.

    Returns:
        The sum of the losses, which stays on the device; the number of steps; the seconds spent
        waiting for batches.
    """
    model.train()
    total = torch.zeros((), device=step.device)
    steps, waited = 0, 0.0
    with contextlib.closing(step.batches(loader, epoch)) as batches:
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


def _on_any(value: bool, workers: Workers) -> bool:
    """Whether something holds in any of the processes, which all then do the same."""
    if workers.size == 1:
        return value
    return bool(workers.sum(torch.tensor([float(value)]), "the end of the epoch") > 0)


def _steps_left(state: State, settings: Settings) -> int | None:
    max_steps = settings.optimisation.max_steps
    return None if max_steps is None else max(0, max_steps - state.steps)


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
