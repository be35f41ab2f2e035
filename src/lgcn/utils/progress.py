"""A progress bar over epochs, in terminals and notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from lgcn.training.state import State

# Called with the name of a step, how much of it is done, and how much there is in all; 0 where the
# total is not known.
OnProgress = Callable[[str, int, int], None]
OnEpoch = Callable[["State"], None]


@contextmanager
def epoch_progress(
    max_epochs: int,
    patience: int,
    *,
    show: bool | None = None,
    console: Console | None = None,
) -> Iterator[OnEpoch | None]:
    """Shows a bar while the block runs; gives what :func:`lgcn.training.train` calls every epoch.

    Args:
        max_epochs, patience: Those of the training, for the epochs that are left at most.
        show: Whether to show anything. (default: where there is a terminal or a notebook)
        console: Where to show it. (default: standard error, or the notebook)
    """
    console = Console(stderr=True, highlight=False) if console is None else console
    if show is None:
        show = console.is_terminal or console.is_jupyter
    if not show:
        yield None
        return
    # Rich draws in notebooks by ipywidgets: it leaves an empty Output() in the cell, and without
    # them only warns that they are missing.
    if console.is_jupyter:
        yield _line(max_epochs, patience)
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    # In a file or a pipe, where it was asked for, the last state stays as one line.
    with Progress(*columns, console=console, transient=console.is_terminal) as bar:
        task = bar.add_task("", total=max_epochs)

        def on_epoch(state: State) -> None:
            last = _last_epoch(state, max_epochs, patience)
            bar.update(task, completed=state.epoch, total=last, description=_scores(state))

        yield on_epoch


def _line(max_epochs: int, patience: int) -> OnEpoch:
    """One line of plain text in a notebook's cell, replaced after every epoch."""
    from IPython.display import display  # type: ignore[import-not-found]

    handle: Any = display({"text/plain": "epoch 0"}, raw=True, display_id=True)

    def on_epoch(state: State) -> None:
        last = _last_epoch(state, max_epochs, patience)
        text = f"epoch {state.epoch}/{last}  {_scores(state)}"
        handle.update({"text/plain": text}, raw=True)

    return on_epoch


def _last_epoch(state: State, max_epochs: int, patience: int) -> int:
    """Early stopping bounds what is left: the time shown is at most that."""
    return max(state.epoch, min(max_epochs, max(state.best_epoch, 1) + patience))


def _scores(state: State) -> str:
    if not state.history:
        return ""
    now = state.history[-1]
    return (
        f"loss {now['train_loss']:.3f}  validation {now['val_score']:.3f} "
        f"(best {state.best_val_score:.3f})" + (f"  {state.rates}" if state.rates else "")
    )


@contextmanager
def step_progress(console: Console) -> Iterator[Callable[[str, int, int], None] | None]:
    """A bar over the steps of long work on a terminal, silence elsewhere.

    Gives a function to call with what is being done, how much of it is done, and how much there is
    in all, 0 where that is not known.
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
        yield lambda text, done, total: bar.update(
            task, completed=done, total=total or None, description=text
        )
