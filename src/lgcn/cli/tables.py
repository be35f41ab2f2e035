"""The flags that name a user's own tables, shared by the commands that read them."""

import functools
import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.errors import UsageError

PANEL = "Your own tables"
Columns = list[str] | None


def _option(help_: str, **more: Any) -> Any:
    return typer.Option(help=help_, rich_help_panel=PANEL, **more)


# What a trained model can be told of tables: where they are and what their columns are called. How
# to split them, and which columns are features, is of training.
OF_NEW_TABLES = (
    "edges",
    "nodes",
    "label_column",
    "label_separator",
    "id_column",
    "source_column",
    "target_column",
    "weight_column",
    "unknown_nodes",
    "delimiter",
    "encoding",
)


def _flags(
    *,
    edges: Annotated[
        Path | None,
        _option("Edge table: CSV, TSV, Parquet or NPZ; `none` for a graph without edges."),
    ] = None,
    nodes: Annotated[
        Path | None, _option("Node table, one row per node: id, label, features.")
    ] = None,
    label_column: Annotated[
        Columns, _option("Column of the labels; repeat it for 0/1 columns, one a label.")
    ] = None,
    label_separator: Annotated[
        str | None, _option("Between labels in a cell, where a node can have several.")
    ] = None,
    id_column: Annotated[
        str | None, _option("Ids of the nodes. Default: id, node, node_id, or the first.")
    ] = None,
    source_column: Annotated[
        str | None, _option("Where an edge starts. Default: source, src, from, or the first.")
    ] = None,
    target_column: Annotated[
        str | None, _option("Where an edge ends. Default: target, dst, to, or the second.")
    ] = None,
    weight_column: Annotated[str | None, _option("Weights of the edges. Default: all 1.")] = None,
    directed: Annotated[bool, _option("Only an edge's target learns from its source.")] = False,
    split_column: Annotated[
        str | None, _option("Column that says train, val or test. Default: a random split.")
    ] = None,
    labels_per_class: Annotated[
        int | None, _option("Random split with so many training nodes of each class.")
    ] = None,
    val: Annotated[
        float | None, _option("Share of labelled nodes for validation. Default: 0.2.")
    ] = None,
    test: Annotated[
        float | None, _option("Share of labelled nodes for test. Default: 0.2.")
    ] = None,
    split_seed: Annotated[int | None, _option("Seed of a random split. Default: 0.")] = None,
    numeric_columns: Annotated[Columns, _option("A feature column of numbers. Repeatable.")] = None,
    categorical_columns: Annotated[
        Columns, _option("A feature column of categories. Repeatable.")
    ] = None,
    text_columns: Annotated[Columns, _option("A feature column of text. Repeatable.")] = None,
    ignore_columns: Annotated[Columns, _option("A column that is no feature. Repeatable.")] = None,
    unknown_nodes: Annotated[
        str | None, _option("Edges that name unknown nodes: error or drop. Default: error.")
    ] = None,
    delimiter: Annotated[str | None, _option("Of text files. Default: found out.")] = None,
    encoding: Annotated[str | None, _option("Of text files. Default: utf-8.")] = None,
) -> None:
    """What :func:`takes_tables` adds; the names are those of lgcn.from_tables."""


def takes_tables(
    command: Callable[..., None],
    *,
    only: Collection[str] | None = None,
    leave_out: Collection[str] = (),
) -> Callable[..., None]:
    """Gives a command the flags above; it gets what was set as a dict ``tables``.

    Args:
        command: The command.
        only: The flags that it gets. (default: all)
        leave_out: Flags that it has itself, or not at all. (default: none)
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
    # typer reads both to find the flags.
    wrapper.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return wrapper


def _given(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags that were set; zero is a value."""
    return {
        name: value
        for name, value in flags.items()
        if value not in (None, []) and value is not False
    }


def both_tables(tables: dict[str, Any]) -> dict[str, Any]:
    """The options, with absolute paths, if they name both tables or nothing."""
    if not tables:
        return {}
    for missing, other in (("nodes", "edges"), ("edges", "nodes")):
        if missing not in tables:
            named = other if other in tables else next(iter(tables))
            raise UsageError(
                f"--{named.replace('_', '-')} needs --{missing} too: edges and nodes are two "
                "tables, and --nodes has every node that --edges names. For a graph without "
                "edges, give --edges none"
            )
    return tables | _paths(tables["edges"], tables["nodes"])


def _paths(edges: Path, nodes: Path) -> dict[str, Any]:
    """Absolute, so that a run can be resumed and used from any folder."""
    no_edges = str(edges) == "none" and not edges.exists()
    return {
        "edges": None if no_edges else str(edges.absolute()),
        "nodes": str(nodes.absolute()),
    }
