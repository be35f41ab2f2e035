"""Progress of long work: the callbacks that report it, bars in terminals, lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from lgcn.utils.log_lines import (
    LONG_SECONDS,
    Clock,
    EpochLines,
    Estimate,
    StepLines,
    last_epoch,
    scores,
)

if TYPE_CHECKING:
    from rich.console import Console

    from lgcn.training.state import State

# Called with the name of a step, how much of it is done, and how much there is in all; 0 if the
# total is not known.
OnProgress = Callable[[str, int, int], None]
# Called after every epoch with the state of the training.
OnEpoch = Callable[["State"], None]
# Called before the first epoch with what is trained on, and whether steps are on whole graphs.
OnStart = Callable[[str, bool], None]


class EpochProgress(Protocol):
    """Shows the progress of a training: both callbacks of `lgcn.training.train`."""

    def __call__(self, state: State) -> None: ...

    def start(self, text: str, whole: bool) -> None: ...


@contextmanager
def step_progress(console: Console, *, clock: Clock = time.monotonic) -> Iterator[OnProgress]:
    """Shows a bar over the steps of long work while the block runs; lines if there is no terminal.

    Gives the callback that reports the progress. Short work gets no lines.

    Args:
        console: Where to show it.
        clock: Gives seconds. (default: `time.monotonic`)
    """
    if not console.is_terminal:
        yield StepLines(_writer(console), clock)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(
            task, completed=done, total=total or None, description=step
        )


@contextmanager
def epoch_progress(
    max_epochs: int,
    patience: int,
    *,
    max_steps: int | None = None,
    show: bool | None = None,
    console: Console | None = None,
    words: str = "python",
    clock: Clock = time.monotonic,
) -> Iterator[EpochProgress | None]:
    """Shows a bar over the epochs while the block runs; plain lines if there is no terminal.

    Gives the callbacks for `lgcn.training.train`, `None` if nothing is shown.

    Args:
        max_epochs, patience: Those of the training. They bound the number of epochs left.
        max_steps: Steps at most. (default: no limit)
        show: Whether to show anything. (default: in terminals and notebooks)
        console: Where to show it. (default: standard error, or the notebook)
        words: Whose advice is given when it will take long, `"shell"` or `"python"`.
            (default: `"python"`)
        clock: Gives seconds. (default: `time.monotonic`)
    """
    if console is None:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
    if show is None:
        show = console.is_terminal or console.is_jupyter
    if not show:
        yield None
        return
    estimate = Estimate(max_epochs, max_steps, words=words, clock=clock)
    # In notebooks, Rich draws with ipywidgets. That leaves an empty Output() in the cell, and
    # without ipywidgets only a warning that they are missing.
    if console.is_jupyter:
        yield _NotebookLine(max_epochs, patience, estimate)
        return
    if not console.is_terminal:
        lines = EpochLines(_writer(console), max_epochs, patience, estimate, clock)
        try:
            yield lines
        finally:  # also if the training is interrupted
            lines.finish()
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, max_epochs, patience, estimate)


def _writer(console: Console) -> Callable[[str], None]:
    """Writes plain lines: neither wrapped nor with markup."""

    def write(text: str) -> None:
        console.print(text, markup=False, highlight=False, soft_wrap=True)

    return write


class _Bar:
    """A bar in a terminal. The estimate of a long training is a line above it."""

    def __init__(self, bar: Any, max_epochs: int, patience: int, estimate: Estimate) -> None:
        self.bar = bar
        self.max_epochs = max_epochs
        self.patience = patience
        self.estimate = estimate
        self.task = bar.add_task("", total=max_epochs)

    def start(self, text: str, whole: bool) -> None:
        from rich.markup import escape

        self.estimate.whole = whole
        self.estimate.begin()
        self.bar.update(self.task, description=escape(text))  # until there is a score

    def __call__(self, state: State) -> None:
        estimate = self.estimate.after(state)
        if estimate is not None and (self.estimate.seconds or 0.0) >= LONG_SECONDS:
            _writer(self.bar.console)(estimate)
        last = last_epoch(state, self.max_epochs, self.patience)
        self.bar.update(self.task, completed=state.epoch, total=last, description=scores(state))


class _NotebookLine:
    """One line of plain text in a notebook's cell, replaced after every epoch."""

    def __init__(self, max_epochs: int, patience: int, estimate: Estimate) -> None:
        self.max_epochs = max_epochs
        self.patience = patience
        self.estimate = estimate
        ipython: Any = import_module("IPython.display")
        self.handle = ipython.display({"text/plain": "epoch 0"}, raw=True, display_id=True)
        self.long = ""  # the estimate, if it is long

    def start(self, text: str, whole: bool) -> None:
        self.estimate.whole = whole
        self.estimate.begin()
        self.handle.update({"text/plain": text}, raw=True)

    def __call__(self, state: State) -> None:
        estimate = self.estimate.after(state)
        if estimate is not None and (self.estimate.seconds or 0.0) >= LONG_SECONDS:
            self.long = f"\n{estimate}"
        last = last_epoch(state, self.max_epochs, self.patience)
        text = f"epoch {state.epoch}/{last}  {scores(state)}{self.long}"
        self.handle.update({"text/plain": text}, raw=True)
