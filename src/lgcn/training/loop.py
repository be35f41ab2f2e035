"""The training loop: one for transductive and inductive, sub-graph and whole-graph training."""

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Adam, Optimizer

from lgcn.calibration import calibrated, expected_calibration_error, find_temperature
from lgcn.errors import CheckpointError, TrainingDiverged, TrainingInterrupted, UsageError
from lgcn.graph import Graph
from lgcn.inference import forward
from lgcn.nn.lgcn import LGCN
from lgcn.sampling import GraphLoader, SubgraphLoader, select_subgraph, separate
from lgcn.training import metrics
from lgcn.training.checkpoint import ModelSpec, Run, load_weights
from lgcn.training.config import Config
from lgcn.training.nadam import Nadam
from lgcn.training.step import Step

CHECKPOINT_SECONDS = 10.0
FINITE_VALUES = 2**20  # checked at a time, since isfinite makes copies


@dataclass
class State:
    """Where training stands; everything in it goes into the checkpoint.

    The honest rule reports the test score at the epoch with the best validation score (at ties,
    the lower validation loss). The released program's rule reports the best test score of all
    epochs at which validation did not get worse: it looks at the test set, so it is only recorded.
    """

    epoch: int = 0  # epochs done
    best_epoch: int = 0
    best_val_score: float = -1.0
    best_val_loss: float = float("inf")
    released_val_score: float = -1.0
    released_test_score: float | None = None
    seconds: float = 0.0
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

        while state.epoch < config.max_epochs:
            if state.epoch - state.best_epoch >= config.patience and state.history:
                break
            epoch = state.epoch + 1
            _seed(config.seed, epoch)
            total, steps = _train_epoch(model, step, loader, epoch)
            train_loss = float(total) / max(steps, 1)  # an epoch's only wait for the device
            _check_finite("loss", train_loss, epoch, run)
            state.epoch = epoch
            state.seconds = time.monotonic() - started
            if epoch % config.evaluate_every == 0 or epoch == config.max_epochs:
                scores = evaluate(model, evaluated, ("val", "test"))
                _check_finite("validation loss", scores["val"]["loss"], epoch, run)
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
        record = _summary(model, graph, evaluated, loader, config, state)
        record |= _calibration(model, evaluated)
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
            _check_finite("loss", loss, epoch, None)
    return model


def _prepare(
    graph: Graph, config: Config, spec: ModelSpec, device: torch.device
) -> tuple[LGCN, Optimizer, SubgraphLoader | GraphLoader, Step]:
    _seed(config.seed)
    model = spec.build(config).to(device)
    optimizer = make_optimizer(model, config)
    loader = make_loader(graph, config)
    fixed = isinstance(loader, GraphLoader) or not loader.resample
    return model, optimizer, loader, Step(model, optimizer, config, device, fixed)


def _train_epoch(
    model: Module, step: Step, loader: SubgraphLoader | GraphLoader, epoch: int
) -> tuple[Tensor, int]:
    """The sum of the losses, on the device, and their number."""
    model.train()
    total = torch.zeros((), device=step.device)
    steps = 0
    for batch in loader.epoch(epoch):
        loss = step(batch)
        if loss is not None:
            total += loss
            steps += 1
    return total, steps


def _check_finite(name: str, value: float, epoch: int, run: Run | None) -> None:
    if not np.isfinite(value):
        kept = run.load_checkpoint() if run is not None else None
        where = f" The last good checkpoint is of epoch {kept[0]}." if kept else ""
        raise TrainingDiverged(
            f"the {name} became {value} in epoch {epoch}.{where} "
            "A smaller learning rate may help: --set lr=0.01"
        )


@torch.no_grad()
def evaluate(
    model: Module, graphs: list[Graph], splits: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Loss and scores of each split that has nodes, over all the graphs together."""
    scores = {}
    for split, (logits, y) in _outputs(model, graphs, splits).items():
        scores[split] = {
            "nodes": len(y),
            "loss": float(metrics.loss(logits, y)),
            "score": metrics.score(logits, y),
        }
        if y.dim() == 2:
            scores[split]["label_accuracy"] = metrics.label_accuracy(logits, y)
    return scores


@torch.no_grad()
def _outputs(
    model: Module, graphs: list[Graph], splits: tuple[str, ...]
) -> dict[str, tuple[Tensor, Tensor]]:
    """Scores and labels of the nodes of each split that has some."""
    found: dict[str, list[tuple[Tensor, Tensor]]] = {split: [] for split in splits}
    for graph in graphs:
        logits = forward(model, graph)
        for split in splits:
            mask = graph.mask(split)
            if mask is not None and graph.y is not None:
                found[split].append((logits[mask], graph.y[mask]))
    return {
        split: (torch.cat([part[0] for part in parts]), torch.cat([part[1] for part in parts]))
        for split, parts in found.items()
        if sum(len(y) for _, y in parts)
    }


def evaluation_graphs(graph: Graph, config: Config) -> list[Graph]:
    """The graphs on which validation and test nodes are scored.

    By default these are whole graphs. The released program scores each split on the sub-graph
    around its nodes.
    """
    if config.evaluate_on == "graph":
        parts = separate(graph)
        return [p for p in parts if _any(p.val_mask) or _any(p.test_mask)]
    around = []
    for split, other in (("val", "test_mask"), ("test", "val_mask")):
        mask = graph.mask(split)
        if mask is not None and _any(mask):
            nodes = select_subgraph(
                graph, roots=mask, max_nodes=None, max_hops=config.max_hops, seed=config.seed
            )
            part = graph.subgraph(nodes, keep_degree=config.keep_degree)
            without: dict[str, Any] = {other: None}
            around.append(replace(part, **without))
    return around


def make_loader(graph: Graph, config: Config) -> SubgraphLoader | GraphLoader:
    """The mini-batches of the training nodes."""
    if config.training == "whole":
        return GraphLoader(graph, seed=config.seed)
    return SubgraphLoader(
        graph,
        roots=graph.train_mask,
        n_init=config.n_init,
        max_nodes=config.max_nodes,
        max_expand=config.max_expand,
        max_hops=config.max_hops,
        batch_size=config.subgraphs_per_batch,
        resample=config.resample,
        keep_degree=config.keep_degree,
        seed=config.seed,
        num_workers=config.num_workers,
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
    values = graph.x.values() if graph.x.layout == torch.sparse_csr else graph.x
    rows = max(1, FINITE_VALUES // max(1, values[:1].numel()))
    if not all(bool(torch.isfinite(part).all()) for part in torch.split(values, rows)):
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
        if not graph.multi_label and int(graph.y[mask].min()) < 0:
            raise UsageError(f"{split}_mask of {graph.name} has nodes without a label (y < 0)")


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
    evaluated: list[Graph],
    loader: SubgraphLoader | GraphLoader,
    config: Config,
    state: State,
) -> dict[str, Any]:
    scores = evaluate(model, evaluated, ("val", "test"))
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
        "seconds": state.seconds,
        "nodes_per_batch": [batch.num_nodes for batch in loader.epoch(1)],
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    if graph.multi_label:
        record["test_label_accuracy"] = test.get("label_accuracy")
    return record


def _calibration(model: LGCN, evaluated: list[Graph]) -> dict[str, Any]:
    """The temperature by the validation nodes, and how far probabilities are off without and with.

    The test nodes only measure.
    """
    outputs = _outputs(model, evaluated, ("val", "test"))
    temperature = find_temperature(*outputs["val"])

    def error(split: str, at: float) -> float:
        logits, y = outputs[split]
        return expected_calibration_error(calibrated(logits, y.dim() == 2, at), y)

    gaps = {"val_before": error("val", 1.0), "val_after": error("val", temperature)}
    test = error("test", temperature) if "test" in outputs else None
    return {"temperature": temperature, "calibration": {**gaps, "test_after": test}}


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
