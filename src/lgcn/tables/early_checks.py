"""Checks of a user's arguments about tables that need none of their rows: files, columns, choices.

Nothing here imports torch, and Arrow is imported only to see columns, so that the command line can
report a mistake at once.
"""

from __future__ import annotations

import fnmatch
import glob
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lgcn.errors import DataError, UsageError
from lgcn.tables.cell_options import CellOptions

TEXT = (".csv", ".tsv", ".txt", ".jsonl", ".ndjson", ".mtx")  # also with .gz
JSON = (".jsonl", ".ndjson")
SUFFIXES = (*TEXT, ".parquet", ".npz")
NODE_SUFFIXES = tuple(suffix for suffix in SUFFIXES if suffix != ".mtx")
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
OF_FEATURES = ("numeric_columns", "categorical_columns", "text_columns", "list_columns")
OF_EDGES = ("source_column", "target_column", "weight_column", "edge_columns")


def is_path(source: Any) -> bool:
    """Whether a table is given as a path, a pattern such as `part-*.csv`, or several of these."""
    if isinstance(source, list | tuple):
        return bool(source) and all(isinstance(path, str | Path) for path in source)
    return isinstance(source, str | Path)


def table_files(source: Any, role: str) -> list[Path]:
    """The files of a table; of a pattern, those that match, sorted by name.

    Args:
        source: See `is_path`.
        role: What the table is called: "edges", "nodes" or "features".
    """
    found: list[Path] = []
    for given in source if isinstance(source, list | tuple) else [source]:
        path = Path(given).expanduser()
        if not glob.has_magic(path.name) or os.path.exists(path):  # noqa: PTH110
            found.append(path)
            continue
        # In one folder only, since the path may come from a file that a stranger wrote.
        names = os.listdir(path.parent) if path.parent.is_dir() else []  # noqa: PTH208
        matching = sorted(name for name in names if fnmatch.fnmatchcase(name, path.name))
        if not matching:
            raise DataError(f"{role}: no file matches {path}. Check the path")
        found += [path.parent / name for name in matching]
    twice = [path for path, count in Counter(found).items() if count > 1]
    if twice:
        raise UsageError(f"{role}: the file {twice[0]} is given twice. Give each file once")
    return found


def table_kind(path: str | Path, role: str, suffixes: Sequence[str] = SUFFIXES) -> str:
    """The ending of a table's file without `.gz`, if it is one of `suffixes` and exists.

    Args:
        path: The file.
        role: What the table is called: "edges", "nodes" or "features".
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
    if not os.path.isfile(path):  # noqa: PTH113  # of Path, a name too long is an OSError
        there = "is a folder" if path.is_dir() else "does not exist"
        raise DataError(f"{role}: the file {path} {there}. Check the path")
    return kind


def suffixes_of(role: str) -> Sequence[str]:
    """The endings that the files of a table may have: nodes are no matrix."""
    return NODE_SUFFIXES if role in ("nodes", "graphs") else SUFFIXES


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
    given = ("decimal", "date_order", "na_values")
    CellOptions(**{key: options[key] for key in given if key in options})
    features = options.get("features")
    kinds = {
        role: {table_kind(path, role, suffixes_of(role)) for path in table_files(files, role)}
        for role, files in (("nodes", nodes), ("edges", edges), ("features", features))
        if is_path(files)
    }
    from lgcn.tables.open_table import open_table  # imports Arrow

    fitted = () if options.get("encoder") is not None else OF_FEATURES
    for role, source, arguments in (
        ("nodes", nodes, (*OF_NODES, *fitted)),
        ("edges", edges, OF_EDGES),
        ("features", features, ()),
    ):
        # The columns of these files are known when all of the file is read.
        if role not in kinds or kinds[role] & {".npz", ".mtx"}:
            continue
        _check_columns(open_table(source, role, **text_format(options, role)), options, arguments)


def check_graph_tables(edges: Any, graphs: Any, nodes: Any = None, **options: Any) -> None:
    """Raises an error for files that do not exist, and for columns that they do not have.

    Args:
        edges, graphs, nodes, **options: See `lgcn.graphs_from_tables`. Only paths are checked.
    """
    check_task(options.get("task", "auto"))
    given = ("decimal", "date_order", "na_values")
    CellOptions(**{key: options[key] for key in given if key in options})
    if edges is None and nodes is None:
        raise UsageError("edges and nodes must not both be None: graphs need nodes")
    of_graphs = ("label_column", "split_column", "sample_weight_column")
    fitted = () if options.get("encoder") is not None else OF_FEATURES
    tables = {
        "graphs": (graphs, ("graph_column", *of_graphs)),
        "nodes": (nodes, ("graph_column", "id_column", "ignore_columns", *fitted)),
        "edges": (edges, (*(("graph_column",) if nodes is None else ()), *OF_EDGES)),
    }
    kinds = {
        role: {table_kind(path, role, suffixes_of(role)) for path in table_files(files, role)}
        for role, (files, _) in tables.items()
        if is_path(files)
    }
    from lgcn.tables.open_table import open_table  # imports Arrow

    named = {"graph_column": "graph", **options}
    for role in kinds:
        source, arguments = tables[role]
        if not kinds[role] & {".npz", ".mtx"}:
            _check_columns(open_table(source, role, **text_format(options, role)), named, arguments)


def _check_columns(table: Any, options: Mapping[str, Any], arguments: Sequence[str]) -> None:
    """Raises an error if an argument names a column that the table lacks."""
    for argument in arguments:
        named = options.get(argument) or ()
        for column in [named] if isinstance(named, str) else named:
            table.column(argument, column)


def text_format(options: Mapping[str, Any], role: str) -> dict[str, Any]:
    """The options of a table's text files among those of a graph, for `open_table`."""
    found = {key: options[key] for key in ("delimiter", "encoding") if key in options}
    header = {"edges": "header", "nodes": "node_header"}.get(role, "")
    return {**found, "header": options.get(header)}
