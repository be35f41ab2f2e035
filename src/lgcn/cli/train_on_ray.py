"""`lgcn train --ray`: the same training, in workers that Ray Train places on a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lgcn.cli.output import err, print_note
from lgcn.cli.words import in_flags
from lgcn.errors import UsageError

if TYPE_CHECKING:
    from lgcn.training.prepare import PreparedTraining

RESTARTS = 3  # the default of --max-failures
_MOST = 10_000


def workers_range(text: str) -> tuple[int, int]:
    """The least and the greatest number of workers that the flag --workers names."""
    found = re.fullmatch(r"\s*(\d{1,6})\s*(?:-\s*(\d{1,6})\s*)?", text)
    least = int(found[1]) if found else 0
    most = int(found[2] or least) if found else 0
    if not 1 <= least <= most <= _MOST:
        raise UsageError(
            "--workers wants a number of at least 1, such as 4, or a range such as 2-4, got "
            f"{text!r:.80}"
        )
    return least, most


@dataclass(frozen=True)
class RayFlags:
    """The flags that belong to --ray, as they were given."""

    address: str | None = None
    workers: str | None = None
    threads: int | None = None
    max_failures: int | None = None

    def check(self, ray: bool) -> None:
        """Raises UsageError if one is wrong, or given without --ray."""
        given = [name for name, value in vars(self).items() if value is not None]
        if given and not ray:
            raise UsageError(f"{_flag(given[0])} needs --ray")
        for name, least in (("threads", 1), ("max_failures", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise UsageError(f"{_flag(name)} must be at least {least}, got {value}")
        workers_range(self.workers or "1")
        if self.address is not None:
            from lgcn.workers.ray_cluster import check_address

            check_address(self.address)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def train_on_ray(
    prepared: PreparedTraining, given: Mapping[str, Any], flags: RayFlags, quiet: bool
) -> dict[str, Any]:
    """Trains what is prepared in a group of workers, and returns the record.

    Args:
        prepared: The training. Its settings, folder and data are checked on this machine first.
        given: The settings as they were given: others may still depend on the graph.
        flags: The cluster and the group.
        quiet: Whether to show no progress.
    """
    if prepared.resume and prepared.run.finished:
        return prepared.train()  # reads the record
    least, most = workers_range(flags.workers or "1")
    from lgcn.training.ray_worker import train_in_group
    from lgcn.workers.ray_group import GroupSize, run_group

    settings = prepared.settings
    size = GroupSize(least, most, flags.threads or 1, settings.hardware.device == "cuda")
    return run_group(
        train_in_group,
        job_of(prepared, given, quiet),
        size,
        shared=prepared.run.folder.absolute().parent,
        address=flags.address,
        max_failures=RESTARTS if flags.max_failures is None else flags.max_failures,
        on_line=_show,
    )


def job_of(prepared: PreparedTraining, given: Mapping[str, Any], quiet: bool) -> dict[str, Any]:
    """What a worker needs to prepare the same training, as JSON."""
    source = prepared.source
    return {
        "settings": _plain(given),
        "dataset": source.dataset,
        "options": _plain(source.options),
        "root": None if source.root is None else str(source.root),
        "out": str(prepared.run.folder.absolute()),
        "resume": prepared.resume,
        "overwrite": prepared.overwrite,
        "quiet": quiet,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _show(kind: str, text: str) -> None:
    if kind == "note":
        print_note(in_flags(text))
    else:
        err.print(text, markup=False, highlight=False, soft_wrap=True)
