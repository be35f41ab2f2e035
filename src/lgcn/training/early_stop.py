"""When a training stops before its last epoch: nothing says that a better epoch is to come."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lgcn.training.groups import OptimisationSettings

# early_stop=trend: the share of the newest epoch in smoothed scores and losses.
NEWEST = 0.25
# ... and evaluations without progress at least, for evaluate_every above one.
EVALUATIONS = 10


@dataclass
class _Smoothed:
    """The exponentially smoothed mean of values, and the largest so far."""

    mean: float | None = None
    most: float = float("-inf")

    def add(self, value: float) -> bool:
        """Whether the mean is now larger than ever."""
        self.mean = value if self.mean is None else self.mean + NEWEST * (value - self.mean)
        larger = self.mean > self.most
        self.most = max(self.most, self.mean)
        return larger


@dataclass
class EarlyStop:
    """Counts epochs since the last progress, of which ``patience`` are waited for.

    With ``early_stop="patience"``, progress is a better validation score (at ties, a lower loss).
    With ``early_stop="trend"``, it is a better exponentially smoothed score or a lower smoothed
    loss: one lucky epoch does not prolong the training, and a score that stalls does not end it
    while the loss still falls.

    Args:
        chosen: The settings, with ``early_stop`` and ``patience``.
        greater_is_better: The direction of the score.

    Attributes:
        progress_epoch: The epoch with the last progress.
    """

    chosen: OptimisationSettings
    greater_is_better: bool
    progress_epoch: int = 0
    _evaluations: int = 0  # since then
    _score: _Smoothed = field(default_factory=_Smoothed)
    _loss: _Smoothed = field(default_factory=_Smoothed)

    def add(self, entry: Mapping[str, Any], *, better: bool) -> None:
        """Takes note of an evaluated epoch.

        Args:
            entry: The epoch with its losses and scores.
            better: Whether it is the best so far.
        """
        if self.chosen.early_stop == "trend":
            sign = 1 if self.greater_is_better else -1
            # Both, since each has to know every epoch.
            risen = self._score.add(sign * entry["val_score"])
            fallen = self._loss.add(-entry["val_loss"])
            better = risen or fallen
        self._evaluations += 1
        if better:
            self.progress_epoch, self._evaluations = entry["epoch"], 0

    def replay(self, history: Iterable[Mapping[str, Any]], best_epoch: int) -> None:
        """Takes note of the epochs of a training that is resumed."""
        for entry in history:
            self.add(entry, better=entry["epoch"] == best_epoch)

    def is_due(self, epoch: int) -> bool:
        """Whether training stops after an epoch."""
        patience = self.chosen.patience
        if self.chosen.early_stop == "trend" and self._evaluations < min(patience, EVALUATIONS):
            return False
        return epoch - self.progress_epoch >= patience
