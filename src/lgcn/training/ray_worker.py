"""What each worker of `lgcn train --ray` runs: the training that `lgcn train` would run."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from lgcn.workers import Workers


def train_in_group(
    settings: dict[str, Any], *, workers: Workers, post: Callable[[str, str], None]
) -> dict[str, Any]:
    """Trains together with the other workers, and returns the record without its history.

    Args:
        settings: The training as JSON: `settings`, `dataset`, `options`, `root`, `out`, `resume`,
            `overwrite` and `quiet`.
        workers: The group.
        post: Called by rank 0 with lines of progress and with notes.
    """
    from rich.console import Console

    from lgcn.datasets.graph_source import GraphSource
    from lgcn.training.prepare import prepare_in_group
    from lgcn.utils.progress import epoch_progress

    given = {name: settings[name] for name in ("out", "resume", "overwrite", "root")}
    source = GraphSource(settings["dataset"], settings["options"], settings["root"])
    with _notes(post if workers.is_first else None):
        prepared = prepare_in_group(settings["settings"], workers, source=source, **given)
        limits = prepared.settings.optimisation
        with epoch_progress(
            limits.max_epochs,
            limits.patience,
            max_steps=limits.max_steps,
            show=workers.is_first and not settings["quiet"],
            console=Console(file=cast(TextIO, _Lines(post)), width=1000, highlight=False),
            words="shell",
        ) as progress:
            start = None if progress is None else progress.start
            record = prepared.train(progress, start, None, workers)
    return {key: value for key, value in record.items() if key != "history"}


class _Lines(io.TextIOBase):
    """A text file whose lines are posted."""

    def __init__(self, post: Callable[[str, str], None]) -> None:
        self.post, self.rest = post, ""

    def write(self, text: str) -> int:
        *lines, self.rest = (self.rest + text).split("\n")
        for line in lines:
            self.post("line", line)
        return len(text)


@contextmanager
def _notes(post: Callable[[str, str], None] | None) -> Iterator[None]:
    """Warnings of the library within the block are posted; those of others are not."""

    def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
        if post is not None and category is UserWarning:
            post("note", str(message))

    with warnings.catch_warnings():
        warnings.showwarning = show  # type: ignore[assignment]
        yield
