"""Grows the trees of `lgcn.nn.boosted_trees` with scikit-learn, and stores them in its arrays."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.boosted_trees import BoostedTrees
from lgcn.nn.whole_graph import forward
from lgcn.sampling import GraphLoader
from lgcn.training.checks import check_trainable
from lgcn.training.loop import Result
from lgcn.training.model_spec import ModelSpec
from lgcn.training.record import final_scoring, run_record
from lgcn.training.run_folder import Run
from lgcn.training.run_metrics import run_metrics
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.split_file import split_of
from lgcn.training.state import Rates, State
from lgcn.training.weights import training_graph

CHUNK = 20  # trees per output that are grown before they are scored and the clock is read
MAX_LABELS = 30  # of nodes with several labels: each label has trees of its own
MAX_TREES = 6000  # over all classes
MISSING_CLASS = 10.0  # how far a class without training nodes is below the rarest one


def train_boosting(
    graph: Graph,
    settings: Settings,
    *,
    out: str | Path | None = None,
    overwrite: bool = True,
    deadline: float | None = None,
) -> Result:
    """Grows trees until the validation score stops rising; keeps those up to the best score.

    Args:
        graph, settings, out, overwrite, deadline: See `lgcn.training.train`.
    """
    started = time.monotonic()
    check_trainable(graph, settings)
    settings = settings.resolve(graph)
    spec = ModelSpec.of(graph, settings)
    spec.check_memory(settings)
    plain, graph = graph, spec.prepare(graph)
    if graph.multi_label and graph.num_classes > MAX_LABELS:
        raise UsageError(
            f"model=boosting takes at most {MAX_LABELS} labels, since each needs trees of its own; "
            f"{graph.name} has {graph.num_classes}"
        )
    model = spec.build(settings)
    assert isinstance(model, BoostedTrees)
    scoring = Scoring.of(settings, spec)
    state = _grow(model, training_graph(graph, settings, spec), scoring, settings, deadline)
    state.seconds = time.monotonic() - started
    model.eval()
    scored = [(graph, forward(model, graph))]
    record = run_record(model, graph, settings, GraphLoader(graph), state, Rates(), scored, scoring)
    record["out"] = None if out is None else str(out)
    if out is not None:
        run = Run(out)
        split = split_of(graph)
        with run.locked(), run.begin(settings, spec, graph.encoder, split, overwrite=overwrite):
            metrics = run_metrics(plain, settings, scored, *final_scoring(record, scoring))
            run.finish(dict(model.state_dict()), {**record, "history": state.history}, metrics)
    return Result(model, record, spec, history=state.history)


def _grow(
    model: BoostedTrees,
    graph: Graph,
    scoring: Scoring,
    settings: Settings,
    deadline: float | None,
) -> State:
    """Fills the model with trees, and says which number of trees is best.

    Args:
        model: The model.
        graph: The graph as batches are made of it, with weights and standardised targets.
        scoring: How validation nodes are scored.
        settings: The settings.
        deadline: When to stop.
    """
    assert graph.y is not None
    assert graph.train_mask is not None
    assert graph.val_mask is not None
    x = graph.features()
    if model.projection is not None:
        model.projection.data.copy_(_svd(x, model.projection.size(1), settings.seed))
    features = model.node_features(x, graph)
    train, val = (mask.nonzero().squeeze(1).cpu() for mask in (graph.train_mask, graph.val_mask))
    boosters = _boosters(graph, settings, train)
    inside, held_out = features[train].numpy(), features[val]
    y_val = graph.y.cpu()[val]
    if graph.task == "regression":  # scores are in units of the target
        y_val = scoring.spec.values(y_val)
    state = State()
    number, total, rest = model.value.size(0), 0, None
    number = min(number, max(CHUNK, MAX_TREES // model.value.size(1)))
    while total < number and state.epoch - state.best_epoch < settings.optimisation.patience:
        size = min(CHUNK, number - total)
        for booster in boosters:
            booster.grow(inside, size, total, model)
        if rest is None:
            _fill_baseline(model, graph, boosters, train)
            rest = model.baseline.detach().expand(len(val), -1).clone()
        for tree in range(total, total + size):
            rest = rest + model.evaluate(held_out, tree, tree + 1)
            state.epoch += 1
            _score(state, rest, y_val, scoring)
        total += size
        if deadline is not None and time.monotonic() >= deadline:
            break
    state.steps = total
    model.used.fill_(state.best_epoch)
    return state


def _fill_baseline(
    model: BoostedTrees, graph: Graph, boosters: list["_Booster"], train: Tensor
) -> None:
    """Scores outputs that have no trees: classes without training nodes, and constant labels."""
    assert graph.y is not None
    if graph.multi_label:
        share = graph.y.cpu()[train].float().mean(0)
        for label in range(model.baseline.numel()):
            if float(share[label]) in (0.0, 1.0):
                model.baseline.data[label] = MISSING_CLASS if share[label] > 0 else -MISSING_CLASS
    elif graph.task == "classification":
        there = torch.unique(graph.y.cpu()[train])
        low = float(model.baseline.data[there].min()) - MISSING_CLASS
        unseen = torch.ones(model.baseline.numel(), dtype=torch.bool)
        unseen[there] = False
        model.baseline.data[unseen] = low


class _Booster:
    """A scikit-learn booster that grows some of the outputs."""

    def __init__(self, estimator: Any, y: Any, weight: Any, outputs: list[int]) -> None:
        self.estimator = estimator
        self.y = y
        self.weight = weight
        self.outputs = outputs

    def grow(self, x: Any, size: int, before: int, model: BoostedTrees) -> None:
        """Grows more trees and copies them into the model."""
        self.estimator.set_params(max_iter=before + size, warm_start=before > 0)
        self.estimator.fit(x, self.y, sample_weight=self.weight)
        for tree, predictors in enumerate(self.estimator._predictors[before:], start=before):
            for output, predictor in zip(self.outputs, predictors, strict=True):
                copy_tree(model, tree, output, predictor.nodes)
        baseline = np.asarray(self.estimator._baseline_prediction, dtype=np.float64).reshape(-1)
        for output, value in zip(self.outputs, baseline, strict=True):
            model.baseline.data[output] = float(value)


def copy_tree(model: BoostedTrees, tree: int, output: int, nodes: Any) -> None:
    """Copies a tree of scikit-learn into the arrays of the model."""
    size = len(nodes)
    leaf = nodes["is_leaf"].astype(bool)
    if bool(nodes["is_categorical"].any()):
        raise ValueError("trees with categorical splits cannot be stored")
    place = np.arange(size)
    threshold = nodes["num_threshold"]
    # Rounded down: for a float32 number x, x <= threshold stays what it is.
    narrow = threshold.astype(np.float32)
    narrow = np.where(narrow > threshold, np.nextafter(narrow, np.float32(-np.inf)), narrow)
    columns = {
        "left": np.where(leaf, place, nodes["left"]),
        "right": np.where(leaf, place, nodes["right"]),
        "feature": np.where(leaf, 0, nodes["feature_idx"]),
        "threshold": np.where(leaf, 0, narrow),
        "missing_left": nodes["missing_go_to_left"],
        "value": np.where(leaf, nodes["value"], 0),
    }
    for name, values in columns.items():
        array: Tensor = getattr(model, name)
        array[tree, output, :size] = torch.from_numpy(np.ascontiguousarray(values)).to(array.dtype)


def _boosters(graph: Graph, settings: Settings, train: Tensor) -> list[_Booster]:
    assert graph.y is not None
    y = graph.y.cpu()[train]
    weight = None if graph.sample_weight is None else graph.sample_weight.cpu()[train].numpy()
    if graph.task == "regression":
        return [_Booster(_estimator(settings, len(train), regression=True), y.numpy(), weight, [0])]
    if graph.multi_label:
        columns = [y[:, label].numpy() for label in range(y.size(1))]
        return [
            _Booster(_estimator(settings, len(train)), column, weight, [label])
            for label, column in enumerate(columns)
            if column.min() < column.max()
        ]
    classes = np.unique(y.numpy())
    if len(classes) < 2:
        raise UsageError("model=boosting needs training nodes of at least two classes, got one")
    # The trees of two classes score the second one.
    outputs = [int(c) for c in classes]
    outputs = outputs[1:] if len(classes) == 2 else outputs
    return [_Booster(_estimator(settings, len(train)), y.numpy(), weight, outputs)]


def _estimator(settings: Settings, nodes: int, regression: bool = False) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    kind = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    chosen = settings.optimisation
    return kind(
        learning_rate=chosen.lr,
        l2_regularization=chosen.weight_decay,
        max_leaf_nodes=settings.model.leaves,
        min_samples_leaf=int(np.clip(nodes // 20, 1, 20)),
        max_features=1 - settings.model.dropout,
        early_stopping=False,
        random_state=settings.seed % 2**32,
    )


def _score(state: State, logits: Tensor, y: Tensor, scoring: Scoring) -> None:
    """Records the scores of the validation nodes after a tree."""
    score = scoring.tuned(logits, y).score(logits, y)
    entry = {
        "epoch": state.epoch,
        "train_loss": 0.0,  # not computed
        "val_loss": scoring.loss(logits, y),
        "val_score": score,
        "test_score": None,
    }
    state.record(entry, greater_is_better=scoring.greater_is_better)


def _svd(x: Tensor, columns: int, seed: int) -> Tensor:
    """The first right singular vectors of the features, [features, columns]."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import TruncatedSVD

    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        matrix: Any = csr_matrix(parts, shape=tuple(x.shape))
    else:
        matrix = x.numpy()
    found = TruncatedSVD(columns, random_state=seed % 2**32).fit(matrix)
    return torch.from_numpy(found.components_.T.copy()).float()
