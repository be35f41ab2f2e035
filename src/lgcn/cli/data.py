"""Commands on data sets: list, info, check, path."""

import sys
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import Json, Root
from lgcn.cli.output import err, out, print_json
from lgcn.cli.tables import both_tables, takes_tables
from lgcn.cli.words import Command, in_flags
from lgcn.errors import UsageError

data_app = typer.Typer(help="The data sets.", no_args_is_help=True)
DatasetName = Annotated[str, typer.Argument(help="Name or .npz path.")]


@data_app.command("list", cls=Command)
def data_list(as_json: Json = False) -> None:
    """The data sets known by name."""
    from lgcn.datasets import dataset_names, describe

    rows = {name: describe(name) for name in dataset_names()}
    if as_json:
        print_json(rows)
        return
    table = Table()
    table.add_column("name")
    table.add_column("what")
    for name, text in rows.items():
        table.add_row(name, text)
    out.print(table)


@data_app.command("info", cls=Command)
def data_info(
    dataset: DatasetName,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Sizes of a data set, or of a graph store."""
    from lgcn.datasets import check_dataset, load_dataset
    from lgcn.store.format import is_store

    if is_store(dataset):  # also one in a folder that has the name of a data set
        name, options = "store", {"path": dataset}
    else:
        name, options = dataset, {}
    check_dataset(name, root, **options)
    graph = load_dataset(name, root, **options)
    from lgcn.graph import SPLITS

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
        "labels": "several per node" if graph.multi_label else "one per node",
        "setting": "inductive" if graph.inductive else "transductive",
    }
    for split in SPLITS:
        mask = graph.mask(split)
        record[f"{split}_nodes"] = 0 if mask is None else int(mask.sum())
    if as_json:
        print_json(record)
        return
    table = Table(show_header=False)
    for key, value in record.items():
        table.add_row(key.replace("_", " "), escape(str(value)))
    out.print(table)


@data_app.command("check", cls=Command)
@takes_tables
def data_check(
    *,
    dataset: Annotated[
        str | None, typer.Option(help="A data set by name or .npz path, instead of own tables.")
    ] = None,
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """What was understood of your tables, or of a data set, and what looks wrong."""
    from lgcn.datasets import check_dataset, load_dataset

    if bool(tables) == (dataset is not None):
        raise UsageError("say what to check: --edges and --nodes, or --dataset")
    tables = both_tables(tables)
    check_dataset(dataset or "tables", root, **tables)
    from lgcn.cli.check_view import render
    from lgcn.datasets.check import check_graph

    if tables:
        from lgcn.tables.from_tables import import_tables

        imported = import_tables(**tables)
        report = check_graph(imported.graph, imported)
    else:
        assert dataset is not None
        report = check_graph(load_dataset(dataset, root))
    # What is said of tables names their flags.
    report = replace(
        report,
        notes=list(map(in_flags, report.notes)),
        warnings=list(map(in_flags, report.warnings)),
    )
    if as_json:
        print_json(report.to_dict())
    else:
        out.print(render(report))


@data_app.command("path", cls=Command)
def data_path(
    dataset: DatasetName,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Where the files of a data set lie."""
    from lgcn.datasets import dataset_files

    files = [str(path) for path in dataset_files(dataset, root)]
    if as_json:
        print_json({"name": dataset, "files": files})
    elif files and sys.stdout.isatty():
        out.print(escape("\n".join(files)), soft_wrap=True)
    elif files:
        print("\n".join(files))  # a program wants them as they are
    else:
        err.print(escape(f"{dataset} needs no files"))
