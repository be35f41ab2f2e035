"""Checks of a user's arguments about tables that need none of their rows: files, columns, choices.

Nothing here imports torch, and Arrow is imported only to see columns, so that the command line can
report a mistake at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lgcn.errors import DataError, UsageError

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".npz")
EDGE_SUFFIXES = (*SUFFIXES, ".npy")  # of edges for a store
BINARY = (".parquet", ".npz", ".npy")

# What numbers in the label column are: to be found out, classes, or numbers to predict.
TASKS = ("auto", "classification", "regression")

# The arguments that name columns, of the node table and of the edge table.
OF_NODES = (
    "id_column",
    "label_column",
    "sample_weight_column",
    "split_column",
    "ignore_columns",
)
OF_FEATURES = ("numeric_columns", "categorical_columns", "text_columns")
OF_EDGES = ("source_column", "target_column", "weight_column")


def table_kind(path: str | Path, role: str, suffixes: Sequence[str] = SUFFIXES) -> str:
    """The ending of a table's file without `.gz`, if it is one of `suffixes` and exists.

    Args:
        path: The file.
        role: What the table is called: "edges" or "nodes".
        suffixes: The endings it may have. (default: those of all tables)
    """
    path = Path(path).expanduser()
    suffix = path.with_suffix("").suffix + path.suffix if path.suffix == ".gz" else path.suffix
    kind = suffix.lower().removesuffix(".gz")
    if kind not in suffixes or (kind in BINARY and suffix.lower() != kind):
        raise UsageError(
            f"{role}: {path} must end in one of {', '.join(suffixes)} (text files also in .gz), "
            f"got {path.suffix or 'no ending'}. Rename the file or save it in one of these formats"
        )
    if not path.is_file():
        there = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{role}: the file {path} {there}. Check the path")
    return kind


def check_unknown_nodes(value: Any) -> None:
    if value not in ("error", "drop"):
        raise UsageError(f"unknown_nodes must be 'error' or 'drop', got {value!r}")


def check_task(value: Any) -> None:
    if value not in TASKS:
        raise UsageError(f"task must be one of {', '.join(TASKS)}, got {value!r:.80}")


def check_tables(edges: Any, nodes: Any, **options: Any) -> None:
    """Raises an error for files that do not exist, and for columns that they do not have.

    Args:
        edges, nodes, **options: See `lgcn.from_tables`. Only paths are checked.
    """
    check_unknown_nodes(options.get("unknown_nodes", "error"))
    check_task(options.get("task", "auto"))
    kinds = {
        role: table_kind(path, role)
        for role, path in (("nodes", nodes), ("edges", edges))
        if isinstance(path, str | Path)
    }
    from lgcn.tables.open_table import open_table  # imports Arrow

    format_ = {key: options[key] for key in ("delimiter", "encoding") if key in options}
    fitted = () if options.get("encoder") is not None else OF_FEATURES
    for role, path, arguments in (
        ("nodes", nodes, (*OF_NODES, *fitted)),
        ("edges", edges, OF_EDGES),
    ):
        if kinds.get(role, ".npz") == ".npz":  # its columns are known when all of it is read
            continue
        table = open_table(path, role, **format_)
        for argument in arguments:
            named = options.get(argument) or ()
            for column in [named] if isinstance(named, str) else named:
                table.column(argument, column)
