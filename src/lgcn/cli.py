"""The command line: a thin skin over the library."""

import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from lgcn import cli_reproduce, cli_store
from lgcn.cli_data import data_app
from lgcn.cli_options import GraphStore, Json, MemoryCeiling, Root
from lgcn.cli_output import err, exhausted, out, print_json
from lgcn.cli_tables import Edges, Nodes, table_paths, takes_tables
from lgcn.errors import LGCNError, TrainingInterrupted, UsageError
from lgcn.progress import epoch_progress, step_progress

# Idle OpenMP threads of torch and Numba spin by default, which makes training several times slower
# where another program uses a core. OpenMP reads this when torch is imported, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The library proper (torch, PyG, Numba) is imported inside the commands, so that --help answers at
# once.
app = typer.Typer(
    name="lgcn",
    help="Learnable graph convolutional networks: train, evaluate, predict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.command()(cli_store.generate)
app.command("import")(takes_tables(cli_store.import_, leave_out=("edges", "directed")))
app.command()(cli_store.embed)
app.command()(cli_reproduce.reproduce)

OtherDataset = Annotated[
    str | None, typer.Option(help="Another data set than the run was trained on.")
]
Labels = Literal["needed", "if there", "not read"]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `lgcn train` wrote.")]


def main() -> None:
    """Runs the command line; every expected failure ends in one message and an exit code."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    try:
        app()
    except (LGCNError, OSError) as error:  # OSError: a full disk, no permission, a file in the way
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise SystemExit(getattr(error, "exit_code", 1)) from None
    except (MemoryError, RuntimeError) as error:
        message = exhausted(error)
        if message is None:
            raise
        err.print(f"[red]Error:[/red] {escape(message)}", soft_wrap=True)
        raise SystemExit(1) from None


def _show_warning(message: Warning | str, *where: Any) -> None:
    """What the library warns of is meant for the user, not where in the code it was noticed."""
    err.print(f"[yellow]Note:[/yellow] {escape(str(message))}", soft_wrap=True)


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


@app.command()
@takes_tables
def train(
    *,
    dataset: Annotated[
        str | None, typer.Option(help="Name or .npz path; see `lgcn data list`. Default: digits.")
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(help="Settings that belong together: paper, released, gcn, gat, ..."),
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
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the run in --out.")] = False,
    graph: GraphStore = None,
    memory: MemoryCeiling = None,
    max_steps: Annotated[int | None, typer.Option(help="Stop after so many steps.")] = None,
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Train an LGCN, or a rival (--recipe), on a data set or your own tables, and score it."""
    from lgcn.data import load_dataset
    from lgcn.training import Config, Run
    from lgcn.training import train as run_training
    from lgcn.training.config import merge_settings

    settings = {} if config is None else Config.from_toml(config)
    for key, value in merge_settings(set_ or []).items():
        if isinstance(value, dict) and isinstance(settings.get(key), dict):
            value = {**settings[key], **value}
        settings[key] = value
    flags = {
        "dataset": dataset,
        "recipe": recipe,
        "seed": seed,
        "memory": memory,
        "max_steps": max_steps,
    }
    settings |= {key: value for key, value in flags.items() if value is not None}
    _one_source(dataset, graph, bool(tables))
    if graph is not None:
        settings |= {"dataset": "store", "dataset_options": {"path": str(graph.absolute())}}
    if tables:
        if "label_column" not in tables:
            raise UsageError("--label-column is missing: the column of --nodes that has the labels")
        settings |= {"dataset": "tables", "dataset_options": tables}

    if resume:
        if folder is None:
            raise UsageError("--resume needs --out, the folder of the run to go on with")
        run = Run(folder)
        chosen, _ = run.read()
        before = chosen.to_dict()
        after = Config.create(**{**before, **settings}).to_dict()
        changed = [key for key in settings if after[key] != before[key]]
        if changed:
            raise UsageError(
                f"--resume keeps the settings of the run; drop {', '.join(changed)} or start a new "
                "run with another --out"
            )
        if run.finished:
            _report(run.result(), as_json)
            return
    else:
        chosen = Config.create(**settings)
        options = chosen.dataset_options
        name = Path(str(options.get("nodes") or options.get("path") or chosen.dataset)).stem
        run = Run(folder if folder is not None else _new_folder(name, chosen.seed))
        if run.started and not overwrite:
            raise UsageError(
                f"{run.folder} already holds a run; choose another --out, go on with it by "
                "--resume, or replace it by --overwrite"
            )
    loaded = load_dataset(chosen.dataset, root, **chosen.dataset_options)
    with epoch_progress(chosen.max_epochs, chosen.patience, console=err) as on_epoch:
        try:
            result = run_training(
                loaded,
                chosen,
                out=run.folder,
                resume=resume,
                overwrite=overwrite,
                on_epoch=on_epoch,
            )
        except KeyboardInterrupt:  # the second one; typer would end without a word
            raise TrainingInterrupted(
                f"stopped at once; go on from the last checkpoint with: {run.resume_command}"
            ) from None
    _report(result.record, as_json)


def _one_source(dataset: str | None, graph: Path | None, tables: bool) -> None:
    """There is one graph to work on."""
    given = {"--dataset": dataset is not None, "--graph": graph is not None}
    given["your own --edges and --nodes"] = tables
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"give one of {' and '.join(named)}, not both")


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
    folder = escape(record["out"])
    out.print(f"saved in {folder}; next: lgcn predict {folder} --output FILE.csv", soft_wrap=True)


@app.command()
def evaluate(
    run: RunFolder,
    dataset: OtherDataset = None,
    graph: GraphStore = None,
    edges: Edges = None,
    nodes: Nodes = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Score a trained model on the training, validation and test nodes, or on another graph."""
    from lgcn.graph import SPLITS
    from lgcn.sampling import separate
    from lgcn.training import evaluate as run_evaluation
    from lgcn.training.metrics import metric_name

    model, loaded, spec, _ = load_run(run, dataset, root, graph, edges, nodes, labels="needed")
    scores = run_evaluation(model, separate(loaded), SPLITS)
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


@app.command()
def predict(
    run: RunFolder,
    output: Annotated[
        Path, typer.Option(help="File to write, .csv, .tsv or .parquet; replaced if it exists.")
    ],
    dataset: OtherDataset = None,
    graph: GraphStore = None,
    edges: Edges = None,
    nodes: Nodes = None,
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
) -> None:
    """Write label, confidence and class probabilities of every node to a table."""
    from lgcn.files import is_stream
    from lgcn.inference import predict as run_prediction
    from lgcn.layerwise import layerwise
    from lgcn.predictions import check_output, prediction_blocks, write_predictions
    from lgcn.training import Run

    check_output(output)
    labels: Labels = "if there" if unlabelled_only else "not read"
    trained = Run(run)
    model, loaded, spec, node_ids = load_run(
        trained, dataset, root, graph, edges, nodes, labels=labels
    )
    temperature = trained.temperature()
    names = spec.label_names or tuple(str(i) for i in range(spec.num_classes))
    with step_progress(err) as on_progress:
        if memory is None:
            scores = run_prediction(model, loaded)
        else:
            scores = layerwise(model, loaded, memory=memory, on_progress=on_progress)
        blocks = prediction_blocks(
            scores,
            names,
            node_ids=node_ids,
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


def load_run(
    run: Any,
    dataset: str | None,
    root: Path | None,
    store: Path | None,
    edges: Path | None,
    nodes: Path | None,
    *,
    labels: Labels,
) -> tuple[Any, Any, Any, Any]:
    """The model of a run, the graph to use it on, the model's specification, and the nodes' ids.

    ``run`` is its folder, or a Run that is read more of. ``labels`` says what new tables must have.
    """
    from lgcn.data import load_dataset
    from lgcn.training import Run

    trained = run if isinstance(run, Run) else Run(run)
    run = trained.folder
    model, config, spec = trained.load_model()
    options = dict(config.dataset_options) if dataset in (None, config.dataset) else {}
    name = dataset or config.dataset
    _one_source(dataset, store, edges is not None or nodes is not None)
    if store is not None:
        name, options = "store", {"path": str(store.absolute())}
    if edges is not None or nodes is not None:
        if edges is None or nodes is None:
            raise UsageError("new tables are two: give both --edges and --nodes")
        if name != "tables":  # the options of a store say nothing of tables
            name, options = "tables", {}
        options = _for_new_tables(options | table_paths(edges, nodes), labels)
    if name == "tables":
        encoder = trained.encoder()
        if encoder is None:
            raise UsageError(
                f"{run} was not trained on tables, so it cannot read any; predict a data set by "
                "--dataset, or a graph in Python by LGCNClassifier.load"
            )
        if "nodes" not in options:
            raise UsageError(f"{run} does not name its tables; give --edges and --nodes")
        options |= {"encoder": encoder, "label_names": spec.label_names}
    graph = load_dataset(name, root, **options)
    spec.check(graph)
    if edges is not None and labels == "needed":
        known = ~graph.unlabelled()
        graph = replace(graph, train_mask=None, val_mask=None, test_mask=known, _derived={})
    return model, graph, spec, cli_store.node_ids(graph, options.get("path"))


def _for_new_tables(options: dict[str, Any], labels: Labels) -> dict[str, Any]:
    """What a run's options say of tables that it was not trained on: not how to split them."""
    from lgcn.data.tables.files import open_table

    dropped = ["split_column", "labels_per_class", "val", "test", "split_seed"]
    if labels == "if there":
        format_ = {key: options[key] for key in ("delimiter", "encoding") if key in options}
        columns = open_table(options["nodes"], "nodes", **format_).columns
        wanted = options.get("label_column", [])
        wanted = [wanted] if isinstance(wanted, str) else wanted
        labels = "needed" if set(wanted) <= set(columns) else "not read"
    if labels == "not read":
        dropped += ["label_column", "label_separator"]
    return {key: value for key, value in options.items() if key not in dropped}


@app.command()
def settings(
    dataset: Annotated[
        str | None, typer.Option(help="Those of this data set; `tables` is any graph of your own.")
    ] = None,
    recipe: Annotated[str | None, typer.Option(help="Those of this recipe.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="With this one, e.g. --set labels=many."),
    ] = None,
    as_json: Json = False,
) -> None:
    """The settings that --set and config files take, with their defaults."""
    from lgcn.data import describe
    from lgcn.training import Config
    from lgcn.training.config import merge_settings

    if dataset is not None:
        describe(dataset)  # a name that is wrong has no settings
    flags = {"dataset": dataset, "recipe": recipe}
    given = merge_settings(set_ or [])
    given |= {key: value for key, value in flags.items() if value is not None}
    values = (Config.create(**given) if given else Config()).to_dict()
    if as_json:
        print_json({key: {"default": values[key], "what": doc} for key, doc in Config.describe()})
        return
    table = Table("setting", "default", "what")
    for key, doc in Config.describe():
        value = values[key]
        table.add_row(key, "none" if value is None else escape(str(value)), escape(doc))
    out.print(table)
    if not given:
        out.print("Recipes and data sets change some: lgcn settings --dataset tables")


@app.command()
def warmup(as_json: Json = False) -> None:
    """Compile all kernels now, which takes minutes, so that no training waits for it."""
    from lgcn.warmup import warmup as run_warmup

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
    out.print(f"{done.seconds:.1f} s; kept in", *map(escape, done.folders), sep="\n")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


if __name__ == "__main__":
    main()
