"""Seeds, settings and histories, as all estimators have them."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from lgcn.errors import UsageError
from lgcn.training.settings import Settings, flatten


def seed_of(random_state: Any) -> int:
    """The seed of a training. `None` draws one from NumPy's global generator."""
    if isinstance(random_state, Integral):
        check_random_state(random_state)  # refuses negative ones
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def flat_settings(
    given: Mapping[str, Any], further: Mapping[str, Any], dataset: str, seed: int
) -> dict[str, Any]:
    """Settings by flat name, from the arguments of a constructor.

    Args:
        given: Arguments that are settings; those that are `None` are left out.
        further: The argument `settings`.
        dataset: The data set of the settings.
        seed: The seed.
    """
    found = flatten(further)
    for key, argument in (("seed", "random_state"), ("dataset", "X"), ("dataset_options", "X")):
        if key in found:
            raise UsageError(f"settings must not have {key}: pass it as {argument}")
    for key, value in given.items():
        if value is not None:
            found[key] = value.item() if isinstance(value, np.generic) else value
    return {**found, "dataset": dataset, "seed": seed}


def settings_of(
    given: Mapping[str, Any], further: Mapping[str, Any], dataset: str, seed: int
) -> Settings:
    """The same as checked settings."""
    return Settings.create(**flat_settings(given, further, dataset, seed))


def keep_history(estimator: Any, history: list[dict[str, Any]]) -> None:
    """Sets the attributes about the epochs of a training."""
    estimator.history_ = history
    estimator.loss_curve_ = [epoch["train_loss"] for epoch in history]
    estimator.validation_scores_ = [epoch["val_score"] for epoch in history]
