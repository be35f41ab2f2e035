"""Commands on a graph in parts, alone or under torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.partition.manifest import is_partition

if TYPE_CHECKING:
    from lgcn.inference.run_on_parts import RunOnParts
    from lgcn.inference.trained_run import TrainedRun

# Seconds. Others may compute a layer of a larger part; a process that ends is noticed at once.
TIMEOUT = 1800.0


@contextmanager
def on_parts(
    run: TrainedRun,
    command: str,
    dataset: str | None,
    store: Path | None,
    tables: Mapping[str, Any],
) -> Iterator[RunOnParts | None]:
    """The run on the graph in parts that the options name; `None` if the graph is in one piece.

    Args:
        run: The run.
        command: Name of the command, for messages.
        dataset, store, tables: The options of the graph; without any, it is that of the training.
    """
    folder = _partition(run, dataset, store, tables)
    if folder is None:
        if int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
            raise UsageError(
                f"lgcn {command} on several processes needs a graph in parts, which lgcn partition "
                "writes. Give --graph PARTITION, or start one process"
            )
        yield None
        return
    from lgcn.inference.run_on_parts import RunOnParts
    from lgcn.partition import open_partition
    from lgcn.workers import connected

    with connected(TIMEOUT) as workers:
        yield RunOnParts(run, open_partition(folder), workers)


def _partition(
    run: TrainedRun, dataset: str | None, store: Path | None, tables: Mapping[str, Any]
) -> Path | None:
    """The folder of the partition, if the graph is one."""
    given: list[Any] = [one for one in (dataset, store) if one is not None]
    if not given and not tables:
        given = [run.settings.dataset_options.get("path", run.settings.dataset)]
        if run.settings.dataset == "partition" and not is_partition(given[0]):
            run.check_data()  # says that it has moved
    elif len(given) != 1 or tables:
        return None  # several graphs at once are refused where those in one piece are
    return Path(given[0]) if is_partition(given[0]) else None
