"""`lgcn import`: write tables of any size to a graph store."""

import functools
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import FeatureType, Json, OverwriteStore, StoreFolder
from lgcn.cli.output import err, out, print_json, print_note
from lgcn.cli.table_flags import OF_WHOLE_GRAPHS, takes_tables
from lgcn.cli.words import flag_names, in_flags
from lgcn.utils.progress import step_progress
from lgcn.utils.sizes import format_memory


@functools.partial(takes_tables, leave_out=("edges", "edge_columns", *OF_WHOLE_GRAPHS))
def import_(
    *,
    store: StoreFolder,
    more: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="More edge files.")
    ] = None,
    edges: Annotated[
        list[Path],
        typer.Option(help="Edge file: CSV, TSV, Parquet, NPZ or .npy; several may follow."),
    ],
    keep_duplicates: Annotated[
        bool, typer.Option("--keep-duplicates", help="Keep edges that occur several times.")
    ] = False,
    keep_self_loops: Annotated[
        bool, typer.Option("--keep-self-loops", help="Keep edges from a node to itself.")
    ] = False,
    memory: Annotated[str, typer.Option(help="Memory that the process may use.")] = "2GB",
    skip_bad_rows: Annotated[int, typer.Option(help="Skip up to this many bad rows.")] = 0,
    feature_type: FeatureType = "float32",
    overwrite: OverwriteStore = False,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Write an edge table, and a node table if you have one, of any size to a graph store."""
    from lgcn.store.new_store_checks import check_import

    files = [*edges, *(more or [])]
    if "features" in tables:  # of the store's options, that is how they are stored
        tables["node_features"] = tables.pop("features")
    with flag_names(features="--feature-type"), step_progress(err) as on_progress:
        check_import(store, files, feature_type, memory, overwrite, **tables)
        from lgcn.store.import_store import import_store

        counts = import_store(
            store,
            files,
            **tables,
            keep_duplicates=keep_duplicates,
            keep_self_loops=keep_self_loops,
            memory=memory,
            skip_bad_rows=skip_bad_rows,
            features=feature_type,  # type: ignore[arg-type]  # checked there
            overwrite=overwrite,
            on_progress=on_progress,
        )
    if as_json:
        print_json({"store": str(store), **counts})
        return
    table = Table(title=escape(str(store)), title_justify="left", show_header=False)
    shown = {**counts, "peak_memory": format_memory(counts["peak_memory"])}
    for key, value in shown.items():
        if isinstance(value, str):
            table.add_row(key.replace("_", " "), value)
        elif isinstance(value, int | float):
            table.add_row(key.replace("_", " "), f"{value:,.{0 if isinstance(value, int) else 1}f}")
    for note in counts.get("notes", ()):
        print_note(in_flags(note))
    out.print(table)
