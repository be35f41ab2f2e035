"""What `benchmarks.search` varies, for each kind of network."""

from collections.abc import Callable
from typing import Any

import optuna

# The search space; the preset of a model has the rest.
Suggest = Callable[[optuna.Trial], dict[str, Any]]


def _lgcn(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "k": trial.suggest_categorical("k", [4, 8, 16]),
        "layer_dropout": trial.suggest_categorical("layer_dropout", [0.0, 0.5]),
        **_without(trial),
    }


def _without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64, 128]),
        "hops": trial.suggest_int("hops", 2, 12),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.8, step=0.1),
        "node_dropout": trial.suggest_categorical("node_dropout", [0.0, 0.2, 0.5]),
        "dropout": trial.suggest_float("dropout", 0.1, 0.8, step=0.1),
        "agreement": trial.suggest_float("agreement", 0.5, 3.0, step=0.25),
        "sharpen": trial.suggest_float("sharpen", 0.1, 0.5, step=0.1),
        "lr": trial.suggest_categorical("lr", [0.005, 0.01, 0.02, 0.05]),
        "weight_decay": trial.suggest_categorical("weight_decay", [1e-4, 2e-4, 5e-4, 1e-3, 2e-3]),
    }


def _propagated(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "k": trial.suggest_categorical("k", [4, 8, 16]),
        "cnn": trial.suggest_categorical("cnn", ["single", "shared"]),
        "lgcl_channels": trial.suggest_categorical("lgcl_channels", [8, 16, 32]),
        "lgcl_dropout": trial.suggest_categorical("lgcl_dropout", [0.2, 0.5, 0.8]),
        "layer_dropout": trial.suggest_categorical("layer_dropout", [0.0, 0.5]),
        **_propagated_without(trial),
    }


def _propagated_without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64]),
        "input_hops": trial.suggest_int("input_hops", 2, 8),
        "node_dropout": trial.suggest_categorical("node_dropout", [0.3, 0.5, 0.7]),
        "input_dropout": trial.suggest_float("input_dropout", 0.4, 0.8, step=0.1),
        "dropout": trial.suggest_float("dropout", 0.4, 0.8, step=0.1),
        "agreement": trial.suggest_categorical("agreement", [0.7, 1.0, 1.5]),
        "agreement_epochs": trial.suggest_categorical("agreement_epochs", [1, 50]),
        "sharpen": trial.suggest_float("sharpen", 0.1, 0.5, step=0.1),
        "lr": trial.suggest_categorical("lr", [0.01, 0.05, 0.2]),
        "weight_decay": trial.suggest_categorical("weight_decay", [2e-4, 5e-4, 1e-3]),
    }


def _plain_propagated(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "k": trial.suggest_categorical("k", [4, 8, 16]),
        "cnn": trial.suggest_categorical("cnn", ["single", "shared"]),
        "lgcl_dropout": trial.suggest_categorical("lgcl_dropout", [0.2, 0.5, 0.8]),
        "layer_dropout": trial.suggest_categorical("layer_dropout", [0.0, 0.5]),
        **_plain_propagated_without(trial),
    }


def _plain_propagated_without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64, 128]),
        "input_hops": trial.suggest_int("input_hops", 2, 8),
        "classifier": trial.suggest_categorical("classifier", ["none", "diffusion"]),
        "hops": trial.suggest_int("hops", 1, 5),
        "node_dropout": trial.suggest_categorical("node_dropout", [0.3, 0.5, 0.7]),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.8, step=0.1),
        "dropout": trial.suggest_float("dropout", 0.2, 0.8, step=0.1),
        "agreement": trial.suggest_categorical("agreement", [0.7, 1.0, 1.5]),
        "agreement_epochs": trial.suggest_categorical("agreement_epochs", [1, 50]),
        "sharpen": trial.suggest_float("sharpen", 0.1, 0.5, step=0.1),
        "lr": trial.suggest_categorical("lr", [0.01, 0.02, 0.05]),
        "weight_decay": trial.suggest_categorical("weight_decay", [2e-4, 5e-4, 1e-3]),
    }


def _residual(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "cnn": trial.suggest_categorical("cnn", ["single", "depthwise"]),
        "k": trial.suggest_categorical("k", [4, 8, 16]),
        **_residual_without(trial),
    }


def _residual_without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [64, 96, 128]),
        "num_layers": trial.suggest_categorical("num_layers", [4, 8, 12, 16]),
        "dropout": trial.suggest_categorical("dropout", [0.1, 0.2, 0.4]),
        "lr": trial.suggest_categorical("lr", [0.002, 0.005, 0.01]),
        "weight_decay": trial.suggest_categorical("weight_decay", [0.0, 1e-5, 1e-4]),
    }


def _lgcl_dropout(trial: optuna.Trial) -> dict[str, Any]:
    """The preset, with another dropout rate of what LGCLs select than of all else."""
    return {"lgcl_dropout": trial.suggest_categorical("lgcl_dropout", [None, 0.2, 0.4])}


def _few_labels(trial: optuna.Trial) -> dict[str, Any]:
    return {"k": trial.suggest_categorical("k", [4, 8, 16]), **_few_labels_without(trial)}


def _few_labels_without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64, 128]),
        "hops": trial.suggest_int("hops", 2, 10),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.8, step=0.1),
        "node_dropout": trial.suggest_categorical("node_dropout", [0.0, 0.2, 0.5]),
        "dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1),
        "agreement": trial.suggest_float("agreement", 0.5, 1.5, step=0.5),
        **_optimisation(trial),
    }


def _many_labels(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "lgcl_channels": trial.suggest_categorical("lgcl_channels", [64, 128, 256]),
        "num_layers": trial.suggest_int("num_layers", 1, 3),
        "k": trial.suggest_categorical("k", [2, 4, 8]),
        "rank": trial.suggest_categorical("rank", ["raw", "normalized"]),
        "mean": trial.suggest_categorical("mean", [False, True]),
        "batch_norm": trial.suggest_categorical("batch_norm", ["none", "running"]),
        **_many_labels_without(trial),
    }


def _many_labels_without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [64, 128, 256]),
        "hops": trial.suggest_int("hops", 0, 4),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.6, step=0.1),
        "dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1),
        **_optimisation(trial),
    }


def _baseline(trial: optuna.Trial) -> dict[str, Any]:
    return _layers(trial, [16, 32, 64, 128, 256])


def _gat(trial: optuna.Trial) -> dict[str, Any]:
    rate = trial.suggest_float("adj_dropout", 0.0, 0.8, step=0.1)
    return {"adj_dropout": rate, **_layers(trial, [8, 16, 32])}  # of each of its heads


def _layers(trial: optuna.Trial, widths: list[int]) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", widths),
        "num_layers": trial.suggest_int("num_layers", 1, 3),
        "dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1),
        **_optimisation(trial),
    }


def _optimisation(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "lr": trial.suggest_categorical("lr", [0.002, 0.005, 0.01, 0.02, 0.05]),
        "weight_decay": trial.suggest_categorical("weight_decay", [0.0, 1e-5, 1e-4, 5e-4, 2e-3]),
    }


SPACES: dict[str, tuple[str, Suggest]] = {
    "lgcn": ("best", _lgcn),
    "lgcl-dropout": ("best", _lgcl_dropout),
    "without": ("best-without", _without),  # LGCLs
    "propagated": ("propagated", _propagated),
    "propagated-without": ("propagated", _propagated_without),
    "plain-propagated": ("propagated", _plain_propagated),
    "plain-propagated-without": ("propagated", _plain_propagated_without),
    "residual": ("residual", _residual),
    "residual-mean": ("residual", _residual_without),
    "gcn": ("gcn", _baseline),
    "gat": ("gat", _gat),
    "sage": ("sage", _baseline),
    "mlp": ("mlp", _baseline),
}
# What the one is good with may suit the other.
ALSO = {"best": "best-without", "best-without": "best"}
# Tried first as well: what "Graph Random Neural Networks" has for Pubmed, and for Cora.
_CORA = {
    **{"input_hops": 8, "input_dropout": 0.5, "dropout": 0.5, "sharpen": 0.5, "lr": 0.01},
    **{"classifier": "none", "agreement_epochs": 50},
}
ALSO_TRIED: dict[str, dict[str, Any]] = {
    "propagated": {"lr": 0.2},
    "propagated-without": {"lr": 0.2},
    "plain-propagated": _CORA,
    "plain-propagated-without": _CORA,
}
# Settings of a model that its preset does not have.
FIXED: dict[str, dict[str, Any]] = {
    "propagated": {"training": "whole", "evaluate_on": "graph"},
    "propagated-without": {"training": "whole", "evaluate_on": "graph", "num_layers": 0},
    "plain-propagated": {
        **{"training": "whole", "evaluate_on": "graph"},
        **{"input_norm": "none", "batch_norm": "none"},
    },
    "plain-propagated-without": {
        **{"training": "whole", "evaluate_on": "graph", "num_layers": 0},
        "input_norm": "none",
    },
    "residual": {"training": "whole", "evaluate_on": "graph"},
    "residual-mean": {"training": "whole", "evaluate_on": "graph", "aggregate": "mean"},
}

# On graphs without a split, which have few labels or many.
FEW = {"lgcn": _few_labels, "without": _few_labels_without}
MANY = {"lgcn": _many_labels, "without": _many_labels_without}
