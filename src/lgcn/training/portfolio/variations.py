"""What a portfolio tries once all its members are trained: variations of the best ones.

Optuna proposes them if it is installed (`lgcn[search]`), else they are drawn. Either way a proposal
depends only on the seed, its number and the leaderboard so far, so that a resumed run goes on as
the interrupted one would have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lgcn.training.portfolio.entries import Entry
from lgcn.training.settings import Settings

BEST = 3  # families that are varied, in turn

# Values that are tried, by model. What the family is named after stays.
SPACES: dict[str, dict[str, tuple[Any, ...]]] = {
    "lgcn": {
        "hidden_channels": (64, 128, 256),
        "dropout": (0.2, 0.4, 0.6),
        "input_dropout": (0.0, 0.2, 0.5),
        "lr": (0.003, 0.005, 0.01, 0.02),
        "weight_decay": (0.0, 0.00001, 0.0001, 0.0005, 0.002, 0.005),
        "hops": (2, 5, 8, 10),
    },
    "residual": {
        "hidden_channels": (64, 128, 256),
        "num_layers": (1, 2, 3, 4, 6, 8, 12),
        "dropout": (0.1, 0.2, 0.3, 0.5, 0.7),
        "input_dropout": (0.0, 0.2, 0.5),
        "lr": (0.001, 0.003, 0.005, 0.01),
        "weight_decay": (0.0, 0.0001, 0.0005, 0.002),
        "norm": ("batch", "layer", "none"),
    },
    "boosting": {
        "trees": (200, 400),
        "leaves": (7, 15, 31, 63),
        "lr": (0.03, 0.06, 0.1),
        "weight_decay": (0.0, 1.0, 10.0),
        "dropout": (0.0, 0.5, 0.8),
        "num_layers": (1, 2, 3),
    },
}


def vary(
    number: int,
    entries: Sequence[Entry],
    settings: dict[str, Settings],
    asked: Settings,
    *,
    greater_is_better: bool = True,
) -> tuple[Entry, Settings] | None:
    """The entry and the settings of the next variation; ``None`` if nothing can be varied.

    Args:
        number: Its number, from 0.
        entries: The leaderboard so far.
        settings: The settings of its members, by name.
        asked: The settings of the portfolio. What the user gave is not varied.
        greater_is_better: The direction of the score. (default: ``True``)
    """
    sign = 1 if greater_is_better else -1
    done = [entry for entry in entries if entry.val_score is not None and entry.name in settings]
    done.sort(key=lambda entry: -sign * (entry.val_score or 0.0))
    leaders = list({entry.family: entry for entry in reversed(done)}.values())
    leaders.sort(key=lambda entry: -sign * (entry.val_score or 0.0))
    if not leaders:
        return None
    base = leaders[:BEST][number % min(BEST, len(leaders))]
    own = settings[base.name]
    flat = own.flat()
    space = {
        name: values
        for name, values in SPACES.get(own.model.name, {}).items()
        if name in flat and name not in asked.given
    }
    if not space:
        return None
    family = [
        (settings[entry.name].flat(), entry.val_score)
        for entry in done
        if entry.family == base.family
    ]
    seed = [asked.seed % 2**63, number]
    found = _by_optuna(space, family, seed, sign)
    changes = _drawn(space, flat, seed) if found is None else found
    tried = [values for values, _ in family]
    if any(all(values.get(name) == changes[name] for name in changes) for values in tried):
        changes = _drawn(space, flat, [*seed, 1])
    entry = Entry(
        f"search-{number + 1}", base.family, own.model.name, changes={"of": base.name, **changes}
    )
    return entry, own.replace(**changes, seed=(asked.seed + number + 1) % 2**63)


def _drawn(
    space: dict[str, tuple[Any, ...]], flat: dict[str, Any], seed: list[int]
) -> dict[str, Any]:
    """Two or three settings of the best member get other values."""
    rng = np.random.default_rng(seed)
    names = rng.permutation(sorted(space))[: 2 + int(rng.integers(2))]
    changes = {}
    for name in names.tolist():
        others = [value for value in space[name] if value != flat[name]]
        changes[name] = others[int(rng.integers(len(others)))]
    return changes


def _by_optuna(
    space: dict[str, tuple[Any, ...]],
    family: list[tuple[dict[str, Any], float | None]],
    seed: list[int],
    sign: int,
) -> dict[str, Any] | None:
    """A proposal of Optuna's TPE after the trials of the family; ``None`` without Optuna."""
    try:
        import optuna
    except ImportError:
        return None
    # Values of members that are not among the choices become choices too.
    choices = {
        name: tuple(dict.fromkeys([*space[name], *(values[name] for values, _ in family)]))
        for name in sorted(space)
    }
    kinds: dict[str, Any] = {
        name: optuna.distributions.CategoricalDistribution(values)
        for name, values in choices.items()
    }
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(
        n_startup_trials=2, seed=int(np.random.default_rng(seed).integers(2**31))
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for values, score in family:
        study.add_trial(
            optuna.trial.create_trial(
                params={name: values[name] for name in choices},
                distributions=kinds,
                value=sign * (score or 0.0),
            )
        )
    params: dict[str, Any] = study.ask(kinds).params
    return params
