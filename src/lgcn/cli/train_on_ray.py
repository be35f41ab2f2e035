"""`lgcn train --ray`: the same training, in workers that Ray Train places on a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
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


def check_ray_flags(ray: bool, **flags: Any) -> None:
    """Raises UsageError if a flag that belongs to --ray is given without it, or is wrong."""
    given = [name for name, value in flags.items() if value is not None]
    if given and not ray:
        raise UsageError(f"--{given[0].replace('_', '-')} needs --ray")
    for name, least in (("threads", 1), ("max_failures", 0)):
        value = flags.get(name)
        if value is not None and value < least:
            flag = name.replace("_", "-")
            raise UsageError(f"--{flag} must be at least {least}, got {value}")
    if flags.get("address") is not None:
        from lgcn.workers.ray_cluster import check_address

        check_address(flags["address"])


def train_on_ray(
    prepared: PreparedTraining,
    *,
    workers: str | None,
    threads: int | None,
    address: str | None,
    max_failures: int | None,
    quiet: bool,
) -> dict[str, Any]:
    """Trains what is prepared in a group of workers, and returns the record.

    Args:
        prepared: The training. Its settings, folder and data are checked on this machine first.
        workers: Their number, or a range.
        threads: CPUs of a worker.
        address: The cluster.
        max_failures: How often the group is started again.
        quiet: Whether to show no progress.
    """
    least, most = workers_range(workers or "1")
    from lgcn.training.ray_worker import train_in_group
    from lgcn.workers.ray_group import GroupSize, run_group

    settings = prepared.settings
    size = GroupSize(least, most, threads or 1, settings.hardware.device == "cuda")
    return run_group(
        train_in_group,
        job_of(prepared, quiet),
        size,
        shared=prepared.run.folder.absolute().parent,
        address=address,
        max_failures=RESTARTS if max_failures is None else max_failures,
        on_line=_show,
    )


def job_of(prepared: PreparedTraining, quiet: bool) -> dict[str, Any]:
    """What a worker needs to prepare the same training, as JSON."""
    source = prepared.source
    return {
        "settings": _plain(prepared.settings.to_dict()),
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
