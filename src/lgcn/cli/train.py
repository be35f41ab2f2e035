"""`lgcn train`: train a model and save it in a run folder."""

import math
import shlex
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.first_use import first_step_ahead, quiet_about_compiling
from lgcn.cli.leaderboard import print_choice, print_leaderboard, print_member
from lgcn.cli.options import GraphStore, Json, Root
from lgcn.cli.output import err, out, percent, print_json, print_line
from lgcn.cli.score_tables import print_scores
from lgcn.cli.table_flags import takes_tables
from lgcn.cli.train_on_ray import RayFlags, train_on_ray
from lgcn.errors import UsageError
from lgcn.training.metric_names import metric_text
from lgcn.utils.progress import epoch_progress
from lgcn.workers.launcher import launched

if TYPE_CHECKING:
    from lgcn.training.prepare import PreparedTraining
    from lgcn.workers import Workers

CLUSTER = "Several processes"


@takes_tables
def train(
    *,
    dataset: Annotated[
        str | None,
        typer.Option(help="Data set by name or .npz path, see `lgcn data list`. Default: digits."),
    ] = None,
    store: GraphStore = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="A preset; explicit settings override it. quick: one short training; default; "
            "best: the best model for ten minutes."
        ),
    ] = None,
    time_limit: Annotated[
        str | None,
        typer.Option(
            help="Try several networks for this long, such as 90s, 10m or 2h, and average the "
            "best. Default: one training.",
        ),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with settings; the flags override it.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting, such as k=16; see `lgcn settings`. Repeatable.",
        ),
    ] = None,
    structural_features: Annotated[
        bool | None,
        typer.Option(
            help="Add degrees, clustering and more that the edges give to the features. Default: "
            "only if there are no features.",
        ),
    ] = None,
    positions: Annotated[
        str | None,
        typer.Option(
            help="Add coordinates of nodes to the features: none, spectral or learnt. The model "
            "then predicts no other graph. Default: only if there are no features.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights, dropout and sub-graphs. Default: 0.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Metric that chooses the epoch, such as balanced_accuracy, macro_f1, roc_auc or "
            "rmse; see `lgcn settings`. Default: accuracy, micro_f1 or r2."
        ),
    ] = None,
    class_weight: Annotated[
        list[str] | None,
        typer.Option(
            metavar="balanced|NAME=NUMBER",
            help="Weight of the classes in the loss: balanced, or one class's. Repeatable.",
        ),
    ] = None,
    threshold: Annotated[
        str | None,
        typer.Option(
            help="Probability from which on the second of two classes is predicted, or tuned. "
            "Default: tuned with --metric, else 0.5."
        ),
    ] = None,
    baselines: Annotated[
        bool | None,
        typer.Option(
            "--baselines/--no-baselines",
            help="Compare with the majority class and with models without the graph. "
            "Default: do so.",
            show_default=False,
        ),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(help="Stop after this many steps. Default: no limit.")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(help="Memory for the scores of all nodes of a large graph. Default: 1GB."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("--out", help="Folder for the run. Default: runs/NAME-seedN."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in --out.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the run in --out.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Show no progress and no estimate.")
    ] = False,
    ray: Annotated[
        bool,
        typer.Option(
            "--ray",
            help="Train in several processes that Ray Train places, connects and restarts. Needs "
            "the extra ray.",
            rich_help_panel=CLUSTER,
        ),
    ] = False,
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT|auto",
            help="The Ray cluster. Default: this machine alone.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N|MIN-MAX",
            help="Number of processes. With a range, the training goes on with fewer when nodes "
            "disappear. Default: 1.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(help="CPUs of each process. Default: 1.", rich_help_panel=CLUSTER),
    ] = None,
    max_failures: Annotated[
        int | None,
        typer.Option(
            help="How often the processes are started again when one of them disappears. The run "
            "resumes from its last checkpoint. Default: 3.",
            rich_help_panel=CLUSTER,
        ),
    ] = None,
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Train a model on your own tables, a graph store or a data set, and score it."""
    group = RayFlags(address, workers, threads, max_failures)
    group.check(ray)
    from lgcn.datasets.graph_source import choose_source
    from lgcn.training.prepare import prepare_in_group, prepare_training, read_settings

    flags: dict[str, Any] = {"preset": preset, "seed": seed, "memory": memory}
    flags |= {"max_steps": max_steps, "time_limit": time_limit}
    flags |= {"baselines": baselines, "metric": metric}
    flags |= {"class_weight": _class_weight(class_weight or [])}
    flags |= {"threshold": _number_or_word(threshold)}
    flags |= {"structural_features": structural_features, "positions": positions}
    given = read_settings(config, set_ or [], **flags)
    source = choose_source(dataset, store=store, **tables)
    common: dict[str, Any] = {"source": source, "out": folder, "root": root}
    common |= {"resume": resume, "overwrite": overwrite}
    if launched() and not ray:
        from lgcn.workers import connected

        with connected() as others:
            prepared = prepare_in_group(given, others, **common)
            record = _train_here(prepared, quiet or not others.is_first, others)
        if not others.is_first:  # the first one prints
            return
    else:
        prepared = prepare_training(given, **common)
        alone = partial(_train_alone, prepared, quiet)
        record = train_on_ray(prepared, given, group, quiet) if ray else alone()
    record = {key: value for key, value in record.items() if key != "history"}
    metrics = prepared.run.metrics()
    if as_json:
        print_json({**record, "metrics": metrics})
        return
    unit = "node" if metrics is None else metrics.get("unit", "node")
    _print_record(record, unit)
    if metrics is not None:
        print_scores(metrics["splits"], metrics["baselines"], metrics["summary"], unit)
    saved = str(record["out"])
    output = "FOLDER" if record["dataset"] == "partition" else "FILE.csv"
    print_line(f"saved in {saved}; next: lgcn predict {shlex.quote(saved)} --output {output}")
    print_line(f"look at it: lgcn report {shlex.quote(saved)}")


def _train_alone(prepared: "PreparedTraining", quiet: bool) -> dict[str, Any]:
    with ExitStack() as until_done:
        until_done.enter_context(quiet_about_compiling(quiet))
        ahead = first_step_ahead(prepared.source)
        return _train_here(prepared, quiet, before_load=lambda: until_done.enter_context(ahead))


def _train_here(
    prepared: "PreparedTraining",
    quiet: bool,
    workers: "Workers | None" = None,
    before_load: Callable[[], object] | None = None,
) -> dict[str, Any]:
    limits = prepared.settings.optimisation
    with epoch_progress(
        limits.max_epochs,
        limits.patience,
        max_steps=limits.max_steps,
        show=not quiet,
        console=err,
        words="shell",
    ) as progress:
        start = None if progress is None else progress.start
        member = None if quiet else print_member
        return prepared.train(progress, start, member, workers, before_load)


def _class_weight(given: list[str]) -> str | dict[str, float] | None:
    """The setting that the flags --class-weight stand for."""
    if given in (["none"], ["balanced"]):
        return given[0]
    weights: dict[str, float] = {}
    for text in given:
        name, separator, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not separator or not 0 <= weight < math.inf:
            raise UsageError(
                "--class-weight wants balanced, or NAME=NUMBER with a number of at least 0, got "
                f"{text!r:.80}"
            )
        if name in weights:
            raise UsageError(f"--class-weight names the class {name!r:.80} twice")
        weights[name] = weight
    return weights or None


def _number_or_word(text: str | None) -> str | float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _print_record(record: dict[str, Any], unit: str) -> None:
    name = record.get("graph", record["dataset"])  # records of earlier versions have no "graph"
    title = f"{record.get('model', 'lgcn').upper()} on {escape(name)}, seed {record['seed']}"
    table = Table(title=title, title_justify="left")
    table.add_column(escape(record["metric"]))
    table.add_column("score", justify="right")
    metric = record["metric"]
    averaged = "leaderboard" in record
    table.add_row(
        "validation" if averaged else "validation, best epoch",
        metric_text(metric, record["val_score"]),
    )
    test_score = metric_text(metric, record["test_score"])
    title = "test" if averaged else "test, at that epoch"
    table.add_row(f"[bold]{title}[/bold]", f"[bold]{test_score}[/]")
    compared = record["dataset"] not in ("tables", "store") and unit == "node"
    if compared and not averaged:  # else there is nothing to compare with
        table.add_row(
            "[dim]test, the released program's rule (looks at the test set)[/dim]",
            f"[dim]{metric_text(metric, record['test_score_released_rule'])}[/dim]",
        )
    if record.get("test_label_accuracy") is not None:
        table.add_row(
            "[dim]test, share of node-label pairs (not F1)[/dim]",
            f"[dim]{percent(record['test_label_accuracy'])}[/dim]",
        )
    out.print(table)
    if "leaderboard" in record:
        print_leaderboard(record)
    else:
        out.print(
            f"best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:.1f} s, "
            f"{record['parameters']} parameters"
        )
    if "labels_by_validation" in record:
        print_choice(record)
    if record.get("threshold") not in (None, 0.5):
        out.print(f"decision threshold: {record['threshold']:.3f}")
    if record.get("interval") is not None and record["interval"]["half_width"] is not None:
        found = record["interval"]
        out.print(
            f"interval that holds {percent(found['level'])} of new targets: "
            f"prediction ± {found['half_width']:.4g}"
        )
    if "calibration" in record:
        gaps = record["calibration"]
        test = (
            "" if gaps["test_after"] is None else f", {percent(gaps['test_after'])} on test {unit}s"
        )
        out.print(
            f"calibration error at temperature {record['temperature']:.2f}: "
            f"{percent(gaps['val_after'])} on validation {unit}s "
            f"({percent(gaps['val_before'])} without){test}"
        )
