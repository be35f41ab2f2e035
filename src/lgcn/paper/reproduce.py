"""From plans to files: runs what is missing, writes the tables, and names what is left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from lgcn.errors import LGCNError
from lgcn.paper import render
from lgcn.paper.jobs import GRAPH_SETS, Job, command
from lgcn.paper.plan import Plan
from lgcn.paper.plans import TARGETS
from lgcn.paper.pool import Failure, run_tasks
from lgcn.paper.records import Records, run_and_record
from lgcn.paper.runner import OnRun, run_jobs
from lgcn.paper.systems import INSTALL, SYSTEMS
from lgcn.paper.tables import Table, make_table, timings
from lgcn.paper.timing import Timing, measure, read_times, write_times


@dataclass
class Reproduction:
    """What was made, and what was not."""

    tables: list[Table] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    run: int = 0
    reused: int = 0
    failed: list[tuple[str, str, str]] = field(default_factory=list)  # what, why, its command
    left_out: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def reproduce(
    plans: Sequence[Plan],
    folder: Path,
    options: str = "",
    *,
    root: str | None = None,
    device: str = "cpu",
    processes: int = 1,
    address: str | None = None,
    run: Callable[..., dict[str, Any]] = run_and_record,
    on_run: OnRun | None = None,
    on_timing: Callable[[list[str]], None] | None = None,
) -> Reproduction:
    """Runs the jobs that have no record yet and writes all tables.

    Args:
        plans: The tables to make.
        folder: Output folder for records, tables and charts.
        options: Options of the command that makes the tables, which is shown below them.
            (default: none)
        root: Folder of the data files. (default: see :func:`lgcn.load_dataset`)
        device: ``"cpu"`` or ``"cuda"``. (default: ``"cpu"``)
        processes: Number of runs at the same time. (default: 1)
        address: Of a Ray cluster that does the runs instead. Times are measured on this machine.
            (default: none)
        run: Called with a job, root and device in a worker process. (default: the real run)
        on_run: Called after each run. (default: nothing)
        on_timing: Called with the names of the data sets before times are measured.
            (default: nothing)
    """
    report = Reproduction()
    checked = [_possible(plan, root) for plan in plans]
    report.left_out = list(dict.fromkeys(text for _, texts in checked for text in texts))
    possible = [(plan, texts) for plan, texts in checked if plan.datasets and plan.rows]
    if not possible:
        raise LGCNError("there is nothing to reproduce: " + "; ".join(report.left_out))
    one = partial(run, root=root, device=device)

    def run_all(jobs: dict[str, list[Job]]) -> None:
        outcome = run_jobs(jobs, folder, one, processes=processes, address=address, on_run=on_run)
        report.run += outcome.run
        report.reused += outcome.reused
        report.notes += [note for note in outcome.notes if note not in report.notes]
        report.failed += [(job.id, why, command(job)) for job, why in outcome.failed]

    run_all({plan.target: plan.all_jobs() for plan, _ in possible})
    stored = Records(folder)
    more = {plan.target: plan.more_jobs(stored) for plan, _ in possible}
    if any(more.values()):
        run_all(more)
    for plan, _ in possible:
        if plan.target == "table5":
            _measure(plan, folder, root, device, report, on_timing)
    report.tables = [make_table(plan, folder, texts) for plan, texts in possible]
    _write(report, folder, options)
    return report


def _possible(plan: Plan, root: str | None) -> tuple[Plan, list[str]]:
    """The plan without missing data sets and systems that need a missing extra; and their names."""
    from lgcn.datasets import check_dataset, dataset_files

    left_out = []
    datasets = []
    for dataset in plan.datasets:
        try:
            if dataset in GRAPH_SETS:
                check_dataset("graphs", root, path=dataset, fold=0)
            else:
                dataset_files(dataset, root)
            datasets.append(dataset)
        except LGCNError as error:
            why = str(error).partition(" Looked for")[0].rstrip(".")
            left_out.append(f"{dataset} is left out: {why}")
    for name in dict.fromkeys(row.system for row in plan.rows):
        system = SYSTEMS[name]
        if system.missing:
            left_out.append(f"{system.title} is left out: it needs {system.needs}, {INSTALL}")
    rows = tuple(row for row in plan.rows if not SYSTEMS[row.system].missing)
    return replace(plan, datasets=tuple(datasets), rows=rows), left_out


def _measure(
    plan: Plan,
    folder: Path,
    root: str | None,
    device: str,
    report: Reproduction,
    on_timing: Callable[[list[str]], None] | None,
) -> None:
    """Measures the missing times after all runs, so that nothing else uses the cores."""

    def done(timing: Timing, result: Any) -> None:
        if isinstance(result, Failure):
            report.failed.append((f"times of {timing.name}", result.message, ""))
        else:
            write_times(folder, result)

    wanted = [timings(plan, dataset, device) for dataset in plan.datasets]
    todo = [timing for timing in wanted if read_times(folder, timing) is None]
    if todo and on_timing is not None:
        on_timing([timing.dataset for timing in todo])
    run_tasks(todo, partial(measure, root=root), done, threads=None)


def _write(report: Reproduction, folder: Path, options: str) -> None:
    charts = find_spec("matplotlib") is not None
    if not charts:
        report.left_out.append(f"charts are left out: they need matplotlib, {INSTALL}")
    for table in report.tables:
        numbers = folder / f"{table.target}.csv"
        render.write_text(numbers, render.csv_text(table))
        report.files.append(numbers)
        if charts:
            from lgcn.paper.charts import draw

            report.files.append(draw(table, folder))
    sections = {t.target: render.markdown(t, options, charts) for t in report.tables}
    report.files.append(render.write_page(folder, sections, list(TARGETS)))
