"""The flags for a user's own tables, shared by the commands that read tables."""

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

PANEL = "Your own tables"
Columns = list[str] | None
Files = list[str] | None
_FLAGS_OF_TWO = ("header", "node_header")  # false is a value


def _option(help_: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help_, metavar=metavar, rich_help_panel=PANEL)


def _column(help_: str) -> Any:
    return _option(help_, metavar="COLUMN")


# The flags for new tables of a trained model: where they are and how their columns are called. How
# to split them, and which columns are features, was decided in training.
OF_NEW_TABLES = (
    "edges",
    "nodes",
    "label_column",
    "label_separator",
    "id_column",
    "source_column",
    "target_column",
    "weight_column",
    "decimal",
    "date_order",
    "na_values",
    "unknown_nodes",
    "delimiter",
    "encoding",
    "header",
    "node_header",
    "features",
    "graphs",
    "graph_column",
    "fold",
    "target",
)
# Those for whole graphs.
OF_WHOLE_GRAPHS = ("graphs", "graph_column", "fold", "target")


def _flags(
    *,
    edges: Annotated[
        Files,
        _option(
            "Edge table: .csv, .tsv, .txt, .jsonl, .parquet, .npz or .mtx; `none` for a graph "
            "without edges. Repeatable; 'part-*.csv' in quotes is all files that match.",
            metavar="FILE",
        ),
    ] = None,
    nodes: Annotated[
        Files,
        _option("Node table, one row per node: id, label, features. As --edges.", metavar="FILE"),
    ] = None,
    features: Annotated[
        Files,
        _option(
            "More features: a table of node, feature and value, or a matrix (.npz, .mtx) in the "
            "order of the node table.",
            metavar="FILE",
        ),
    ] = None,
    graphs: Annotated[
        Files,
        _option(
            "Predict whole graphs: a set in TU's layout by name, folder or .zip; with --edges, a "
            "table with one row per graph.",
            metavar="NAME|FILE",
        ),
    ] = None,
    graph_column: Annotated[
        str | None,
        _column(
            "With --graphs and --edges: column of the graph's id in all tables. Default: graph."
        ),
    ] = None,
    fold: Annotated[
        int | None, _option("With --graphs: number of a published split. Default: a random split.")
    ] = None,
    target: Annotated[
        int | None,
        _option(
            "With --graphs: which number of a TU set with several to predict, from 0. "
            "Default: the only one."
        ),
    ] = None,
    label_column: Annotated[
        Columns, _column("Column of the labels. Repeat it for several 0/1 columns, one per label.")
    ] = None,
    label_separator: Annotated[
        str | None,
        _option("Separates several labels in one cell, such as ';'. Default: one label per cell."),
    ] = None,
    task: Annotated[
        str | None,
        _option(
            "What numbers in the label column are: regression predicts them, classification takes "
            "each for a class. Default: auto, which asks if in doubt.",
        ),
    ] = None,
    id_column: Annotated[
        str | None, _column("Column of the node ids. Default: id, node, node_id, or the first.")
    ] = None,
    source_column: Annotated[
        str | None, _column("Column where edges start. Default: source, src, from, or the first.")
    ] = None,
    target_column: Annotated[
        str | None, _column("Column where edges end. Default: target, dst, to, or the second.")
    ] = None,
    weight_column: Annotated[
        str | None, _column("Column of the edge weights. Default: all 1.")
    ] = None,
    edge_columns: Annotated[
        Columns,
        _column(
            "A column of the edge table that is a feature of the edges, for --set model=residual. "
            "Repeatable."
        ),
    ] = None,
    directed: Annotated[
        bool, _option("Only an edge's target learns from its source.", "--directed")
    ] = False,
    sample_weight_column: Annotated[
        str | None, _column("Column with each node's weight in the training loss. Default: all 1.")
    ] = None,
    split_column: Annotated[
        str | None, _column("Column that says train, val or test. Default: a random split.")
    ] = None,
    labels_per_class: Annotated[
        int | None, _option("Random split with this many training nodes per class.")
    ] = None,
    val: Annotated[
        float | None, _option("Share of labelled nodes for validation. Default: 0.2.")
    ] = None,
    test: Annotated[
        float | None, _option("Share of labelled nodes for test. Default: 0.2.")
    ] = None,
    split_seed: Annotated[int | None, _option("Seed of the random split. Default: 0.")] = None,
    numeric_columns: Annotated[Columns, _column("A feature column of numbers. Repeatable.")] = None,
    categorical_columns: Annotated[
        Columns, _column("A feature column of categories. Repeatable.")
    ] = None,
    text_columns: Annotated[Columns, _column("A feature column of text. Repeatable.")] = None,
    list_columns: Annotated[
        Columns, _column("A feature column of lists such as a;b;c. Repeatable.")
    ] = None,
    ignore_columns: Annotated[
        Columns, _column("A column that is not a feature. Repeatable.")
    ] = None,
    decimal: Annotated[
        str | None,
        _option("Decimal separator of numbers in text: auto, '.' or ','. Default: auto."),
    ] = None,
    date_order: Annotated[
        str | None,
        _option("Order of dates such as 7/8/2022: auto, dmy, mdy or ymd. Default: auto."),
    ] = None,
    na_values: Annotated[
        Columns,
        _option(
            "A word that means a missing value, beside NA, ?, - ... Repeatable.", metavar="WORD"
        ),
    ] = None,
    unknown_nodes: Annotated[
        str | None,
        _option("What to do with edges to unknown nodes: error or drop. Default: error."),
    ] = None,
    delimiter: Annotated[
        str | None,
        _option("Delimiter of text files; `whitespace` for runs of blanks. Default: detected."),
    ] = None,
    encoding: Annotated[str | None, _option("Encoding of text files. Default: utf-8.")] = None,
    header: Annotated[
        bool | None,
        _option(
            "Whether text files of edges have a line of column names. Without it, columns are "
            "called 1, 2, ... Default: detected.",
            "--header/--no-header",
        ),
    ] = None,
    node_header: Annotated[
        bool | None,
        _option(
            "The same for text files of nodes. Default: they have one.",
            "--node-header/--no-node-header",
        ),
    ] = None,
) -> None:
    """The flags that `takes_tables` adds, with the names of lgcn.from_tables."""


def takes_tables(
    command: Callable[..., None],
    *,
    only: Collection[str] | None = None,
    leave_out: Collection[str] = (),
) -> Callable[..., None]:
    """Adds the flags above to a command, which gets those that were set as a dict `tables`.

    Args:
        command: The command.
        only: The flags to add. (default: all)
        leave_out: Flags not to add. (default: none)
    """
    every = inspect.signature(_flags).parameters
    flags = {n: every[n] for n in (every if only is None else only) if n not in leave_out}

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        tables = {name: given.pop(name) for name in flags}
        command(**given, tables=_given(tables))

    own = inspect.signature(command)
    kept = [parameter for name, parameter in own.parameters.items() if name != "tables"]
    parameters = [*kept, *flags.values()]
    # typer reads the flags from both.
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that were set, as arguments of lgcn.from_tables; zero is a value."""
    given = {
        name: value
        for name, value in flags.items()
        if value not in (None, []) and (value is not False or name in _FLAGS_OF_TWO)
    }
    for table in ("edges", "nodes", "features", "graphs"):
        if table in given:
            files = [Path(file) for file in given[table]]
            given[table] = files[0] if len(files) == 1 else files
    if given.get("edges") == Path("none") and not Path("none").exists():
        given["edges"] = None
    return given
