"""The folder of a saved estimator: a run folder with `estimator.json`.

`estimator.json` holds the constructor's arguments, the classes with their type, whether the
fitted graph had edges, and whether they were directed. In a folder without it, which `lgcn train`
wrote, classes are strings and the graph had edges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.errors import CheckpointError, UsageError
from lgcn.estimator.fitting import keep_history
from lgcn.inference.trained_run import load_run
from lgcn.training import ModelSpec, Run
from lgcn.training.portfolio.ensemble import Ensemble
from lgcn.training.portfolio.entries import EnsembleFile, Entry
from lgcn.training.portfolio.stored import save_ensemble
from lgcn.training.setup import pick_device
from lgcn.utils.files import replaced_folder
from lgcn.utils.numbers import real_number

FORMAT = 1
# Arguments that folders of version 0.1.0 do not have.
NEWER = {"class_weight", "metric", "threshold", "structural_features", "positions", "time_limit"}
HISTORY = ("epoch", "train_loss", "val_loss", "val_score", "test_score")
TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def save(estimator: Any, folder: Path) -> None:
    """Writes a fitted estimator."""
    params = {
        key: value if key == "settings" else _plain(value)
        for key, value in estimator.get_params().items()
    }
    if not isinstance(estimator.random_state, Integral | None):
        params["random_state"] = estimator.settings_.seed  # what the generator gave
    names = getattr(estimator, "feature_names_in_", None)
    record = {
        "format": FORMAT,
        "params": params,
        **estimator._to_json(),
        "feature_names_in": None if names is None else names.tolist(),
        "has_edges": getattr(estimator, "has_edges_", True),
        "directed": estimator.directed_,
    }
    run = Run(folder)
    with run.locked():
        if run.holds_work and not run.other_files():  # the old model stays until all is written
            with replaced_folder(folder) as new:
                _write(estimator, Run(new), record)
        else:
            _write(estimator, run, record)


def _write(estimator: Any, run: Run, record: dict[str, Any]) -> None:
    run.start(estimator.settings_, estimator._spec, estimator.encoder_)
    run.write_json("estimator.json", record)
    # The result is last, since a run with one counts as finished.
    result = {**estimator.result_, "history": estimator.history_}
    if isinstance(estimator.model_, Ensemble):
        board = [Entry(**row) for row in estimator.leaderboard_]
        save_ensemble(run, estimator.model_, board, result["seconds"])
        run.write_json("result.json", result)
    else:
        run.finish(estimator.model_.state_dict(), result)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's; a search over arrays sets them. Mappings become pairs."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):  # keys of JSON are strings
        return [[_plain(key), _plain(inner)] for key, inner in value.items()]
    return value


def load(kind: Any, folder: Path, device: str | None) -> Any:
    """An estimator of class `kind` from a folder; all of its files are checked."""
    run = load_run(folder)
    settings, spec = run.settings, run.spec
    if spec.task not in kind._tasks or spec.unit != kind.unit:
        family = "Graph" if spec.unit == "graph" else "LGCN"
        other = family + ("Regressor" if spec.task == "regression" else "Classifier")
        of_graphs = " of whole graphs" if spec.unit == "graph" else ""
        raise UsageError(
            f"{folder} must hold a {kind.__name__}, it holds a model for {spec.task}{of_graphs}: "
            f"use lgcn.{other}.load"
        )
    model = run.model()
    result = run.result()
    flat = settings.flat()
    params: dict[str, Any] = {key: flat[key] for key in kind().get_params() if key in flat}
    params["random_state"] = settings.seed
    names, has_edges = None, True
    directed = bool(settings.dataset_options.get("directed", False))
    own: dict[str, Any] = {}
    if (folder / "estimator.json").exists():
        try:
            record = run.read_json("estimator.json")
            if not isinstance(record, dict):
                raise ValueError(f"it must hold an object, got {type(record).__name__}")
            if record["format"] != FORMAT:
                raise ValueError(f"format must be {FORMAT}, got {record['format']!r}")
            params = _params(record["params"], kind)
            names = _feature_names(record["feature_names_in"], spec)
            has_edges = record.get("has_edges", True)  # folders of version 0.1.0 do not say
            if not isinstance(has_edges, bool):
                raise ValueError(f"has_edges must be true or false, got {has_edges!r}")
            directed = record.get("directed", True)  # earlier folders: edges were taken as given
            if not isinstance(directed, bool):
                raise ValueError(f"directed must be true or false, got {directed!r}")
            own = kind._from_json(record, spec)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{folder / 'estimator.json'} is damaged: {error}") from error
    if device is not None:
        params["device"] = device
    estimator = kind(**params)
    estimator._restore(run)
    vars(estimator).update(own)
    estimator._spec = spec
    estimator.n_features_in_ = spec.given_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.encoder_ = run.encoder()
    if spec.unit == "graph":
        estimator.graphs_ = None
    else:
        estimator.graph_ = None
        estimator.has_edges_ = has_edges
    estimator.directed_ = directed
    estimator.settings_ = settings
    place = settings.hardware.device if device is None else device
    estimator.model_ = model.to(pick_device(place))
    estimator.result_ = {key: value for key, value in result.items() if key != "history"}
    try:
        keep_history(estimator, read_history(result))
    except ValueError as error:
        raise CheckpointError(f"{folder / 'result.json'} is damaged: {error}") from error
    if spec.unit == "node":
        estimator.leaderboard_ = []
    if isinstance(model, Ensemble):
        estimator.leaderboard_ = [vars(entry) for entry in EnsembleFile.read(Run(folder)).entries]
    estimator.n_iter_ = result.get("epochs")
    return estimator


def _params(params: Any, kind: Any) -> dict[str, Any]:
    known = kind().get_params()
    if not isinstance(params, dict) or set(params) | NEWER != set(known) | NEWER:
        raise ValueError(f"params must be a table of {', '.join(known)}")
    for key, value in params.items():
        if key == "class_weight" and isinstance(value, list):
            params[key] = _mapping(value)
            continue
        wanted = dict | None if key == "settings" else bool | int | float | str | None
        if not isinstance(value, wanted):
            raise ValueError(f"{key} must not be {value!r}")
    return params


def _mapping(pairs: list[Any]) -> dict[Any, float]:
    """The class weights that were stored as pairs."""
    for pair in pairs:
        if (
            not isinstance(pair, list)
            or [isinstance(part, list | dict) for part in pair] != [False] * 2
        ):
            raise ValueError(
                f"class_weight must hold pairs of a class and a number, got {pair!r:.80}"
            )
    return {key: real_number("class_weight", value, 0) for key, value in pairs}


def read_history(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The epochs in `result.json`; none if an earlier version wrote it. Raises ValueError."""
    history = result.get("history", [])
    if not isinstance(history, list):
        raise ValueError("history must be a list")
    for epoch in history:
        if not isinstance(epoch, dict) or not all(
            value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            for value in (epoch.get(key) for key in HISTORY)
        ):
            raise ValueError(f"history must hold tables of numbers, got {epoch!r:.80}")
    return [{key: epoch.get(key) for key in HISTORY} for epoch in history]


def read_classes(stored: Any, number: int) -> Any:
    """The user's classes, from `estimator.json`; raises ValueError, KeyError or TypeError."""
    kind, values = stored["type"], stored["values"]
    if kind not in TYPES:
        raise ValueError(f"the type of classes must be one of {', '.join(TYPES)}, got {kind!r}")
    if not isinstance(values, list) or len(values) != number:
        raise ValueError(f"there must be {number} classes")
    if any(type(value) is not TYPES[kind] for value in values):
        raise ValueError(f"classes must all be of type {kind}")
    if len(set(values)) != len(values) or (kind == "float" and not all(map(math.isfinite, values))):
        raise ValueError("classes must be distinct and finite")
    classes = np.array(values)
    if classes.dtype.kind == "O":  # whole numbers beyond 64 bits
        raise ValueError("classes must be numbers of 64 bits")
    return classes


def _feature_names(names: Any, spec: ModelSpec) -> list[str] | None:
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != spec.given_features:
        raise ValueError(f"feature_names_in must have {spec.given_features} names")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names_in must be strings")
    return names
