"""Searches for settings with Optuna, by validation scores alone.

python -m benchmarks.search DATASET [--model MODEL] [--trials 30] [--seeds 2] [--device cpu|cuda]
    [--processes N | --ray ADDRESS] [--at-once N]
python -m benchmarks.search DATASET [--model MODEL] --confirm 6 [--seeds 8] [--device cpu|cuda]
    [--processes N | --ray ADDRESS]

With --processes N or --ray ADDRESS, the runs of a trial, or all runs of --confirm, are done at the
same time: in processes with one thread each, or as tasks of a Ray cluster.

A trial is the mean validation score of runs with seeds from 1000 on, which no reported result uses.
If a graph has no split, these seeds draw it. The current preset is one of the trials; for the LGCN
so is the preset without LGCLs, and vice versa. No two trials are equal. The sampler is seeded and
trials run one after the other, so the same command makes the same study on the same CPU. All trials
are written; an interrupted command resumes from them, with other draws. Test nodes are not scored.

With --at-once N, N trials are drawn before any of them has a score, and all their runs are done in
one pool of processes: faster where runs are short, since processes start once.

With few seeds, the best of many trials is partly luck. --confirm trains the best trials of a study
again with other seeds and takes the best by these; among equals, the earlier. Another round with
more seeds takes the best of the confirmed ones.
"""

import argparse
import statistics
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import optuna

from benchmarks import validation
from benchmarks._common import machine, make_parser, read, write
from benchmarks.search_spaces import ALSO, ALSO_TRIED, FEW, FIXED, MANY, SPACES, Suggest
from lgcn.datasets.npz import HALF
from lgcn.errors import LGCNError
from lgcn.paper.jobs import GRAPHS, PUBLISHED
from lgcn.paper.pool import Failure, run_tasks
from lgcn.training import Settings

FIRST_SEED = 1000
SAMPLER_SEED = 0
MOST_IN_VAIN = 1000  # draws of known trials in a row, before it gives up
NOT_CONFIRMED = {"value": 0.0, "seeds": 0}

# Parameters, value and seconds; with confirming seeds also their value and number.
Trial = dict[str, Any]


def main() -> None:
    parser = make_parser("search", __doc__)
    count = validation.at_least_one
    parser.add_argument("dataset", help="name of a data set, see lgcn data list")
    parser.add_argument(
        "--model",
        choices=SPACES,
        default="lgcn",
        help="without: LGCN without LGCLs (default: lgcn)",
    )
    parser.add_argument("--trials", type=count, default=30, help="in all (default: 30)")
    parser.add_argument("--seeds", type=count, help="runs per trial (default: 2; 8 with --confirm)")
    parser.add_argument(
        "--confirm", type=count, help="number of best trials to confirm (default: none)"
    )
    parser.add_argument(
        "--processes", type=count, help="runs at the same time, see above (default: 1)"
    )
    parser.add_argument(
        "--at-once", type=count, default=1, help="trials drawn before they have scores (default: 1)"
    )
    parser.add_argument("--ray", metavar="ADDRESS", help="do the runs on a Ray cluster")
    parser.add_argument("--max-epochs", type=count, help="(default: the preset's)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    arguments = parser.parse_args()
    if arguments.seeds is None:
        arguments.seeds = 2 if arguments.confirm is None else 8
    path, name = arguments.out, study_name(arguments.dataset, arguments.model)
    if arguments.confirm is not None and name not in read(path):
        parser.error(f"--confirm needs a study {name} in {path}: there is none")
    validation.check(parser, [arguments.dataset], arguments.device)
    try:
        trials = (search if arguments.confirm is None else confirm)(arguments, path)
    except LGCNError as error:
        parser.error(str(error))
    best = best_trial(trials)
    print(f"best of {len(trials)}: {100 * score_of(best):.2f} on validation, {best['params']}")


def study_name(dataset: str, model: str) -> str:
    """The name of a study in the file of all studies."""
    return f"{dataset}-{model}"


def best_trial(trials: list[Trial]) -> Trial:
    """The best by the confirming seeds, the most seeds first; without these, by the search."""
    confirmed = [trial["confirmed"] for trial in trials if "confirmed" in trial]
    if not confirmed:
        return max(trials, key=lambda trial: trial["value"])
    seeds = max(other["seeds"] for other in confirmed)
    comparable = [t for t in trials if t.get("confirmed", {}).get("seeds") == seeds]
    return max(comparable, key=lambda trial: trial["confirmed"]["value"])


def search(arguments: argparse.Namespace, path: Path) -> list[Trial]:
    """Resumes the study in the file, or starts it."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    name = study_name(arguments.dataset, arguments.model)
    before = read(path).get(name, {})
    trials: list[Trial] = before.get("trials", [])
    # A study that goes on with the first seed would draw its first trials once more.
    sampler = optuna.samplers.TPESampler(seed=SAMPLER_SEED + len(trials))
    study = optuna.create_study(direction="maximize", sampler=sampler)
    dataset = arguments.dataset
    preset, suggest = _space(arguments.model, dataset)
    given: dict[str, Any] = {"dataset": dataset, "preset": preset}
    given |= FIXED.get(arguments.model, {})
    if dataset in PUBLISHED:
        given["metric"] = "roc_auc"
    if arguments.max_epochs is not None:
        given["max_epochs"] = arguments.max_epochs
    validate: Any = _validate
    if arguments.ray or (arguments.processes or 1) > 1:
        validate = partial(
            _validate_at_once, processes=arguments.processes or 1, address=arguments.ray
        )
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    for key, value in (("given", given), ("seeds", arguments.seeds)):
        if before and before[key] != value:
            raise LGCNError(
                f"{path} has trials with {key} {before[key]}, got {value}: use the same "
                "values, or choose another --out"
            )
    for trial in trials:
        study.enqueue_trial(trial["params"])
        study.tell(_ask(study, suggest), trial["value"])
    for params in _starts(arguments.model, dataset):
        study.enqueue_trial(params, skip_if_exists=True)
    in_vain = 0
    while len(trials) < arguments.trials:
        drawn: list[optuna.Trial] = []
        while len(drawn) < min(arguments.at_once, arguments.trials - len(trials)):
            asked = _ask(study, suggest)
            known = [*trials, *({"params": other.params} for other in drawn)]
            again = next(
                (trial for trial in known if validation.has(trial["params"], asked.params)), None
            )
            if again is None:
                drawn.append(asked)
                in_vain = 0
                continue
            if "value" in again:
                study.tell(asked, again["value"])
            in_vain += 1
            if in_vain == MOST_IN_VAIN:
                raise LGCNError(f"after {len(trials)} trials, {in_vain} more were all known ones")
        settings = [{**given, **one.params, "device": arguments.device} for one in drawn]

        def scored(number: int, score: float, seconds: float, drawn: Any = drawn) -> None:
            study.tell(drawn[number], score)
            params = drawn[number].params
            trials.append({"params": params, "value": score, "seconds": seconds})
            record = {"given": given, "seeds": arguments.seeds, "trials": trials}
            write(path, name, {**before, "machine": machine(arguments.device), **record})
            print(f"{len(trials) - 1}: {100 * score:.2f} {params}", flush=True)

        validate(settings, seeds, scored)
    return trials


def confirm(arguments: argparse.Namespace, path: Path) -> list[Trial]:
    """Adds the scores with other seeds to the best trials of the study.

    A round with more seeds takes the best of the confirmed trials, and trains them with the
    additional seeds only.
    """
    name = study_name(arguments.dataset, arguments.model)
    study = read(path)[name]
    trials: list[Trial] = study["trials"]
    first = FIRST_SEED + study["seeds"]
    known = [trial.get("confirmed", NOT_CONFIRMED) for trial in trials]
    ranked = [number for number, found in enumerate(known) if found["seeds"]]
    if any(known[number]["seeds"] < arguments.seeds for number in ranked):
        ranked.sort(key=lambda number: -known[number]["value"])
    else:
        ranked = sorted(range(len(trials)), key=lambda number: -trials[number]["value"])
    scores: dict[int, list[float]] = {
        number: [known[number]["value"]] * known[number]["seeds"]
        for number in ranked[: arguments.confirm]
    }
    tasks = [
        (number, first + seed)
        for number in scores
        for seed in range(known[number]["seeds"], arguments.seeds)
    ]
    failed: list[str] = []

    def done(task: tuple[int, int], run: Any) -> None:
        number, trial = task[0], trials[task[0]]
        if isinstance(run, Failure):
            failed.append(f"{trial['params']} with seed {task[1]}: {run.message}")
            return
        scores[number].append(run["val_score"])
        if len(scores[number]) < arguments.seeds:
            return
        score = statistics.mean(scores[number])
        trial["confirmed"] = {"value": score, "seeds": arguments.seeds}
        own = {**study, "confirmed_on": machine(arguments.device)}
        write(path, name, own)
        print(f"{100 * trial['value']:.2f}, now {100 * score:.2f} {trial['params']}", flush=True)

    settings = [{**study["given"], **t["params"], "device": arguments.device} for t in trials]
    once, processes = partial(_run_once, settings), arguments.processes or 1
    run_tasks(tasks, once, done, processes=processes, address=arguments.ray)
    if failed:
        raise LGCNError("\n".join(["these runs failed:", *failed]))
    return trials


def _run_once(settings: list[dict[str, Any]], task: tuple[int, int]) -> dict[str, Any]:
    return validation.validate_on(settings[task[0]], task[1])


def score_of(trial: Trial) -> float:
    """The score by the confirming seeds, if there are any."""
    return float(trial.get("confirmed", trial)["value"])


def _space(model: str, dataset: str) -> tuple[str, Suggest]:
    """The preset that the search starts from, and its search space."""
    preset, suggest = SPACES[model]
    if dataset in GRAPHS:
        suggest = (MANY if dataset.endswith(HALF) else FEW).get(model, suggest)
    return preset, suggest


def _starts(model: str, dataset: str) -> list[dict[str, Any]]:
    """Settings that are tried first."""
    preset, suggest = _space(model, dataset)
    names = suggest(optuna.create_study().ask())
    own = Settings.create(dataset=dataset, preset=preset).flat()
    starts = [{name: own[name] for name in names}]
    if model in ALSO_TRIED:
        starts.append({**starts[0], **ALSO_TRIED[model]})
    if preset in ALSO:
        other = Settings.create(dataset=dataset, preset=ALSO[preset]).flat()
        shared = _space("without", dataset)[1](optuna.create_study().ask())
        starts.append({**starts[0], **{name: other[name] for name in shared}})
    return starts


def _ask(study: optuna.Study, suggest: Suggest) -> optuna.Trial:
    trial = study.ask()
    suggest(trial)
    return trial


# Called with the number, mean validation score and seconds of a trial as soon as its runs are done.
OnScore = Callable[[int, float, float], None]


def _validate(trials: list[dict[str, Any]], seeds: Iterable[int], on_score: OnScore) -> None:
    """Scores trials, one run after the other."""
    for number, settings in enumerate(trials):
        on_score(number, *_mean([validation.validate_on(settings, seed) for seed in seeds]))


def _validate_at_once(
    trials: list[dict[str, Any]],
    seeds: range,
    on_score: OnScore,
    *,
    processes: int,
    address: str | None,
) -> None:
    """`_validate`, with the runs in several processes, or on the cluster at an address."""
    runs: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(trials))}

    def done(task: tuple[int, int], run: Any) -> None:
        number, seed = task
        if isinstance(run, Failure):
            raise LGCNError(f"the run with seed {seed} failed: {run.message}")
        runs[number].append(run)
        if len(runs[number]) == len(seeds):
            on_score(number, *_mean(runs[number]))

    tasks = [(number, seed) for number in runs for seed in seeds]
    once = partial(_run_once, trials)
    run_tasks(tasks, once, done, processes=processes, address=address)


def _mean(runs: list[dict[str, Any]]) -> tuple[float, float]:
    """The mean validation score, and the seconds of all runs."""
    seconds = round(sum(run["seconds"] for run in runs), 1)
    return float(statistics.mean(run["val_score"] for run in runs)), seconds


if __name__ == "__main__":
    main()
