"""Where a training stands: what was measured so far, and how fast it runs."""

from dataclasses import dataclass, field
from typing import Any

from lgcn.sampling.batches import BatchLoader


@dataclass
class State:
    """Where a training stands. All of it goes into the checkpoint.

    The honest rule reports the test score at the epoch with the best validation score (at ties,
    the lower validation loss). The released program's rule reports the best test score of all
    epochs at which validation did not get worse: it looks at the test set, so it is only recorded.
    """

    epoch: int = 0  # epochs done
    steps: int = 0  # optimiser steps done
    best_epoch: int = 0
    progress_epoch: int = 0  # from where on early stopping counts
    best_val_score: float = -1.0
    best_val_loss: float = float("inf")
    released_val_score: float = -1.0
    released_test_score: float | None = None
    seconds: float = 0.0
    rates: str = ""  # speed of loader and model, to be shown
    history: list[dict[str, Any]] = field(default_factory=list)

    def record(self, entry: dict[str, Any], *, greater_is_better: bool = True) -> bool:
        """Adds an evaluated epoch to the history; says whether it is the best so far.

        Args:
            entry: The epoch with its losses and scores.
            greater_is_better: The direction of the score. (default: ``True``)
        """
        first, sign = not self.best_epoch, 1 if greater_is_better else -1
        self.history.append(entry)
        val_score, test_score = entry["val_score"], entry["test_score"]
        if first or sign * val_score >= sign * self.released_val_score:
            self.released_val_score = val_score
            if test_score is not None:
                before = self.released_test_score
                scores = [test_score] if before is None else [test_score, before]
                self.released_test_score = max(scores, key=lambda score: sign * score)
        rank = (sign * val_score, -entry["val_loss"])
        better = first or rank > (sign * self.best_val_score, -self.best_val_loss)
        if better:
            self.best_epoch = entry["epoch"]
            self.best_val_score, self.best_val_loss = val_score, entry["val_loss"]
        return better


@dataclass
class Rates:
    """How fast batches are made and used. Training waits for the slower of the two."""

    steps: int = 0
    seconds: float = 0.0  # spent on training, without evaluation
    waited: float = 0.0  # the part of them spent waiting for batches

    def add(self, steps: int, seconds: float, waited: float) -> None:
        """Adds the numbers of an epoch."""
        self.steps += steps
        self.seconds += seconds
        self.waited += waited

    def record(self, loader: BatchLoader) -> dict[str, float]:
        made = loader.subgraphs_per_second
        used = self.steps / max(self.seconds - self.waited, 1e-9)
        return {
            "loader_subgraphs_per_second": 0.0 if made is None else made,
            "model_steps_per_second": used,
        }

    def text(self, loader: BatchLoader) -> str:
        """Both rates, in batches per second."""
        rates = self.record(loader)
        made = rates["loader_subgraphs_per_second"] / loader.batch_size
        return f"loader {made:.0f}/s, model {rates['model_steps_per_second']:.0f}/s"
