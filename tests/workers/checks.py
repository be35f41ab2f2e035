"""What must hold after faults, and an undisturbed run to compare with."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from .data import Data
from .trainings import Fault, Outcome, run_training

ERROR = re.compile(r"^Error: ", re.MULTILINE)


class Broken(AssertionError):
    """A promise was broken."""


@cache
def undisturbed(data: Data, folder: Path, size: int, settings: tuple[str, ...] = ()) -> Outcome:
    """The same training without faults; computed once."""
    outcome = run_training(
        data, folder / f"undisturbed-{size}" / "run", size, settings=settings, timeout=600
    )
    if not outcome.finished or len(outcome.attempts) != 1:
        raise Broken(f"without a fault it failed: {outcome.text}")
    return outcome


def check_restarts(
    data: Data,
    folder: Path,
    out: Path,
    *faults: Fault,
    size: int = 2,
    settings: tuple[str, ...] = (),
    **more: Any,
) -> Outcome:
    """Trains with faults, and raises Broken if anything is not as promised.

    Every attempt ends within its time; the run resumes from its last checkpoint, and ends with the
    weights and the history of an undisturbed run, to the last bit; a rank that failed by itself
    says so in one line.
    """
    expected = undisturbed(data, folder, size, settings)
    outcome = run_training(data, out, size, *faults, settings=settings, **more)
    if not outcome.finished:
        raise Broken(f"the run did not finish\n{outcome.text}")
    if outcome.weights != expected.weights:
        raise Broken("the weights differ from those of an undisturbed run")
    if outcome.history != expected.history:
        raise Broken("the history differs from that of an undisturbed run")
    resumed = 0  # the last epoch that any attempt had begun
    for attempt, ended in enumerate(outcome.attempts):
        epochs = outcome.epochs(attempt)
        # There is a checkpoint after each epoch, so only the last one may be trained again.
        if epochs and min(epochs) < resumed:
            raise Broken(f"attempt {attempt} began at epoch {min(epochs)}, not at {resumed}")
        resumed = max([resumed, *epochs])
        for one in ended:
            said = ERROR.findall(one.output)
            if "Traceback" in one.output or "internal error" in one.output:
                raise Broken(f"attempt {attempt}, rank {one.rank}: a bug\n{one.output}")
            if one.status > 0 and len(said) != 1:
                raise Broken(f"attempt {attempt}, rank {one.rank}: no message\n{one.output}")
    return outcome
