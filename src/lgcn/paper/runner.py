"""Runs the jobs that have no record yet, several at a time, and writes a record after each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lgcn.paper.jobs import Job
from lgcn.paper.pool import Failure, run_tasks
from lgcn.paper.records import read_record, write_record

# Called after each run with the job, its record or failure, runs done, and runs to do.
OnRun = Callable[[Job, "dict[str, Any] | Failure", int, int], None]


@dataclass
class Outcome:
    """What became of the jobs."""

    reused: int = 0  # had a record
    run: int = 0
    failed: list[tuple[Job, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def run_jobs(
    jobs: Sequence[Job],
    folder: Path,
    run: Callable[[Job], dict[str, Any]],
    *,
    processes: int = 1,
    on_run: OnRun | None = None,
) -> Outcome:
    """Runs every job once that has no record in the folder.

    A record is written as soon as its run is done, so that ending the program at any time loses the
    runs in progress alone.

    Args:
        jobs: The jobs; of equal ones, one is run.
        folder: Where the records are.
        run: Gives the record of a job; called in processes of one thread each.
        processes: Runs at a time. (default: 1)
        on_run: Called after each run. (default: nothing)
    """
    outcome = Outcome()
    todo = {}
    for job in {job.id: job for job in jobs}.values():
        record, why = read_record(folder, job)
        if record is not None:
            outcome.reused += 1
            continue
        if why is not None:
            outcome.notes.append(f"{why}; it was run again")
        todo[job.id] = job

    def done(job: Job, result: dict[str, Any] | Failure) -> None:
        if isinstance(result, Failure):
            outcome.failed.append((job, result.message))
        else:
            write_record(folder, job, result)
            outcome.run += 1
        if on_run is not None:
            on_run(job, result, outcome.run + len(outcome.failed), len(todo))

    order = sorted(todo.values(), key=lambda job: -job.cost)  # cores stay busy to the end
    run_tasks(order, run, done, processes=processes)
    return outcome
