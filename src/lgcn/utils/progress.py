"""Progress of long work: the callbacks that report it, and bars in terminals and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from lgcn.training.state import State

# Called with the name of a step, how much of it is done, and how much there is in all; 0 if the
# total is not known.
OnProgress = Callable[[str, int, int], None]
# Called after every epoch with the state of the training.
OnEpoch = Callable[["State"], None]


@contextmanager
def step_progress(console: Console) -> Iterator[OnProgress | None]:
    """Shows a bar over the steps of long work while the block runs; only on a terminal.

    Gives the callback that moves the bar, `None` if there is no terminal.

    Args:
        console: Where to show it.
    """
    if not console.is_terminal:
        yield None
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
    show: bool | None = None,
    console: Console | None = None,
) -> Iterator[OnEpoch | None]:
    """Shows a bar over the epochs while the block runs.

    Gives the callback for `lgcn.training.train`, `None` if nothing is shown.

    Args:
        max_epochs, patience: Those of the training. They bound the number of epochs left.
        show: Whether to show a bar. (default: in terminals and notebooks)
        console: Where to show it. (default: standard error, or the notebook)
    """
    if console is None:
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
    if show is None:
        show = console.is_terminal or console.is_jupyter
    if not show:
        yield None
        return
    # In notebooks, Rich draws with ipywidgets. That leaves an empty Output() in the cell, and
    # without ipywidgets only a warning that they are missing.
    if console.is_jupyter:
        yield _notebook_line(max_epochs, patience)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    # In a file or a pipe, with show=True, the last state stays as one line.
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("", total=max_epochs)

        def on_epoch(state: State) -> None:
            last = _last_epoch(state, max_epochs, patience)
            bar.update(task, completed=state.epoch, total=last, description=_scores(state))

        yield on_epoch


def _notebook_line(max_epochs: int, patience: int) -> OnEpoch:
    """One line of plain text in a notebook's cell, replaced after every epoch."""
    ipython: Any = import_module("IPython.display")
    handle = ipython.display({"text/plain": "epoch 0"}, raw=True, display_id=True)

    def on_epoch(state: State) -> None:
        last = _last_epoch(state, max_epochs, patience)
        text = f"epoch {state.epoch}/{last}  {_scores(state)}"
        handle.update({"text/plain": text}, raw=True)

    return on_epoch


def _last_epoch(state: State, max_epochs: int, patience: int) -> int:
    """The last epoch if the validation score does not improve any more."""
    return max(state.epoch, min(max_epochs, max(state.best_epoch, 1) + patience))


def _scores(state: State) -> str:
    if not state.history:
        return ""
    now = state.history[-1]
    return (
        f"loss {now['train_loss']:.3f}  validation {now['val_score']:.3f} "
        f"(best {state.best_val_score:.3f})" + (f"  {state.rates}" if state.rates else "")
    )
