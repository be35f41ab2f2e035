"""The command ``lgcn reproduce``: the paper's tables and figure."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from lgcn.cli.options import Json, Root
from lgcn.cli.output import SafeConsole, err, out, print_json
from lgcn.errors import LGCNError, TrainingInterrupted, UsageError

if TYPE_CHECKING:
    from lgcn.paper.reproduce import Reproduction
    from lgcn.paper.runner import OnRun

FAILURES_SHOWN = 20
WIDTH = 120  # columns of a table in a file or pipe


def reproduce(
    target: Annotated[
        str,
        typer.Argument(
            help="table2, table3, table4, table5, figure5, ablation, text, best, best-graphs, "
            "best-published, best-ppi, graphs, graph-parts, or all of them."
        ),
    ],
    datasets: Annotated[
        list[str] | None,
        typer.Option(help="Only these data sets, e.g. cora,citeseer. Repeatable."),
    ] = None,
    models: Annotated[
        list[str] | None, typer.Option(help="Only these systems, e.g. gcn,lgcn. Repeatable.")
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Runs per system. Default: 10; 20 for best, 3 on PPI, and 3 per fold for graphs."
        ),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="For graphs: settings tried per system and fold. Default: 4."),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Only this preset of the LGCN: paper (its text), released (the authors' program) "
            "or default. Default: all in Tables 2 to 4, lgcn's defaults in Table 5 and Figure 5."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed and few epochs, to see that everything runs.")
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="All seeds and epochs (the default).")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Output folder. Default: reproduce, or reproduce/quick with --quick."
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Number of runs at the same time, with one thread each. Default: one per core; "
            "one on a GPU, where several of these small networks fit."
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            help="auto, cpu or cuda. Table 5 measures times on this device; times of another "
            "device in --out are kept."
        ),
    ] = "auto",
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto",
            help="Do the runs on the nodes of this Ray cluster, one core each. Needs the extra "
            "ray, and the data files on each node.",
        ),
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Run the paper's experiments and write their tables and charts.

    Records of finished runs are kept in --out/records. The same command resumes where it stopped.
    """
    if quick and full:
        raise UsageError("give --quick or --full, not both")
    if processes is not None and processes < 1:
        raise UsageError(f"--processes must be at least 1, got {processes}")
    if ray is not None:
        _check_ray(ray, processes, device)
    if folder is None:
        folder = Path("reproduce/quick" if quick else "reproduce")
    chosen: dict[str, Any] = {
        "datasets": _names(datasets),
        "models": _names(models),
        "seeds": seeds,
        "preset": preset,
        "quick": quick,
        "trials": trials,
    }
    try:
        report = _run(target, chosen, folder, processes, device, root, ray)
    except KeyboardInterrupt:
        raise TrainingInterrupted(
            f"stopped; finished runs are kept. Resume with: {shlex.join(['lgcn', *sys.argv[1:]])}"
        ) from None
    _show(report, folder, as_json)


def _run(
    target: str,
    chosen: dict[str, Any],
    folder: Path,
    processes: int | None,
    device: str,
    root: Path | None,
    address: str | None,
) -> "Reproduction":
    from lgcn.paper.plans import make_plans

    plans = make_plans(target, **chosen)
    device = _device(device) if address is None else "cpu"
    from lgcn.paper.reproduce import reproduce as run_reproduction

    if processes is None:
        processes = 1 if device == "cuda" else _cores()
    with _progress() as on_run:
        return run_reproduction(
            plans,
            folder,
            _options(chosen),
            root=None if root is None else str(root),
            device=device,
            processes=processes,
            address=address,
            on_run=on_run,
            on_timing=lambda names: err.print(f"measuring times: {', '.join(names)}"),
        )


def _check_ray(address: str, processes: int | None, device: str) -> None:
    from lgcn.workers.ray_cluster import check_address, import_ray

    if processes is not None:
        raise UsageError("give --processes or --ray, not both: each core of the cluster does a run")
    if device == "cuda":
        raise UsageError("--ray does runs on CPUs: omit --device cuda")
    check_address(address)
    import_ray()


def _names(given: list[str] | None) -> list[str]:
    """The names given by repeated options, or separated by commas or spaces."""
    return [name for text in given or () for name in text.replace(",", " ").split()]


def _device(name: str) -> str:
    if name not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device must be auto, cpu or cuda, got {name!r}")
    from lgcn.training.setup import pick_device

    return pick_device(name).type


def _cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _options(chosen: dict[str, Any]) -> str:
    """The options that decide the content of a table."""
    parts = []
    for key, value in chosen.items():
        if value is True:
            parts.append(f"--{key}")
        elif value:
            parts.append(f"--{key} {','.join(value) if isinstance(value, list) else value}")
    return " ".join(parts)


@contextmanager
def _progress() -> "Iterator[OnRun]":
    """A progress bar on a terminal, one line per run elsewhere."""
    if not err.is_terminal:
        yield lambda job, result, done, total: err.print(
            escape(f"{done}/{total} {_run_text(job, result)}"), soft_wrap=True
        )
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[runs]}"),
        BarColumn(bar_width=20),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None, runs="starting")

        def on_run(job: Any, result: Any, done: int, total: int) -> None:
            text, runs = escape(_run_text(job, result)), f"run {done}/{total}"
            bar.update(task, completed=done, total=total, description=text, runs=runs)

        yield on_run


def _run_text(job: Any, result: Any) -> str:
    own = {key: value for key, value in job.settings.items() if key != "preset"}
    settings = [job.settings.get("preset", ""), *(f"{k}={v}" for k, v in own.items())]
    inside = f" ({', '.join(filter(None, settings))})" if any(settings) else ""
    fold = "" if job.fold is None else f" fold {job.fold}"
    name = f"{job.dataset}{fold} {job.system}{inside} seed {job.seed}"
    if not isinstance(result, dict):
        return f"{name}: failed, {result.message}"
    found = result["result"]
    score = found["test_score"]
    text = f"{100 * score:.1f} %" if found["metric"] == "accuracy" else f"{score:.3f}"
    return f"{name}: {text} in {found['seconds']:.1f} s"


def _show(report: "Reproduction", folder: Path, as_json: bool) -> None:
    from lgcn.paper.render import terminal

    if as_json:
        print_json(
            {
                "out": str(folder),
                "runs": {"run": report.run, "reused": report.reused},
                "tables": {
                    table.target: {"title": table.title, "rows": list(table.entries)}
                    for table in report.tables
                },
                "files": [str(path) for path in report.files],
                "left_out": report.left_out,
                "failed": [
                    dict(zip(("run", "why", "command"), f, strict=True)) for f in report.failed
                ],
            }
        )
    else:
        # Wide tables fit in a file; a terminal wraps them.
        page = out if out.is_terminal else SafeConsole(highlight=False, width=WIDTH)
        for table in report.tables:
            page.print(terminal(table))
        for note in dict.fromkeys(note for table in report.tables for note in table.notes):
            page.print(escape(f"- {note}"), style="dim")
        text = f"{report.run} runs, {report.reused} reused; all tables are in {folder}/README.md"
        out.print(escape(text), soft_wrap=True)
    for note in (*report.notes, *report.left_out):
        err.print(f"[yellow]Note:[/yellow] {escape(note)}", soft_wrap=True)
    if report.failed:
        shown = [
            f"{what}: {why}" + (f"\n    to run it alone: {alone}" if alone else "")
            for what, why, alone in report.failed[:FAILURES_SHOWN]
        ]
        more = len(report.failed) - len(shown)
        number = f"{len(report.failed)} {'run' if len(report.failed) == 1 else 'runs'}"
        raise LGCNError(
            f"{number} failed; run the same command to try again\n  "
            + "\n  ".join([*shown, *([f"and {more} more"] if more > 0 else [])])
        )
