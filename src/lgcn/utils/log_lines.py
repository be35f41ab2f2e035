"""Progress as plain lines, for logs and pipes, and the estimate of time and memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from lgcn.utils.sizes import format_memory

if TYPE_CHECKING:
    from lgcn.training.state import State

Clock = Callable[[], float]
Write = Callable[[str], None]

# Seconds between two lines: a tenth of what has passed, within these bounds.
SHORTEST, LONGEST = 10.0, 60.0
# Steps of work that begin earlier get no line of their own: short work stays silent.
SILENT_SECONDS = 2.0
# An estimate after a first epoch that took less would mostly count the compiling and loading of
# code. It is made after the second epoch then, and made again if the second took less than half.
FIRST_EPOCH_SECONDS = 30.0
# Estimates from here on come with advice.
LONG_SECONDS = 600.0
ADVICE = {
    "shell": "to limit it: --time-limit 10m; to shorten it: --set max_epochs=100",
    "python": 'to limit it: time_limit="10m"; to shorten it: max_epochs=100',
}
ADVICE_WHOLE = {"shell": "--set training=subgraph", "python": 'training="subgraph"'}


def last_epoch(state: State, max_epochs: int, patience: int) -> int:
    """The last epoch if validation does not improve any more."""
    since = state.progress_epoch or max(state.best_epoch, 1)
    return max(state.epoch, min(max_epochs, since + patience))


def scores(state: State) -> str:
    """Loss, score and speed of the last evaluated epoch."""
    if not state.history:
        return ""
    now = state.history[-1]
    return (
        f"loss {now['train_loss']:.3f}  validation {now['val_score']:.3f} "
        f"(best {state.best_val_score:.3f})" + (f"  {state.rates}" if state.rates else "")
    )


def duration(seconds: float) -> str:
    """A time in words, such as `24 ms`, `45 s`, `3 min` or `2.6 hours`."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} hours"


def peak_memory() -> int:
    """The most memory in bytes that this process has had so far; 0 if the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024


class Estimate:
    """Says after the first epoch or the second how long the training may take.

    Args:
        max_epochs: Epochs at most.
        max_steps: Steps at most. (default: no limit)
        words: Whose advice is given, `"shell"` or `"python"`. (default: `"python"`)
        clock: Gives seconds. (default: `time.monotonic`)
    """

    def __init__(
        self,
        max_epochs: int,
        max_steps: int | None = None,
        *,
        words: str = "python",
        clock: Clock = time.monotonic,
    ) -> None:
        self.max_epochs = max_epochs
        self.max_steps = max_steps
        self.words = words
        self.clock = clock
        self.whole = False  # whether steps are on whole graphs
        self.seconds: float | None = None  # of the epochs left, once it is known
        self._begun = False
        self._before = clock()
        self._first = 0.0
        self._epochs = self._steps = 0

    def begin(self) -> None:
        """The first epoch begins now: what came before was reading and preparing.

        Without this call there is no estimate: several trainings have their own limit of time.
        """
        self._begun = True
        self._before = self.clock()

    def after(self, state: State) -> str | None:
        """The estimate, if it is made after this epoch."""
        now = self.clock()
        took, self._before = now - self._before, now
        self._epochs += 1
        steps, self._steps = state.steps - self._steps, state.steps
        if self._epochs == 1:
            self._first = took
            made = took >= FIRST_EPOCH_SECONDS
        else:
            made = self._epochs == 2 and (self.seconds is None or took < self._first / 2)
        if not (made and self._begun):
            return None
        left = self.max_epochs - state.epoch
        if self.max_steps is not None and self._epochs > 1 and steps > 0:
            left = min(left, -(-(self.max_steps - state.steps) // steps))
        self.seconds = took * left
        if self.seconds < SHORTEST:  # the last line comes sooner than the next would
            return None
        return self._text(took, state.epoch + left)

    def _text(self, per_epoch: float, last: int) -> str:
        assert self.seconds is not None
        memory = peak_memory()
        used = f", peak memory {format_memory(memory)} so far" if memory else ""
        text = (
            f"about {duration(self.seconds)} left for up to {last} epochs "
            f"({duration(per_epoch)} per epoch; may stop earlier){used}"
        )
        if self.seconds < LONG_SECONDS:
            return text
        advice = ADVICE[self.words]
        if self.whole:
            advice += f" or {ADVICE_WHOLE[self.words]}"
        return f"{text}; {advice}"


class Lines:
    """Decides when the next line is due: every 10 s at first, later at most once per minute."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.clock = clock
        self.started = self._last = clock()

    @property
    def elapsed(self) -> float:
        return self.clock() - self.started

    def due(self) -> bool:
        """Whether it is time for a line."""
        wait = min(LONGEST, max(SHORTEST, 0.1 * (self._last - self.started)))
        return self.clock() - self._last >= wait

    def written(self) -> None:
        """A line was written just now."""
        self._last = self.clock()


class EpochLines:
    """Writes lines about a training; the callbacks of `lgcn.training.train`.

    Args:
        write: Writes a line.
        max_epochs, patience: Those of the training.
        estimate: The estimate of time and memory.
        clock: Gives seconds. (default: `time.monotonic`)
    """

    def __init__(
        self,
        write: Write,
        max_epochs: int,
        patience: int,
        estimate: Estimate,
        clock: Clock = time.monotonic,
    ) -> None:
        self.write = write
        self.max_epochs = max_epochs
        self.patience = patience
        self.estimate = estimate
        self.lines = Lines(clock)
        self._state: State | None = None
        self._shown = 0  # the last epoch that got a line

    def start(self, text: str, whole: bool) -> None:
        self.write(text)
        self.estimate.whole = whole
        self.estimate.begin()
        self.lines.written()

    def __call__(self, state: State) -> None:
        self._state = state
        estimate = self.estimate.after(state)
        if estimate is not None:
            self.write(estimate)
        if estimate is not None or self.lines.due():
            self._line()

    def finish(self) -> None:
        """Writes the last epoch, unless it was written already."""
        if self._state is not None and self._state.epoch != self._shown:
            self._line()

    def _line(self) -> None:
        state = self._state
        assert state is not None
        self._shown = state.epoch
        last = last_epoch(state, self.max_epochs, self.patience)
        found = scores(state)
        self.write(
            f"epoch {state.epoch}/{last}  {found}{'  ' if found else ''}"
            f"{duration(self.lines.elapsed)}"
        )
        self.lines.written()


class StepLines:
    """Writes a line when a step of long work begins, and now and then how far it is.

    Args:
        write: Writes a line.
        clock: Gives seconds. (default: `time.monotonic`)
    """

    def __init__(self, write: Write, clock: Clock = time.monotonic) -> None:
        self.write = write
        self.lines = Lines(clock)
        self._step = ""

    def __call__(self, step: str, done: int, total: int) -> None:
        begins = step != self._step
        if begins and 0 < total <= done:  # what is done at once needs no line
            return
        if self.lines.elapsed < SILENT_SECONDS or not (begins or self.lines.due()):
            return
        self._step = step
        share = f" {100 * done // total} %" if total else ""
        self.write(f"{step}{share}  {duration(self.lines.elapsed)}")
        self.lines.written()
