"""Runs the jobs that have no record yet, several at a time, and records each when it ends."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lgcn.paper.jobs import Job
from lgcn.paper.pool import Failure, run_tasks
from lgcn.paper.records import Records

# Called after each run with the job, its record or failure, the runs done, and all runs to do.
OnRun = Callable[[Job, "dict[str, Any] | Failure", int, int], None]


@dataclass
class Outcome:
    """What happened to the jobs."""

    reused: int = 0  # jobs that had a record
    run: int = 0
    failed: list[tuple[Job, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_jobs(
    jobs: Mapping[str, Sequence[Job]],
    folder: Path,
    run: Callable[[Job], dict[str, Any]],
    *,
    processes: int = 1,
    address: str | None = None,
    on_run: OnRun | None = None,
) -> Outcome:
    """Runs every job once that has no record in the folder.

    This process writes each record as soon as the run ends. If the program is stopped, only the
    runs in progress are lost.

    Args:
        jobs: The jobs by table. A job that several tables need is run for the first of them.
        folder: The output folder with the records.
        run: Returns the record of a job; called in worker processes with one thread each.
        processes: Number of runs at the same time. (default: 1)
        address: Of a Ray cluster that runs them instead. (default: none)
        on_run: Called after each run. (default: nothing)
    """
    outcome = Outcome()
    records = Records(folder)
    outcome.notes += [f"{line} and ignored" for line in records.damaged]
    wanted: dict[str, tuple[str, Job]] = {}
    for table, own in jobs.items():
        for job in own:
            wanted.setdefault(job.id, (table, job))
    todo = []
    for _, job in wanted.values():
        record, why = records.find(job)
        if record is not None:
            outcome.reused += 1
            continue
        if why is not None:
            outcome.notes.append(f"{why}; it was run again")
        todo.append(job)

    def done(job: Job, result: dict[str, Any] | Failure) -> None:
        if isinstance(result, Failure):
            outcome.failed.append((job, result.message))
        else:
            records.add(wanted[job.id][0], result)
            outcome.run += 1
        if on_run is not None:
            on_run(job, result, outcome.run + len(outcome.failed), len(todo))

    order = sorted(todo, key=lambda job: -job.cost)  # so that all cores stay busy to the end
    run_tasks(order, run, done, processes=processes, address=address)
    return outcome
