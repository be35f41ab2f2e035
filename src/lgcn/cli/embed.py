"""`lgcn embed`: write the node embeddings of a trained model."""

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.cli.options import GraphStore, Json, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, print_json, print_line
from lgcn.cli.parts import on_parts
from lgcn.cli.table_flags import OF_NEW_TABLES, takes_tables
from lgcn.cli.words import flag_names
from lgcn.utils.progress import step_progress


@functools.partial(takes_tables, only=OF_NEW_TABLES)
def embed(
    run: RunFolder,
    output: Annotated[
        Path,
        typer.Option(
            help="File to write: .npy or .parquet. Replaced if it exists. For a graph in parts, a "
            "folder, with one Parquet file per part."
        ),
    ],
    dataset: OtherDataset = None,
    store: GraphStore = None,
    layer: Annotated[
        int,
        typer.Option(help="0 is the embedding layer, 1 the first LGCL, and so on; -1 is the last."),
    ] = -1,
    memory: Annotated[
        str, typer.Option(help="Memory that inference on the graph may use.")
    ] = "1GB",
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Write the embedding of every node after a layer."""
    from lgcn.inference.trained_run import load_run

    chosen: dict[str, Any] = {"layer": layer, "memory": memory}
    with flag_names(path="--output"), step_progress(err) as on_progress:
        trained = load_run(run)
        with on_parts(trained, "embed", dataset, store, tables) as parts:
            if parts is not None:
                rows, width = parts.write_embeddings(output, on_progress=on_progress, **chosen)
                if not parts.workers.is_first:
                    return
            else:
                rows, width = trained.write_embeddings(
                    output,
                    on_progress=on_progress,
                    dataset=dataset,
                    store=store,
                    root=root,
                    **chosen,
                    **tables,
                )
    unit = trained.spec.unit
    if as_json:
        print_json({"output": str(output), f"{unit}s": rows, "width": width})
    else:
        print_line(f"wrote embeddings of {rows} {unit}s, {width} numbers each, to {output}")
