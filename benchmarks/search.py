"""Searches settings with Optuna, by the validation score alone.

python -m benchmarks.search DATASET [--model MODEL] [--trials 30] [--seeds 2] [--device cpu|cuda]

A trial is the mean validation score of runs with seeds from 1000 on, which no reported result has.
Of a graph that comes without a split, these seeds draw it. The recipe as it stands is one of the
trials. The sampler is seeded and trials come one after the other, so that the same command makes
the same study on the same machine. All trials are written, and a command that was ended goes on
from them. Test scores are not looked at, and not written.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import optuna

from benchmarks._common import machine, write
from lgcn import load_dataset
from lgcn.data.npz import HALF
from lgcn.errors import LGCNError
from lgcn.experiments.jobs import GRAPHS, split_options
from lgcn.memory import release_memory
from lgcn.training import Config, train

FIRST_SEED = 1000
SAMPLER_SEED = 0
OUT = Path("benchmarks/search")

# What may vary; the recipe of a model has the rest.
Suggest = Callable[[optuna.Trial], dict[str, Any]]


def _lgcn(trial: optuna.Trial) -> dict[str, Any]:
    return {"k": trial.suggest_categorical("k", [4, 8, 16]), **_without(trial)}


def _without(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hops": trial.suggest_int("hops", 2, 12),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.8, step=0.1),
        "dropout": trial.suggest_float("dropout", 0.1, 0.8, step=0.1),
        "agreement": trial.suggest_float("agreement", 0.5, 2.0, step=0.25),
        "sharpen": trial.suggest_float("sharpen", 0.1, 0.5, step=0.1),
        "lr": trial.suggest_categorical("lr", [0.005, 0.01, 0.02, 0.05]),
        "weight_decay": trial.suggest_categorical("weight_decay", [1e-4, 2e-4, 5e-4, 1e-3, 2e-3]),
    }


def _few_labels(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [32, 64, 128]),
        "k": trial.suggest_categorical("k", [4, 8, 16]),
        "hops": trial.suggest_int("hops", 2, 10),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.8, step=0.1),
        "node_dropout": trial.suggest_categorical("node_dropout", [0.0, 0.2, 0.5]),
        "dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1),
        "agreement": trial.suggest_float("agreement", 0.5, 1.5, step=0.5),
        **_optimisation(trial),
    }


def _many_labels(trial: optuna.Trial) -> dict[str, Any]:
    return {
        "hidden_channels": trial.suggest_categorical("hidden_channels", [64, 128, 256]),
        "lgcl_channels": trial.suggest_categorical("lgcl_channels", [64, 128, 256]),
        "num_layers": trial.suggest_int("num_layers", 1, 2),
        "k": trial.suggest_categorical("k", [2, 4, 8]),
        "rank": trial.suggest_categorical("rank", ["raw", "normalized"]),
        "mean": trial.suggest_categorical("mean", [False, True]),
        "batch_norm": trial.suggest_categorical("batch_norm", ["none", "running"]),
        "hops": trial.suggest_int("hops", 0, 4),
        "input_dropout": trial.suggest_float("input_dropout", 0.0, 0.6, step=0.1),
        "dropout": trial.suggest_float("dropout", 0.0, 0.8, step=0.1),
        **_optimisation(trial),
    }


def _rival(trial: optuna.Trial) -> dict[str, Any]:
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
    "without": ("best-without", _without),  # LGCLs
    "gcn": ("gcn", _rival),
    "gat": ("gat", _gat),
    "sage": ("sage", _rival),
    "mlp": ("mlp", _rival),
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset")
    parser.add_argument("--model", choices=SPACES, default="lgcn")
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--max-epochs", type=int, help="(default: the recipe's)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, help=f"(default: {OUT}/DATASET-MODEL.json)")
    arguments = parser.parse_args()
    if arguments.trials < 1 or arguments.seeds < 1:
        parser.error("--trials and --seeds must be at least 1")
    path = arguments.out or OUT / f"{arguments.dataset}-{arguments.model}.json"
    try:
        study = search(arguments, path)
    except LGCNError as error:
        parser.error(str(error))
    best = study.best_trial
    print(
        f"best of {len(study.trials)}: {100 * (best.value or 0):.2f} on validation, {best.params}"
    )


def search(arguments: argparse.Namespace, path: Path) -> optuna.Study:
    """Goes on with the study in the file, or begins it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=SAMPLER_SEED)
    )
    dataset = arguments.dataset
    recipe, suggest = SPACES[arguments.model]
    if arguments.model == "lgcn" and dataset in GRAPHS:
        suggest = _many_labels if dataset.endswith(HALF) else _few_labels
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    graphs = [load_dataset(dataset, **split_options(dataset, seed)) for seed in seeds]
    given: dict[str, Any] = {"dataset": dataset, "recipe": recipe}
    if arguments.max_epochs is not None:
        given["max_epochs"] = arguments.max_epochs

    def value(trial: optuna.Trial) -> float:
        settings = {**given, "device": arguments.device, **suggest(trial)}
        runs = [
            train(graph, Config.create(**settings, seed=seed)).record
            for graph, seed in zip(graphs, seeds, strict=True)
        ]
        release_memory()
        trial.set_user_attr("seconds", round(sum(run["seconds"] for run in runs), 1))
        return float(statistics.mean(run["val_score"] for run in runs))

    def finished(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        trials = [
            {"params": t.params, "value": t.value, "seconds": t.user_attrs["seconds"]}
            for t in study.trials
        ]
        record = {"given": given, "seeds": arguments.seeds, "trials": trials}
        write(path, {"machine": machine(arguments.device), **record})
        print(f"{trial.number}: {100 * (trial.value or 0):.2f} {trial.params}", flush=True)

    known = _finished_trials(path, study, suggest)
    if known < arguments.trials:
        own = Config.create(**given).to_dict()
        names = suggest(optuna.create_study().ask())
        study.enqueue_trial({name: own[name] for name in names}, skip_if_exists=True)
    study.optimize(value, n_trials=max(0, arguments.trials - known), callbacks=[finished])
    return study


def _finished_trials(path: Path, study: optuna.Study, suggest: Suggest) -> int:
    """Tells the study the trials in the file, as if it had just asked for them."""
    if not path.exists():
        return 0
    trials = json.loads(path.read_text("utf-8"))["trials"]
    for known in trials:
        study.enqueue_trial(known["params"])
        trial = study.ask()
        suggest(trial)
        trial.set_user_attr("seconds", known["seconds"])
        study.tell(trial, known["value"])
    return len(trials)


if __name__ == "__main__":
    main()
