"""The folder of a saved estimator: a run folder with `estimator.json`.

`estimator.json` holds the constructor's arguments, the classes with their type, whether the
fitted graph had edges, and whether they were directed. In a folder without it, which `lgcn train`
wrote, classes are strings and the graph had edges.
"""

from __future__ import annotations

import math
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from lgcn.errors import CheckpointError
from lgcn.inference.trained_run import load_run
from lgcn.training import ModelSpec, Run
from lgcn.training.setup import pick_device
from lgcn.utils.files import replaced_folder

FORMAT = 1
TYPES: dict[str, type] = {"bool": bool, "int": int, "float": float, "str": str}


def save(estimator: Any, folder: Path) -> None:
    """Writes a fitted estimator."""
    params = {key: _plain(value) for key, value in estimator.get_params().items()}
    if not isinstance(estimator.random_state, Integral | None):
        params["random_state"] = estimator.settings_.seed  # what the generator gave
    names = getattr(estimator, "feature_names_in_", None)
    record = {
        "format": FORMAT,
        "params": params,
        **estimator._to_json(),
        "feature_names_in": None if names is None else names.tolist(),
        "has_edges": estimator.has_edges_,
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
    run.start(estimator.settings_, estimator._model_spec, estimator.encoder_)
    run.write_json("estimator.json", record)
    # Last, since a run with a result counts as finished.
    run.finish(estimator.model_.state_dict(), estimator.result_)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's; a search over arrays sets them."""
    return value.item() if isinstance(value, np.generic) else value


def load(kind: Any, folder: Path, device: str | None) -> Any:
    """An estimator of class `kind` from a folder; all of its files are checked."""
    run = load_run(folder)
    model, settings, spec = run.model(), run.settings, run.spec
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
    estimator._model_spec = spec
    estimator.n_features_in_ = spec.num_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    estimator.encoder_ = run.encoder()
    estimator.graph_ = None
    estimator.has_edges_ = has_edges
    estimator.directed_ = directed
    estimator.settings_ = settings
    place = settings.hardware.device if device is None else device
    estimator.model_ = model.to(pick_device(place))
    estimator.result_ = result
    estimator.n_iter_ = result.get("epochs")
    return estimator


def _params(params: Any, kind: Any) -> dict[str, Any]:
    known = kind().get_params()
    if not isinstance(params, dict) or set(params) != set(known):
        raise ValueError(f"params must be a table of {', '.join(known)}")
    for key, value in params.items():
        wanted = dict | None if key == "settings" else bool | int | float | str | None
        if not isinstance(value, wanted):
            raise ValueError(f"{key} must not be {value!r}")
    return params


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
    if not isinstance(names, list) or len(names) != spec.num_features:
        raise ValueError(f"feature_names_in must have {spec.num_features} names")
    if not all(isinstance(name, str) for name in names):
        raise ValueError("feature_names_in must be strings")
    return names
