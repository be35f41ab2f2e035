"""What ends a training before its last epoch."""

from collections.abc import Sequence
from typing import Any

import pytest

from lgcn.training import train
from lgcn.training.early_stop import NEWEST, EarlyStop
from lgcn.training.groups import OptimisationSettings

from .graphs import lasting, settings, small_graph


def last_epoch(
    rule: str,
    scores: Sequence[float],
    losses: Sequence[float],
    *,
    patience: int = 3,
    every: int = 1,
    greater_is_better: bool = True,
) -> int | None:
    """The epoch after which a training with these scores and losses stops; `None`: it does not.

    One epoch in ``every`` has a score and a loss.
    """
    stop = EarlyStop(OptimisationSettings(early_stop=rule, patience=patience), greater_is_better)
    best = float("-inf")
    measured = iter(zip(scores, losses, strict=True))
    for epoch in range(1, every * len(scores) + 1):
        if epoch % every == 0:
            score, loss = next(measured)
            rank = score if greater_is_better else -score
            entry = {"epoch": epoch, "val_score": score, "val_loss": loss}
            stop.add(entry, better=rank > best)
            best = max(best, rank)
        if stop.progress_epoch and stop.is_due(epoch):
            return epoch
    return None


FLAT = [1.0] * 12


def test_patience_counts_from_the_best_epoch() -> None:
    assert last_epoch("patience", [0.1, 0.5, *[0.4] * 10], FLAT) == 5


def test_one_lucky_epoch_does_not_prolong_a_training_by_its_trend() -> None:
    stalled = [0.5, 0.5, 0.5, 0.9, 0.1, 0.1, *[0.1] * 6]
    assert last_epoch("patience", stalled, FLAT, patience=4) == 8
    falling = [0.5, 0.5, 0.1, 0.1, 0.6, *[0.1] * 7]  # a new best, but not a better mean
    assert last_epoch("patience", falling, FLAT, patience=4) == 9
    assert last_epoch("trend", falling, FLAT, patience=4) == 5


def test_a_stalled_score_does_not_end_a_training_whose_loss_falls() -> None:
    falling = [1 / epoch for epoch in range(1, 13)]
    assert last_epoch("patience", [0.5] * 12, falling) == 4
    assert last_epoch("trend", [0.5] * 12, falling) is None
    assert last_epoch("trend", [0.5] * 12, FLAT) == 4


def test_the_trend_weighs_the_newest_epoch_as_documented() -> None:
    # The mean of the second epoch is 0.5 - NEWEST x 0.4; the third reaches 0.5 again at `enough`.
    enough = 0.5 + 0.4 * NEWEST * (1 - NEWEST) / NEWEST
    more, less = [[0.5, 0.1, enough + shift, *[0.0] * 9] for shift in (0.01, -0.01)]
    assert last_epoch("trend", more, FLAT) == 6
    assert last_epoch("trend", less, FLAT) == 4


def test_a_trend_is_that_of_at_least_ten_evaluations() -> None:
    scores, losses = [0.5] * 30, [1.0] * 30
    assert last_epoch("trend", scores, losses, patience=25) == 26
    assert last_epoch("trend", scores, losses, patience=25, every=5) == 55
    assert last_epoch("patience", scores, losses, patience=25, every=5) == 30


def test_a_score_that_is_to_be_small_may_fall() -> None:
    falling = [1 / epoch for epoch in range(1, 13)]
    assert last_epoch("trend", falling, FLAT, greater_is_better=False) is None
    assert last_epoch("trend", falling, FLAT) == 4


@pytest.mark.parametrize("rule", ["patience", "trend"])
def test_a_resumed_training_stops_where_it_would_have(rule: str) -> None:
    chosen = OptimisationSettings(early_stop=rule, patience=3)
    scores = [0.1, 0.4, 0.3, 0.35, 0.2, 0.1]
    history = [
        {"epoch": epoch, "val_score": score, "val_loss": 1.0}
        for epoch, score in enumerate(scores, start=1)
    ]
    whole = EarlyStop(chosen, True)
    for entry in history:
        whole.add(entry, better=entry["epoch"] <= 2)
    resumed = EarlyStop(chosen, True)
    resumed.replay(history, best_epoch=2)
    assert resumed == whole


def test_trainings_stop_by_their_trend() -> None:
    def epochs(**given: object) -> int:
        config = settings(max_epochs=60, patience=4, **given)
        return int(train(small_graph(), config).record["epochs"])

    assert epochs(early_stop="trend") != epochs(early_stop="patience")


def test_the_default_is_patience() -> None:
    def record(**given: object) -> dict[str, Any]:
        return lasting(train(small_graph(), settings(max_epochs=30, patience=4, **given)).record)

    assert record() == record(early_stop="patience")
