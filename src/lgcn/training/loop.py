"""The training loop: one for transductive and inductive, sub-graph and whole-graph training."""

import contextlib
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Adam, Optimizer

from lgcn.errors import CheckpointError, TrainingDiverged, TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.nn.lgcn import LGCN
from lgcn.sampling import ClusterLoader, GraphLoader, RandomWalkLoader, SubgraphLoader
from lgcn.sampling.batches import BatchLoader
from lgcn.training import metrics
from lgcn.training.checkpoint import ModelSpec, Run, load_weights
from lgcn.training.config import Config
from lgcn.training.evaluation import (
    Scored,
    calibration,
    evaluate,
    evaluation_graphs,
    score_graphs,
    split_scores,
    whole_graphs,
)
from lgcn.training.nadam import Nadam
from lgcn.training.step import Step

CHECKPOINT_SECONDS = 10.0
WALK_LENGTH = 4  # where max_hops is none
BATCHES_LISTED = 100  # of the first epoch in the record
# Features with more values are not read before the training, in which NaN would show.
CHECKED_VALUES = 2**27
CHECKED_AT_ONCE = 2**20  # values, since isfinite makes copies


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


@dataclass(frozen=True)
class Result:
    """A finished training: the model with the best weights, and what was measured."""

    model: LGCN
    record: dict[str, Any]

    @property
    def test_score(self) -> float | None:
        """The test score at the epoch with the best validation score."""
        score: float | None = self.record["test_score"]
        return score


def train(
    graph: Graph,
    config: Config,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    on_epoch: Callable[[State], None] | None = None,
    weights: Mapping[str, Tensor] | None = None,
) -> Result:
    """Trains an LGCN.

    Args:
        graph: The graph, with features, labels, and training and validation masks.
        config: The settings.
        out: Folder for checkpoints, model and result. (default: nothing is written)
        resume: Go on from the checkpoint in ``out``. (default: ``False``)
        on_epoch: Called after every epoch, for showing progress. (default: nothing)
        weights: The model's ``state_dict`` to start from, of another training with the same
            widths. (default: drawn by the seed)
    """
    if resume and weights is not None:
        raise UsageError("weights must be None with resume, which goes on from a checkpoint")
    check_trainable(graph)
    config = config.resolve(graph)
    run = None if out is None else Run(out)
    spec = ModelSpec.of(graph)
    device = pick_device(config.device)
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices), stop_request(run is not None) as stopped:
        model, optimizer, loader, step = _prepare(graph, config, spec, device)
        if weights is not None:
            _start_from(model, weights)
        best = _copy(model)
        state = State()
        if run is not None and resume:
            if run.read() != (config, spec):
                raise UsageError(f"{run.folder} holds a run with other settings or another graph")
            state, best = _restore(run, model, optimizer, best)
        elif run is not None:
            run.start(config, spec, graph.encoder)
        evaluated = [part.to(device) for part in evaluation_graphs(graph, config)]
        started, saved = time.monotonic() - state.seconds, time.monotonic()
        rates = Rates()

        while not _at_the_end(state, config):
            if state.epoch - state.best_epoch >= config.patience and state.history:
                break
            epoch = state.epoch + 1
            _seed(config.seed, epoch)
            left = None if config.max_steps is None else config.max_steps - state.steps
            epoch_started = time.perf_counter()
            total, steps, waited = _train_epoch(model, step, loader, epoch, left)
            train_loss = float(total) / max(steps, 1)  # an epoch's only wait for the device
            rates.seconds += time.perf_counter() - epoch_started
            rates.steps, rates.waited = rates.steps + steps, rates.waited + waited
            if isinstance(loader, BatchLoader):
                state.rates = rates.text(loader)
            _check_finite("loss", train_loss, epoch, run, graph)
            state.epoch, state.steps = epoch, state.steps + steps
            state.seconds = time.monotonic() - started
            if epoch % config.evaluate_every == 0 or _at_the_end(state, config):
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
                    best = _copy(model)
            if on_epoch is not None:
                on_epoch(state)
            if run is not None and (
                stopped.is_set() or time.monotonic() - saved > CHECKPOINT_SECONDS
            ):
                _save(run, model, optimizer, best, state)
                saved = time.monotonic()
            if run is not None and stopped.is_set():
                raise TrainingInterrupted(
                    f"stopped after epoch {epoch}; its state is saved. "
                    f"Go on with: {run.resume_command}"
                )

        model.load_state_dict(best)
        if config.evaluate_on == "sampled":  # at the end, the exact scores of all nodes
            evaluated = whole_graphs(graph)
        scored = score_graphs(model, evaluated, config)
        speed = rates.record(loader) if isinstance(loader, BatchLoader) else {}
        record = _summary(model, graph, scored, loader, config, state)
        record |= {**calibration(scored), **speed}
        record["out"] = None if run is None else str(run.folder)
        if run is not None:
            run.finish(best, {**record, "history": state.history})
    return Result(model.eval(), record)


def train_epochs(graph: Graph, config: Config, epochs: int) -> LGCN:
    """The training alone of so many epochs: no evaluation, no checkpoints, the last weights.

    Nothing waits for the device before the end.
    """
    check_trainable(graph)
    config = config.resolve(graph)
    device = pick_device(config.device)
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        model, _, loader, step = _prepare(graph, config, ModelSpec.of(graph), device)
        losses = []
        for epoch in range(1, epochs + 1):
            _seed(config.seed, epoch)
            losses.append(_train_epoch(model, step, loader, epoch)[0])
        for epoch, loss in enumerate(torch.stack(losses).tolist() if losses else [], start=1):
            _check_finite("loss", loss, epoch, None, graph)
    return model


def _prepare(
    graph: Graph, config: Config, spec: ModelSpec, device: torch.device
) -> tuple[LGCN, Optimizer, BatchLoader | GraphLoader, Step]:
    _seed(config.seed)
    model = spec.build(config).to(device)
    optimizer = make_optimizer(model, config)
    loader = make_loader(graph, config)
    fixed = isinstance(loader, GraphLoader) or not loader.resample
    return model, optimizer, loader, Step(model, optimizer, config, device, fixed)


def _at_the_end(state: State, config: Config) -> bool:
    steps = config.max_steps is not None and state.steps >= config.max_steps
    return steps or state.epoch >= config.max_epochs


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
        unread = "" if _is_read(graph) else ", unless features (x) of the graph are NaN or inf"
        raise TrainingDiverged(
            f"the {name} became {value} in epoch {epoch}.{where} "
            f"A smaller learning rate may help: --set lr=0.01{unread}"
        )


def make_loader(graph: Graph, config: Config) -> BatchLoader | GraphLoader:
    """The mini-batches of the training nodes."""
    if config.training == "whole":
        return GraphLoader(graph, seed=config.seed)
    common: dict[str, Any] = {
        "roots": graph.train_mask,
        "max_nodes": config.max_nodes,
        "batch_size": config.subgraphs_per_batch,
        "resample": config.resample,
        "keep_degree": config.keep_degree,
        "seed": config.seed,
        "num_workers": config.num_workers,
    }
    if config.sampler == "clusters":
        return ClusterLoader(graph, **common)
    if config.sampler == "walks":
        length = WALK_LENGTH if config.max_hops is None else config.max_hops
        return RandomWalkLoader(graph, n_init=config.n_init, walk_length=length, **common)
    return SubgraphLoader(
        graph,
        n_init=config.n_init,
        max_expand=config.max_expand,
        max_hops=config.max_hops,
        start_nodes=config.start_nodes,
        **common,
    )


def make_optimizer(model: Module, config: Config) -> Optimizer:
    """Adam or Nadam; their L2 term is that of lambda / 2 times the squared norm."""
    weights = [p for p in model.parameters() if p.dim() > 1]
    biases = [p for p in model.parameters() if p.dim() <= 1]
    decay = config.weight_decay
    groups = [
        {"params": weights, "weight_decay": decay},
        {"params": biases, "weight_decay": decay if config.decay_biases else 0.0},
    ]
    if config.optimizer == "nadam":
        return Nadam(groups, lr=config.lr)
    # Fused, a step is one kernel for all weights; capturable, it counts on the device.
    on_gpu = any(p.is_cuda for p in weights)
    return Adam(groups, lr=config.lr, fused=True, capturable=on_gpu)


def pick_device(name: str) -> torch.device:
    """The device of that name; "auto" is a GPU where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {name!r} is not available: {error}") from error
    return device


def check_trainable(graph: Graph) -> None:
    """Raises UsageError where the graph lacks something that training needs."""
    if graph.x is None or graph.num_features == 0:
        raise UsageError(f"{graph.name} has no features (x) to learn from")
    if graph.y is None:
        raise UsageError(f"{graph.name} has no labels (y) to learn from")
    if _is_read(graph) and not _is_finite(graph.x):
        raise UsageError(f"the features (x) of {graph.name} must be finite, some are NaN or inf")
    for split in ("train", "val", "test"):
        mask = graph.mask(split)
        if mask is None or not _any(mask):
            if split == "test":
                continue
            raise UsageError(
                f"{graph.name} has no {split} nodes: {split}_mask is empty. Label more nodes, have "
                f"{split!r} in some labelled rows of the split column, or change the share of "
                "validation nodes (val, --val)"
            )
        if not graph.multi_label and _has_unlabelled(graph.y, mask):
            raise UsageError(f"{split}_mask of {graph.name} has nodes without a label (y < 0)")


def _is_read(graph: Graph) -> bool:
    """Whether all features are looked at beforehand."""
    assert graph.x is not None
    values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    return values.numel() <= CHECKED_VALUES


def _is_finite(x: Tensor) -> bool:
    values = x.values() if x.layout == torch.sparse_csr else x
    width = max(1, values[:1].numel())
    return all(bool(torch.isfinite(values[rows]).all()) for rows in _blocks(len(values), width))


def _has_unlabelled(y: Tensor, mask: Tensor) -> bool:
    return any(bool(((y[rows] < 0) & mask[rows]).any()) for rows in _blocks(len(y)))


def _blocks(num_rows: int, width: int = 1) -> Iterator[slice]:
    height = max(1, CHECKED_AT_ONCE // width)
    for start in range(0, num_rows, height):
        yield slice(start, start + height)


@contextlib.contextmanager
def stop_request(active: bool) -> Iterator[threading.Event]:
    """Turns Ctrl-C and SIGTERM into a request to stop after the epoch; a second one stops at once.

    Only the main thread can receive signals; elsewhere nothing changes.
    """
    requested = threading.Event()
    if not active or threading.current_thread() is not threading.main_thread():
        yield requested
        return

    def handler(number: int, frame: Any) -> None:
        if requested.is_set():
            raise KeyboardInterrupt
        requested.set()

    previous = {
        number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield requested
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _summary(
    model: LGCN,
    graph: Graph,
    scored: Scored,
    loader: BatchLoader | GraphLoader,
    config: Config,
    state: State,
) -> dict[str, Any]:
    scores = split_scores(scored, ("val", "test"))
    with contextlib.closing(loader.epoch(1)) as batches:
        nodes_per_batch = [b.num_nodes for b in itertools.islice(batches, BATCHES_LISTED)]
    test = scores.get("test", {})
    record: dict[str, Any] = {
        "dataset": config.dataset,
        "graph": graph.name,
        "metric": metrics.metric_name(graph.multi_label),
        "seed": config.seed,
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


def _save(run: Run, model: Module, optimizer: Optimizer, best: Any, state: State) -> None:
    if not all(bool(torch.isfinite(p).all()) for p in model.parameters()):
        return  # the next epoch's loss will say so; the checkpoint before stays
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    tensors |= {f"best.{key}": value for key, value in best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{key}": value for key, value in values.items()}
    run.save_checkpoint(state.epoch, tensors, vars(state))


def _restore(
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


def _copy(model: Module) -> dict[str, Tensor]:
    return {key: value.detach().clone() for key, value in model.state_dict().items()}


def _seed(*numbers: int) -> None:
    # One seed an epoch instead of one stream: a resumed run needs no generator state.
    torch.manual_seed(int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1))


def _any(mask: Tensor | None) -> bool:
    return mask is not None and bool(mask.any())
