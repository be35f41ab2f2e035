"""Simple models on the same split, which say what the graph adds.

The first predicts the majority class (the mean, the frequent labels) for every node. The second is
the better one, by validation score, of a linear model and gradient boosting on the features
without the graph. Both are scikit-learn's. They are limited so that they take seconds: the record
says what was limited.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.training.metric_names import FACTS
from lgcn.training.score_report import score_of, score_report
from lgcn.training.scoring import best_threshold

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.graph import Graph
    from lgcn.utils.choices import Unit

Array = np.ndarray[Any, Any]
# Gives probabilities or values of the nodes of a split.
Predict = Callable[[str], Array]
# Trains a model.
Fit = Callable[[], Predict]

MAX_NODES = 50_000_000  # of the graph; for more, only the majority class is scored
TRAIN_ROWS = 20_000
SCORED_ROWS = 50_000  # per split
VALUES = 2**25  # of the features of a split
# Training rows x features x classes of a linear model: one iteration takes about 0.05 s.
LINEAR_WORK = 10**8
LINEAR_WEIGHTS = 5 * 10**6
BOOSTED_COLUMNS = 128  # more are reduced to SVD_COLUMNS
SVD_COLUMNS = 64
BOOSTED_TREES = 300  # over all classes
BOOSTED_CLASSES = 60
BOOSTED_ROWS = 60  # with fewer training nodes, trees of 20 nodes per leaf say nothing
SMALL = 2 * 10**6  # training values, up to which one thread is used
LABELS = 100  # of several labels, those that get a model; the others get their share
THREADS = 4
STRENGTHS = (0.01, 1.0)  # scikit-learn's C for standardised columns
SPARSE_STRENGTHS = (1.0, 100.0)  # and for sparse features, whose rows have length one
PENALTIES = (1.0, 100.0)  # of ridge regression


@dataclass
class Data:
    """Features and labels of the nodes of each split, within the limits."""

    x: dict[str, Any]
    y: dict[str, Array]
    weight: Array | None
    limits: list[str]


def simple_models(
    graph: Graph,
    metric: str,
    *,
    seed: int = 0,
    weight: Tensor | None = None,
    tune: bool = False,
    unit: Unit = "node",
) -> dict[str, Any]:
    """Scores of the simple models on the validation and test nodes, as JSON can hold them.

    ==============  ==============================================================================
    ``majority``    ``name``, and per split the scores
    ``features``    the same of the best model without the graph; ``None`` if there is none
    ``tried``       ``name`` and validation score of all models without the graph
    ``metric``      by which the best was chosen
    ``limits``      what was limited
    ``seconds``     how long it took
    ==============  ==============================================================================

    Args:
        graph: The graph, with features, labels and masks.
        metric: Name of the score by which the better model is chosen.
        seed: Seed of the rows that are drawn and of the models. (default: 0)
        weight: Weight of each node in training. (default: all equal)
        tune: For two classes, choose the decision threshold on the validation nodes.
            (default: ``False``)
        unit: What the nodes stand for. (default: ``"node"``)
    """
    import torch
    from threadpoolctl import threadpool_limits

    started = time.perf_counter()
    found: dict[str, Any] = {"metric": metric, "features": None, "tried": []}
    # Threads beyond those that torch may use would be more than the user wants. On little data they
    # cost more than they save, much more if the machine is busy.
    data = _read(graph, seed, weight)
    threads = min(THREADS, torch.get_num_threads()) if _size(data) > SMALL else 1
    with threadpool_limits(limits=threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a limited number of iterations is on purpose
        found["majority"] = _majority(data, graph, unit)
        best: tuple[float, str, dict[str, Any], Predict] | None = None
        threshold = best_at = None
        for name, fit in _candidates(data, graph, seed):
            predict = fit()
            if tune:
                threshold = best_threshold(metric, predict("val")[:, 1], data.y["val"])
            val = _scores(data, predict, "val", graph, threshold)
            value = score_of(val, metric)
            found["tried"].append({"name": name, "val_score": value})
            rank = -np.inf if value is None else float(value)
            if value is not None and not FACTS[metric].greater_is_better:
                rank = -rank
            if best is None or rank > best[0]:
                best = rank, name, val, predict
                best_at = threshold
        if best is not None:
            _, name, val, predict = best
            found["features"] = {"name": name, "val": val}
            if "test" in data.y:
                found["features"]["test"] = _scores(data, predict, "test", graph, best_at)
    found["limits"] = [text.replace("node", unit) for text in data.limits]
    found["seconds"] = time.perf_counter() - started
    return found


def _scores(
    data: Data, predict: Predict, split: str, graph: Graph, threshold: float | None = None
) -> dict[str, Any]:
    names = graph.label_names or [str(number) for number in range(graph.num_classes)]
    outputs = predict(split)
    report = score_report(graph.task, outputs, data.y[split], names, threshold=threshold)
    scores: dict[str, Any] = report["scores"]
    return scores


def _size(data: Data) -> int:
    """The number of training values."""
    x = data.x["train"]
    return 0 if x is None else int(x.size)


def _read(graph: Graph, seed: int, given: Tensor | None) -> Data:
    """The rows of each split, drawn by the seed if there are too many."""
    import torch

    rng = np.random.default_rng([seed, 17])
    assert graph.y is not None
    limits: list[str] = []
    has_features = graph.num_features > 0 and graph.num_nodes <= MAX_NODES
    if graph.num_features and not has_features:
        limits.append(f"no model of the features: more than {MAX_NODES} nodes")
    width = _width(graph) if has_features else 1.0
    x, y, weight = {}, {}, None
    for split in ("train", "val", "test"):
        mask = graph.mask(split)
        if mask is None or not bool(mask.any()):
            continue
        nodes = mask.nonzero().squeeze(1).cpu()
        most = int(min(TRAIN_ROWS if split == "train" else SCORED_ROWS, max(1.0, VALUES // width)))
        if len(nodes) > most:
            limits.append(f"{most} of {len(nodes)} {split} nodes")
            nodes = nodes[torch.from_numpy(np.sort(rng.permutation(len(nodes))[:most]))]
        if split == "train":  # so that the first rows are a sample
            nodes = nodes[torch.from_numpy(rng.permutation(len(nodes)))]
            weight = None if given is None else given[nodes].double().cpu().numpy()
        x[split] = _matrix(graph.features(nodes)) if has_features else None
        y[split] = graph.y[nodes].cpu().numpy()
    return Data(x, y, weight, limits)


def _width(graph: Graph) -> float:
    """Values per row of the features, on average."""
    import torch

    assert graph.x is not None
    if graph.x.layout == torch.sparse_csr:
        return max(1.0, graph.x.values().numel() / max(1, graph.num_nodes))
    return float(graph.num_features)


def _matrix(x: Any) -> Any:
    import torch
    from scipy.sparse import csr_matrix

    x = x.detach().cpu()
    if x.layout == torch.sparse_csr:
        parts = (x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy())
        return csr_matrix(parts, shape=tuple(x.shape))
    return x.numpy()


def _majority(data: Data, graph: Graph, unit: Unit) -> dict[str, Any]:
    y, task = data.y["train"], graph.task
    if task == "regression":
        typical = np.array([np.average(y, weights=data.weight)])
        name = f"mean of the training {unit}s"
    elif task == "multilabel":
        typical, name = (y > 0.5).mean(axis=0), "most frequent labels"
    else:
        typical = np.bincount(y, minlength=graph.num_classes) / len(y)
        names = graph.label_names or range(graph.num_classes)
        name = f"majority class ({names[int(typical.argmax())]})"

    def predict(split: str) -> Array:
        return np.broadcast_to(typical, (len(data.y[split]), len(typical)))

    splits = [split for split in data.y if split != "train"]
    return {"name": name, **{split: _scores(data, predict, split, graph) for split in splits}}


def _candidates(data: Data, graph: Graph, seed: int) -> list[tuple[str, Fit]]:
    """The models to try: their names, and functions that train them."""
    if data.x["train"] is None or len(data.y["train"]) < 2:
        return []
    task = graph.task
    if task == "classification" and len(np.unique(data.y["train"])) < 2:
        data.limits.append("no model of the features: the training nodes have one class")
        return []
    outputs = {"regression": 1, "multilabel": min(LABELS, graph.num_classes)}
    work = _width(graph) * outputs.get(task, graph.num_classes)
    found: list[tuple[str, Fit]] = []
    if graph.num_features * graph.num_classes > LINEAR_WEIGHTS and task != "regression":
        data.limits.append("no logistic regression: too many features and classes")
    else:
        rows = int(max(50.0, LINEAR_WORK // work))
        if rows < len(data.y["train"]):
            data.limits.append(f"linear model: {rows} training nodes")
        linear = {"regression": _ridge, "multilabel": _label_regressions}.get(task, _logistic)
        name = "ridge regression" if task == "regression" else "logistic regression"
        strengths = _strengths(data, task)
        for strength in strengths:
            options = (data, graph, rows, strength)
            found.append((name, lambda options=options: linear(*options)))  # type: ignore[misc]
    if task == "multilabel":
        if graph.num_classes > LABELS:
            data.limits.append(f"the {LABELS} most frequent of {graph.num_classes} labels")
        return found
    if task == "classification" and graph.num_classes > BOOSTED_CLASSES:
        data.limits.append(f"no gradient boosting: more than {BOOSTED_CLASSES} classes")
    elif len(data.y["train"]) < BOOSTED_ROWS:
        data.limits.append(f"no gradient boosting: fewer than {BOOSTED_ROWS} training nodes")
    else:
        found.append(("gradient boosting", lambda: _boosted(data, graph, seed)))
    return found


def _strengths(data: Data, task: str) -> tuple[float, ...]:
    from scipy.sparse import issparse

    if task == "regression":
        return PENALTIES
    return SPARSE_STRENGTHS if issparse(data.x["train"]) else STRENGTHS


def _scaled(data: Data, rows: int) -> dict[str, Any]:
    """Dense features with standardised columns; sparse ones with rows of typical length one.

    Words that are rare in the training nodes would grow too large if columns were standardised.
    """
    from scipy.sparse import issparse
    from scipy.sparse.linalg import norm
    from sklearn.preprocessing import StandardScaler

    train = data.x["train"]
    if issparse(train):
        factor = 1 / (float(norm(train, axis=1).mean()) or 1.0)
        x = {split: part * factor for split, part in data.x.items()}
    else:
        scaler = StandardScaler().fit(train)
        x = {split: scaler.transform(part) for split, part in data.x.items()}
    return {**x, "train": x["train"][:rows]}


def _logistic(data: Data, graph: Graph, rows: int, strength: float) -> Predict:
    from sklearn.linear_model import LogisticRegression

    x, y = _scaled(data, rows), data.y["train"][:rows]
    model = LogisticRegression(C=strength, max_iter=100, tol=1e-3)
    model.fit(x["train"], y, sample_weight=None if data.weight is None else data.weight[:rows])
    return lambda split: _all_classes(model, x[split], graph.num_classes)


def _label_regressions(data: Data, graph: Graph, rows: int, strength: float) -> Predict:
    """One logistic regression per label; the rare labels beyond the limit get their share."""
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    x, y = _scaled(data, rows), data.y["train"][:rows] > 0.5
    share = y.mean(axis=0)
    weight = None if data.weight is None else data.weight[:rows]
    chosen = [c for c in np.argsort(-share, kind="stable") if 0 < share[c] < 1][:LABELS]
    model = LogisticRegression(C=strength, max_iter=50, tol=1e-3)
    models = {c: clone(model).fit(x["train"], y[:, c], sample_weight=weight) for c in chosen}

    def predict(split: str) -> Array:
        found = np.tile(share, (x[split].shape[0], 1))
        for label, model in models.items():
            found[:, label] = model.predict_proba(x[split])[:, 1]
        return found

    return predict


def _ridge(data: Data, graph: Graph, rows: int, strength: float) -> Predict:
    from sklearn.linear_model import Ridge

    x = _scaled(data, rows)
    weight = None if data.weight is None else data.weight[:rows]
    model = Ridge(alpha=strength)
    model.fit(x["train"], data.y["train"][:rows].astype(np.float64), sample_weight=weight)
    return lambda split: np.asarray(model.predict(x[split]))


def _boosted(data: Data, graph: Graph, seed: int) -> Predict:
    from scipy.sparse import issparse
    from sklearn import ensemble

    x, y = data.x, data.y["train"]
    if graph.num_features > BOOSTED_COLUMNS:
        x = _reduced(x, seed)
        columns = x["train"].shape[1]
        data.limits.append(f"gradient boosting: {columns} singular vectors as features")
    elif issparse(x["train"]):
        x = {split: part.toarray() for split, part in x.items()}
    regression = graph.task == "regression"
    per_iteration = 1 if regression or graph.num_classes == 2 else graph.num_classes
    iterations = min(100, max(10, BOOSTED_TREES // per_iteration))
    options: dict[str, Any] = {
        "max_iter": iterations,
        "early_stopping": len(y) >= 1000,
        "random_state": seed % 2**32,
    }
    if regression:
        model = ensemble.HistGradientBoostingRegressor(**options)
        model.fit(x["train"], y, sample_weight=data.weight)
        return lambda split: np.asarray(model.predict(x[split]))
    # A class of one node cannot be in both parts of early stopping's split.
    options["early_stopping"] &= bool(np.bincount(y)[np.unique(y)].min() >= 2)
    model = ensemble.HistGradientBoostingClassifier(**options)
    model.fit(x["train"], y, sample_weight=data.weight)
    return lambda split: _all_classes(model, x[split], graph.num_classes)


def _reduced(x: Mapping[str, Any], seed: int) -> dict[str, Array]:
    """The features on their first singular vectors."""
    from sklearn.decomposition import TruncatedSVD

    size = min(SVD_COLUMNS, x["train"].shape[0], x["train"].shape[1] - 1)
    svd = TruncatedSVD(size, n_iter=2, random_state=seed % 2**32).fit(x["train"])
    return {split: svd.transform(part) for split, part in x.items()}


def _all_classes(model: Any, x: Any, num_classes: int) -> Array:
    """Probabilities of all classes; those without a training node have none."""
    found = np.zeros((x.shape[0], num_classes))
    found[:, model.classes_] = model.predict_proba(x)
    return found
