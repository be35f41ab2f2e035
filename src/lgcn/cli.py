"""The command line: a thin skin over the library."""

import csv
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lgcn.errors import LGCNError, TrainingInterrupted, UsageError

# Idle OpenMP threads of torch and Numba spin by default, which makes training several times slower
# where another program uses a core. OpenMP reads this when torch is imported, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Results go to standard output, everything said on the way to standard error. The library proper
# (torch, PyG, Numba) is imported inside the commands, so that --help answers at once.
out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

app = typer.Typer(
    name="lgcn",
    help="Learnable graph convolutional networks: train, evaluate, predict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="The data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the data files. Default: $LGCN_DATA, then the cache folder."),
]
DatasetName = Annotated[str, typer.Argument(help="Name or .npz path.")]
OtherDataset = Annotated[
    str | None, typer.Option(help="Another data set than the run was trained on.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `lgcn train` wrote.")]


def main() -> None:
    """Runs the command line; every expected failure ends in one message and an exit code."""
    try:
        app()
    except (LGCNError, OSError) as error:  # OSError: a full disk, no permission, a file in the way
        err.print(f"[red]Error:[/red] {escape(str(error))}", soft_wrap=True)
        raise SystemExit(getattr(error, "exit_code", 1)) from None


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
def train(
    dataset: Annotated[
        str | None, typer.Option(help="Name or .npz path; see `lgcn data list`. Default: digits.")
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
        Path | None, typer.Option("--out", help="Run folder. Default: runs/DATASET-seedN.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with the run in --out.")] = False,
    overwrite: Annotated[bool, typer.Option(help="Replace the run in --out.")] = False,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Train an LGCN and report its score on the test nodes."""
    from lgcn.data import load_dataset
    from lgcn.training import Config, Run
    from lgcn.training import train as run_training
    from lgcn.training.config import merge_settings

    settings = {} if config is None else Config.from_toml(config)
    for key, value in merge_settings(set_ or []).items():
        if isinstance(value, dict) and isinstance(settings.get(key), dict):
            value = {**settings[key], **value}
        settings[key] = value
    settings |= {k: v for k, v in (("dataset", dataset), ("seed", seed)) if v is not None}

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
        run = Run(folder if folder is not None else _new_folder(chosen.dataset, chosen.seed))
        if run.started and not overwrite:
            raise UsageError(
                f"{run.folder} already holds a run; choose another --out, go on with it by "
                "--resume, or replace it by --overwrite"
            )
    graph = load_dataset(chosen.dataset, root, **chosen.dataset_options)
    with _progress(chosen.max_epochs, chosen.patience) as on_epoch:
        try:
            result = run_training(graph, chosen, out=run.folder, resume=resume, on_epoch=on_epoch)
        except KeyboardInterrupt:  # the second one; typer would end without a word
            raise TrainingInterrupted(
                f"stopped at once; go on from the last checkpoint with: {run.resume_command}"
            ) from None
    _report(result.record, as_json)


def _new_folder(dataset: str, seed: int) -> Path:
    """runs/DATASET-seedN, with a number behind it where that is taken."""
    base = Path("runs") / f"{Path(dataset).stem}-seed{seed}"
    folder, number = base, 2
    while folder.exists():
        folder = base.with_name(f"{base.name}-{number}")
        number += 1
    return folder


@contextmanager
def _progress(max_epochs: int, patience: int) -> Iterator[Any]:
    """A progress bar on a terminal, silence elsewhere."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("epoch {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=max_epochs)

        def on_epoch(state: Any) -> None:
            # Early stopping bounds what is left: the time shown is at most that.
            last = min(max_epochs, max(state.best_epoch, 1) + patience)
            text = ""
            if state.history:
                now = state.history[-1]
                text = (
                    f"loss {now['train_loss']:.3f}  validation {now['val_score']:.3f} "
                    f"(best {state.best_val_score:.3f})"
                )
            bar.update(task, completed=state.epoch, total=last, description=text)

        yield on_epoch


def _report(record: dict[str, Any], as_json: bool) -> None:
    record = {key: value for key, value in record.items() if key != "history"}
    if as_json:
        _print_json(record)
        return
    title = f"LGCN on {escape(record['dataset'])}, seed {record['seed']}"
    table = Table(title=title, title_justify="left")
    table.add_column(record["metric"])
    table.add_column("score", justify="right")
    table.add_row("validation, best epoch", _percent(record["val_score"]))
    table.add_row("[bold]test, at that epoch[/bold]", f"[bold]{_percent(record['test_score'])}[/]")
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
    folder = escape(record["out"])
    out.print(f"saved in {folder}; next: lgcn predict {folder} --output FILE.csv", soft_wrap=True)


@app.command()
def evaluate(
    run: RunFolder,
    dataset: OtherDataset = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Score a trained model on the training, validation and test nodes."""
    from lgcn.graph import SPLITS
    from lgcn.sampling import separate
    from lgcn.training import evaluate as run_evaluation
    from lgcn.training.metrics import metric_name

    model, graph, spec = _load(run, dataset, root)
    scores = run_evaluation(model, separate(graph), SPLITS)
    record = {"dataset": graph.name, "metric": metric_name(spec.multi_label), "run": str(run)}
    if as_json:
        _print_json({**record, "splits": scores})
        return
    table = Table(title=escape(f"{run} on {graph.name}"), title_justify="left")
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
    output: Annotated[Path, typer.Option(help="CSV file to write, replaced if it exists.")],
    dataset: OtherDataset = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Write predicted label and class probabilities of every node to a CSV file."""
    from lgcn.inference import predict as run_prediction
    from lgcn.training.metrics import probabilities

    if output.is_dir():
        raise UsageError(f"--output must be a file, got the folder {output}")
    model, graph, spec = _load(run, dataset, root)
    chances = probabilities(run_prediction(model, graph), spec.multi_label)
    names = spec.label_names or tuple(str(i) for i in range(spec.num_classes))
    nodes = range(graph.num_nodes) if graph.node_ids is None else graph.node_ids.tolist()
    _write_predictions(output, nodes, names, chances.tolist(), spec.multi_label)
    record = {"output": str(output), "nodes": graph.num_nodes, "classes": list(names)}
    if as_json:
        _print_json(record)
    else:
        out.print(escape(f"wrote {graph.num_nodes} predictions to {output}"), soft_wrap=True)


def _write_predictions(
    path: Path, nodes: Any, names: tuple[str, ...], rows: list[list[float]], multi_label: bool
) -> None:
    from lgcn.files import atomic

    with atomic(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["node", "predicted", *(f"probability_{name}" for name in names)])
        for node, chances in zip(nodes, rows, strict=True):
            if multi_label:  # several labels in one cell
                predicted = ";".join(n for n, p in zip(names, chances, strict=True) if p > 0.5)
            else:
                predicted = names[max(range(len(chances)), key=chances.__getitem__)]
            writer.writerow([node, predicted, *(f"{p:.6g}" for p in chances)])


def _load(run: Path, dataset: str | None, root: Path | None) -> tuple[Any, Any, Any]:
    """The model of a run and the graph to use it on."""
    from lgcn.data import load_dataset
    from lgcn.training import Run

    model, config, spec = Run(run).load_model()
    options = config.dataset_options if dataset in (None, config.dataset) else {}
    graph = load_dataset(dataset or config.dataset, root, **options)
    spec.check(graph)
    return model, graph, spec


@app.command()
def settings(as_json: Json = False) -> None:
    """The settings that --set and config files take, with their defaults."""
    from lgcn.training import Config

    rows = {key: (value, doc) for key, value, doc in Config.describe()}
    if as_json:
        _print_json({key: {"default": value, "what": doc} for key, (value, doc) in rows.items()})
        return
    table = Table("setting", "default", "what")
    for key, (value, doc) in rows.items():
        table.add_row(key, "none" if value is None else escape(str(value)), escape(doc))
    out.print(table)


@app.command()
def warmup(as_json: Json = False) -> None:
    """Compile all kernels now, which takes minutes, so that no training waits for it."""
    from lgcn.warmup import warmup as run_warmup

    with _step_bar() as on_step:
        done = run_warmup(on_step=on_step)
    if as_json:
        _print_json(done._asdict())
        return
    table = Table("kernel")
    for column in ("compiled", "from the cache"):
        table.add_column(column, justify="right")
    for name in sorted({*done.compiled, *done.cached}):
        counts = (len(found.get(name, ())) for found in (done.compiled, done.cached))
        table.add_row(name, *map(str, counts))
    out.print(table)
    out.print(f"{done.seconds:.1f} s; kept in", *map(escape, done.folders), sep="\n")


@contextmanager
def _step_bar() -> Iterator[Any]:
    """A progress bar with a text for each step on a terminal, silence elsewhere."""
    if not err.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (MofNCompleteColumn(), BarColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda text, number, total: bar.update(
            task, completed=number, total=total, description=text
        )


@data_app.command("list")
def data_list(as_json: Json = False) -> None:
    """The data sets known by name."""
    from lgcn.data import dataset_names, describe

    rows = {name: describe(name) for name in dataset_names()}
    if as_json:
        _print_json(rows)
        return
    table = Table()
    table.add_column("name")
    table.add_column("what")
    for name, text in rows.items():
        table.add_row(name, text)
    out.print(table)


@data_app.command("info")
def data_info(
    dataset: DatasetName,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Sizes of a data set."""
    from lgcn.data import load_dataset
    from lgcn.graph import SPLITS

    graph = load_dataset(dataset, root)
    degree = graph.rowptr.diff()
    record: dict[str, Any] = {
        "name": graph.name,
        "graphs": graph.num_graphs,
        "nodes": graph.num_nodes,
        "undirected_edges": graph.num_edges // 2,
        "mean_degree": round(graph.num_edges / max(graph.num_nodes, 1), 2),
        "largest_degree": int(degree.max()) if graph.num_nodes else 0,
        "isolated_nodes": int((degree == 0).sum()),
        "features": graph.num_features,
        "classes": graph.num_classes,
        "labels": "several a node" if graph.multi_label else "one a node",
        "setting": "inductive" if graph.inductive else "transductive",
    }
    for split in SPLITS:
        mask = graph.mask(split)
        record[f"{split}_nodes"] = 0 if mask is None else int(mask.sum())
    if as_json:
        _print_json(record)
        return
    table = Table(show_header=False)
    for key, value in record.items():
        table.add_row(key.replace("_", " "), escape(str(value)))
    out.print(table)


@data_app.command("path")
def data_path(
    dataset: DatasetName,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Where the files of a data set lie."""
    from lgcn.data import dataset_files

    files = [str(path) for path in dataset_files(dataset, root)]
    if as_json:
        _print_json({"name": dataset, "files": files})
    elif files:
        print("\n".join(files))
    else:
        err.print(escape(f"{dataset} needs no files"))


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")


if __name__ == "__main__":
    main()
