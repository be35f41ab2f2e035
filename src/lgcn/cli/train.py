"""`lgcn train`: train a model and save it in a run folder."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import GraphStore, Json, Root
from lgcn.cli.output import err, out, percent, print_json, print_line
from lgcn.cli.table_flags import takes_tables
from lgcn.utils.progress import epoch_progress


@takes_tables
def train(
    *,
    dataset: Annotated[
        str | None,
        typer.Option(help="Data set by name or .npz path, see `lgcn data list`. Default: digits."),
    ] = None,
    store: GraphStore = None,
    preset: Annotated[
        str | None, typer.Option(help="A preset; explicit settings override it.")
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
    seed: Annotated[
        int | None, typer.Option(help="Seed of weights, dropout and sub-graphs. Default: 0.")
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
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Train a model on your own tables, a graph store or a data set, and score it."""
    from lgcn.datasets.graph_source import choose_source
    from lgcn.training.prepare import prepare_training, read_settings

    flags = {"preset": preset, "seed": seed, "memory": memory, "max_steps": max_steps}
    prepared = prepare_training(
        read_settings(config, set_ or [], **flags),
        source=choose_source(dataset, store=store, **tables),
        out=folder,
        resume=resume,
        overwrite=overwrite,
        root=root,
    )
    limits = prepared.settings.optimisation
    with epoch_progress(
        limits.max_epochs,
        limits.patience,
        max_steps=limits.max_steps,
        show=not quiet,
        console=err,
        words="shell",
    ) as progress:
        record = prepared.train(progress, None if progress is None else progress.start)
    record = {key: value for key, value in record.items() if key != "history"}
    if as_json:
        print_json(record)
    else:
        _print_record(record)


def _print_record(record: dict[str, Any]) -> None:
    name = record.get("graph", record["dataset"])  # records of earlier versions have no "graph"
    title = f"{record.get('model', 'lgcn').upper()} on {escape(name)}, seed {record['seed']}"
    table = Table(title=title, title_justify="left")
    table.add_column(record["metric"])
    table.add_column("score", justify="right")
    table.add_row("validation, best epoch", percent(record["val_score"]))
    table.add_row("[bold]test, at that epoch[/bold]", f"[bold]{percent(record['test_score'])}[/]")
    if record["dataset"] not in ("tables", "store"):  # there is nothing to compare with
        table.add_row(
            "[dim]test, the released program's rule (looks at the test set)[/dim]",
            f"[dim]{percent(record['test_score_released_rule'])}[/dim]",
        )
    if record.get("test_label_accuracy") is not None:
        table.add_row(
            "[dim]test, share of node-label pairs (not F1)[/dim]",
            f"[dim]{percent(record['test_label_accuracy'])}[/dim]",
        )
    out.print(table)
    out.print(
        f"best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:.1f} s, "
        f"{record['parameters']} parameters"
    )
    if "calibration" in record:
        gaps = record["calibration"]
        test = (
            "" if gaps["test_after"] is None else f", {percent(gaps['test_after'])} on test nodes"
        )
        out.print(
            f"calibration error at temperature {record['temperature']:.2f}: "
            f"{percent(gaps['val_after'])} on validation nodes "
            f"({percent(gaps['val_before'])} without){test}"
        )
    folder = record["out"]
    print_line(f"saved in {folder}; next: lgcn predict {shlex.quote(folder)} --output FILE.csv")
