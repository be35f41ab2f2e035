"""The command line: a thin skin over the library."""

import functools
import os
import shlex
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli import settings as cli_settings
from lgcn.cli import store as cli_store
from lgcn.cli.data import data_app
from lgcn.cli.options import GraphStore, Json, MemoryCeiling, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, out, print_json
from lgcn.cli.runs import Labels, TrainedRun, moved_from, one_source
from lgcn.cli.tables import OF_NEW_TABLES, both_tables, takes_tables
from lgcn.cli.words import Command, in_flags
from lgcn.errors import (
    DataError,
    Interrupted,
    LGCNError,
    TrainingInterrupted,
    UsageError,
    first_line_of,
    ran_out_of_memory,
)
from lgcn.utils.progress import epoch_progress, step_progress
from lgcn.utils.sizes import parse_memory

# Idle OpenMP threads of torch and Numba spin by default, which makes training several times slower
# where another program uses a core. OpenMP reads this when torch is imported, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The library proper (torch, PyG, Numba) is imported inside the commands, and there after all checks
# that need none of it: --help answers at once, and so does a mistake.
app = typer.Typer(
    name="lgcn",
    help="Learnable graph convolutional networks: train, evaluate, predict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.command(cls=Command)(cli_store.generate)
app.command("import", cls=Command)(takes_tables(cli_store.import_, leave_out=("edges", "directed")))
app.command(cls=Command)(takes_tables(cli_store.embed, only=OF_NEW_TABLES))
app.command(cls=Command)(cli_settings.settings)


def main() -> None:
    """Runs the command line; every failure ends in one message and an exit code."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    with _signals() as stopped:
        try:
            app()
        except (Exception, SystemExit) as error:
            done = isinstance(error, SystemExit) and not error.code
            if stopped.is_set() and not isinstance(error, Interrupted) and not done:
                error = Interrupted("stopped")  # whatever the interrupt broke
            if isinstance(error, SystemExit):
                raise
            raise SystemExit(_say(error)) from None


def _say(error: Exception) -> int:
    """Prints what went wrong, in one line; gives the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader has enough, as in `lgcn settings | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, LGCNError | OSError):  # OSError: no permission, a file in the way
        text = str(error)
    elif isinstance(error, RecursionError):
        text = "a file or setting is nested too deeply. Check the files that the command reads"
    elif ran_out_of_memory(error):
        text = f"not enough memory: {first_line_of(error)}. A smaller graph, k or batch needs less"
    elif os.environ.get("LGCN_DEBUG"):
        raise error
    else:
        text = f"internal error, {type(error).__name__}: {first_line_of(error)}. {_report_file()}"
    err.print(f"[red]Error:[/red] {escape(text)}", soft_wrap=True)
    return getattr(error, "exit_code", 1)


def _report_file() -> str:
    """Keeps the traceback of the exception at hand in a file, and says where."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="lgcn-error-", suffix=".txt", delete=False
        ) as file:
            file.write(f"{sys.argv}\n{traceback.format_exc()}")
    except OSError:
        return "This is a bug in lgcn; please report it. LGCN_DEBUG=1 shows where it is"
    return f"This is a bug in lgcn; please report it with {file.name}, which says where it is"


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM end a command in order; a second one ends the program at once.

    Training has handlers of its own, which save its state (:mod:`lgcn.training.loop`).
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def handler(number: int, frame: Any) -> None:
        if stopped.is_set():
            os.write(2, b"Error: stopped\n")
            os._exit(Interrupted.exit_code)
        stopped.set()
        raise KeyboardInterrupt

    # A shell's background jobs ignore Ctrl-C.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield stopped
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _show_warning(message: Warning | str, *where: Any) -> None:
    """What the library warns of is meant for the user, not where in the code it was noticed."""
    err.print(f"[yellow]Note:[/yellow] {escape(in_flags(str(message)))}", soft_wrap=True)


def _version(value: bool) -> None:
    if value:
        from lgcn import __version__

        out.print(f"lgcn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command(cls=Command)
@takes_tables
def train(
    *,
    dataset: Annotated[
        str | None, typer.Option(help="Name or .npz path; see `lgcn data list`. Default: digits.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A preset; explicit settings override it.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file of settings; flags win over it.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting, e.g. --set k=16. Repeatable."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and sub-graphs.")] = None,
    folder: Annotated[
        Path | None, typer.Option("--out", help="Run folder. Default: runs/NAME-seedN.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Resume the run in --out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the run in --out.")] = False,
    graph: GraphStore = None,
    memory: MemoryCeiling = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after so many steps.")] = None,
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Train an LGCN, or a baseline (--preset), on a data set or your own tables, and score it."""
    from lgcn.datasets import DATASETS, check_dataset, load_dataset
    from lgcn.store.format import is_store
    from lgcn.training import Run, Settings
    from lgcn.training.settings import merge_settings

    settings = merge_settings(set_ or [], {} if config is None else Settings.from_toml(config))
    flags = {
        "dataset": dataset,
        "preset": preset,
        "seed": seed,
        "memory": memory,
        "max_steps": max_steps,
    }
    settings |= {key: value for key, value in flags.items() if value is not None}
    one_source(dataset, graph, bool(tables))
    tables = both_tables(tables)
    if dataset is not None and dataset not in DATASETS and is_store(dataset):
        graph = Path(dataset)
    if graph is not None:
        settings |= {"dataset": "store", "dataset_options": {"path": str(graph.absolute())}}
    if tables:
        if "label_column" not in tables:
            raise UsageError("--label-column is missing: the column of --nodes that has the labels")
        settings |= {"dataset": "tables", "dataset_options": tables}

    if resume:
        if folder is None:
            raise UsageError("--resume needs --out, the folder of the run to resume")
        run = Run(folder)
        chosen, _ = run.read()
        before = chosen.flat()
        after = chosen.replace(**settings).flat()
        changed = [key for key in settings if after[key] != before[key]]
        if changed:
            raise UsageError(
                f"--resume keeps the settings of the run; drop {', '.join(changed)} or start a new "
                "run with another --out"
            )
        if run.finished:
            run.tidy()
            _report(run.result(), as_json)
            return
    else:
        chosen = Settings.create(**settings)
        options = chosen.dataset_options
        name = Path(str(options.get("nodes") or options.get("path") or chosen.dataset)).stem
        run = Run(folder if folder is not None else _new_folder(name, chosen.seed))
        if run.holds_work and not overwrite:
            raise UsageError(
                f"{run.folder} already holds a run; choose another --out, resume it with "
                "--resume, or replace it with --overwrite"
            )
    try:
        check_dataset(chosen.dataset, root, **chosen.dataset_options)
    except (DataError, UsageError) as error:
        old_path = moved_from(chosen.dataset, chosen.dataset_options)
        if resume and old_path is not None:
            error.args = (f"{error}. To resume the run, put it back at {old_path}",)
        raise
    loaded = load_dataset(chosen.dataset, root, **chosen.dataset_options)
    from lgcn.training import train as run_training

    limits = chosen.optimisation
    with epoch_progress(limits.max_epochs, limits.patience, console=err) as on_epoch:
        try:
            result = run_training(
                loaded,
                chosen,
                out=run.folder,
                resume=resume,
                overwrite=overwrite,
                on_epoch=on_epoch,
            )
        except KeyboardInterrupt:
            if not run.holds_work:
                raise Interrupted("stopped before the first checkpoint; nothing is kept") from None
            if run.finished and not resume:  # it replaces an older one, and had not begun
                raise Interrupted(f"stopped; the run in {run.folder} is unchanged") from None
            raise TrainingInterrupted(
                f"stopped at once; resume from the last checkpoint with: {run.resume_command}"
            ) from None
    _report(result.record, as_json)


def _new_folder(name: str, seed: int) -> Path:
    """runs/NAME-seedN, with a number behind it where that is taken."""
    base = Path("runs") / f"{name}-seed{seed}"
    folder, number = base, 2
    while folder.exists():
        folder = base.with_name(f"{base.name}-{number}")
        number += 1
    return folder


def _report(record: dict[str, Any], as_json: bool) -> None:
    record = {key: value for key, value in record.items() if key != "history"}
    if as_json:
        print_json(record)
        return
    name = record.get("graph", record["dataset"])  # records of earlier versions have no "graph"
    title = f"{record.get('model', 'lgcn').upper()} on {escape(name)}, seed {record['seed']}"
    table = Table(title=title, title_justify="left")
    table.add_column(record["metric"])
    table.add_column("score", justify="right")
    table.add_row("validation, best epoch", _percent(record["val_score"]))
    table.add_row("[bold]test, at that epoch[/bold]", f"[bold]{_percent(record['test_score'])}[/]")
    if record["dataset"] not in ("tables", "store"):  # there is nothing to compare with
        table.add_row(
            "[dim]test, the released program's rule (looks at the test set)[/dim]",
            f"[dim]{_percent(record['test_score_released_rule'])}[/dim]",
        )
    if record.get("test_label_accuracy") is not None:
        table.add_row(
            "[dim]test, share of node-label pairs (not F1)[/dim]",
            f"[dim]{_percent(record['test_label_accuracy'])}[/dim]",
        )
    out.print(table)
    out.print(
        f"best epoch {record['best_epoch']} of {record['epochs']}, {record['seconds']:.1f} s, "
        f"{record['parameters']} parameters"
    )
    if "calibration" in record:
        gaps = record["calibration"]
        test = (
            "" if gaps["test_after"] is None else f", {_percent(gaps['test_after'])} on test nodes"
        )
        out.print(
            f"probabilities at temperature {record['temperature']:.2f}: off by "
            f"{_percent(gaps['val_after'])} on validation nodes "
            f"({_percent(gaps['val_before'])} before){test}"
        )
    folder = record["out"]
    text = f"saved in {folder}; next: lgcn predict {shlex.quote(folder)} --output FILE.csv"
    out.print(escape(text), soft_wrap=True)


@app.command(cls=Command)
@functools.partial(takes_tables, only=OF_NEW_TABLES)
def evaluate(
    run: RunFolder,
    dataset: OtherDataset = None,
    graph: GraphStore = None,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Score a trained model on the training, validation and test nodes, or on another graph."""
    trained = TrainedRun(run, dataset, root, graph, tables, labels="needed")
    from lgcn.graph import SPLITS
    from lgcn.training import evaluate as run_evaluation
    from lgcn.training.metrics import metric_name

    model, loaded, spec = trained.model(), trained.graph(), trained.spec
    scores = run_evaluation(model, loaded.separate(), SPLITS)
    if not scores:
        raise UsageError(f"{loaded.name} has no labelled nodes to score")
    record = {"dataset": loaded.name, "metric": metric_name(spec.multi_label), "run": str(run)}
    if as_json:
        print_json({**record, "splits": scores})
        return
    table = Table(title=escape(f"{run} on {loaded.name}"), title_justify="left")
    for column in ("split", "nodes", record["metric"], "loss"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for split, values in scores.items():
        table.add_row(
            split, str(values["nodes"]), _percent(values["score"]), f"{values['loss']:.4f}"
        )
    out.print(table)


@app.command(cls=Command)
@functools.partial(takes_tables, only=OF_NEW_TABLES)
def predict(
    run: RunFolder,
    output: Annotated[
        Path, typer.Option(help="File to write, .csv, .tsv or .parquet; replaced if it exists.")
    ],
    dataset: OtherDataset = None,
    graph: GraphStore = None,
    memory: MemoryCeiling = None,
    abstain_below: Annotated[
        float | None,
        typer.Option(help="Predict nothing where the confidence is lower, e.g. 0.8."),
    ] = None,
    unlabelled_only: Annotated[
        bool, typer.Option(help="Write only nodes that have no label.")
    ] = False,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            help="In .csv and .tsv, put a ' before ids and labels that a spreadsheet would run as "
            "formulas: those that start with = + - @ and are no numbers. "
            "--no-spreadsheet-safe and .parquet have them as they are."
        ),
    ] = True,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Write label, confidence and class probabilities of every node to a table."""
    from lgcn.inference.predictions import check_output, prediction_blocks, write_predictions
    from lgcn.utils.files import is_stream

    check_output(output)
    if as_json and is_stream(output):
        raise UsageError(f"--json cannot go with --output {output}: both would be one stream")
    if abstain_below is not None:
        from lgcn.utils.numbers import real_number

        real_number("abstain_below", abstain_below, 0, 1)
    if memory is not None:
        parse_memory(memory)
    labels: Labels = "if there" if unlabelled_only else "not read"
    trained = TrainedRun(run, dataset, root, graph, tables, labels=labels)
    from lgcn.inference import predict as run_prediction
    from lgcn.nn.layerwise import layerwise

    model, loaded, spec = trained.model(), trained.graph(), trained.spec
    temperature = trained.folder.temperature()
    names = spec.label_names or tuple(str(i) for i in range(spec.num_classes))
    with step_progress(err) as on_progress:
        if memory is None:
            scores = run_prediction(model, loaded)
        else:
            scores = layerwise(model, loaded, memory=memory, on_progress=on_progress)
        blocks = prediction_blocks(
            scores,
            names,
            node_ids=trained.node_ids(),
            nodes=loaded.unlabelled() if unlabelled_only else None,
            on_progress=on_progress,
            multi_label=spec.multi_label,
            temperature=temperature,
            abstain_below=abstain_below,
        )
        written = write_predictions(blocks, output, spreadsheet_safe=spreadsheet_safe)
    if written.protected:
        err.print(
            f"[yellow]Note:[/yellow] {written.protected} ids or labels got a ' in front, so that "
            "no spreadsheet takes them for formulas; --no-spreadsheet-safe leaves them as they are",
            soft_wrap=True,
        )
    record = {"output": str(output), "nodes": written.nodes, "abstained": written.abstained}
    if as_json:
        print_json({**record, "classes": list(names)})
        return
    silent = f", {written.abstained} of them left open" if abstain_below is not None else ""
    told = err if is_stream(output) else out  # which may be where the predictions went
    told.print(escape(f"wrote {written.nodes} predictions to {output}{silent}"), soft_wrap=True)


@app.command(cls=Command)
def warmup(as_json: Json = False) -> None:
    """Compile all kernels now, which takes minutes, so that no training waits for it."""
    from lgcn.training.warmup import warmup as run_warmup

    with step_progress(err) as on_step:
        done = run_warmup(on_step=on_step)
    if as_json:
        print_json(done._asdict())
        return
    table = Table("kernel")
    for column in ("compiled", "from the cache"):
        table.add_column(column, justify="right")
    for name in sorted({*done.compiled, *done.cached}):
        counts = (len(found.get(name, ())) for found in (done.compiled, done.cached))
        table.add_row(name, *map(str, counts))
    out.print(table)
    if not done.folders:
        out.print(
            f"{done.seconds:.1f} s; nothing is kept: set NUMBA_CACHE_DIR to a folder that can be "
            "written to"
        )
        return
    out.print(f"{done.seconds:.1f} s; kept in", *map(escape, done.folders), sep="\n")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


if __name__ == "__main__":
    main()
