"""Commands on graph stores: generate, import, embed."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import GraphStore, Json, MemoryCeiling, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, out, print_json
from lgcn.cli.runs import TrainedRun
from lgcn.cli.words import flag_names, in_flags
from lgcn.utils.progress import step_progress
from lgcn.utils.sizes import format_memory, parse_memory

StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the graph store.")]
FeatureType = Annotated[
    str, typer.Option(help="How features are stored: float32, float16, bfloat16 or uint8.")
]
Overwrite = Annotated[bool, typer.Option(help="Replace the store that is there.")]


def generate(
    store: StoreFolder,
    nodes: Annotated[int, typer.Option(help="Number of nodes.")],
    edges: Annotated[int, typer.Option(help="Number of undirected edges to draw.")],
    features: Annotated[int, typer.Option(help="Features of a node.")] = 64,
    classes: Annotated[int, typer.Option(help="Number of classes.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes.")] = 0,
    feature_type: FeatureType = "float32",
    memory: Annotated[str, typer.Option(help="Memory that sorting may take.")] = "1GB",
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a random graph of any size, with classes that can be learned, to a store."""
    from lgcn.store.early_checks import generated_sizes

    names = {f"num_{name}": f"--{name}" for name in ("nodes", "edges", "features", "classes")}
    with flag_names(**names, features="--feature-type"), step_progress(err) as on_progress:
        generated_sizes(nodes, edges, features, classes, seed)
        _check_store(store, feature_type, memory, overwrite)
        from lgcn.store.generate import generate_store

        header = generate_store(
            store,
            num_nodes=nodes,
            num_edges=edges,
            num_features=features,
            num_classes=classes,
            seed=seed,
            features=feature_type,  # type: ignore[arg-type]  # checked there
            memory=memory,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    record = {"store": str(store), "nodes": header["num_nodes"], "edges": header["num_edges"] // 2}
    if as_json:
        print_json(record)
        return
    text = f"wrote {record['nodes']:,} nodes and {record['edges']:,} edges to {store}"
    out.print(escape(text), soft_wrap=True)
    next_ = f"next: lgcn train --graph {shlex.quote(str(store))}"
    out.print(escape(next_), soft_wrap=True)


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
    directed: Annotated[
        bool, typer.Option("--directed", help="Only an edge's target learns from its source.")
    ] = False,
    keep_duplicates: Annotated[bool, typer.Option(help="Keep edges that are the same.")] = False,
    keep_self_loops: Annotated[bool, typer.Option(help="Keep edges to the node itself.")] = False,
    memory: Annotated[str, typer.Option(help="Memory the process may take.")] = "2GB",
    skip_bad_rows: Annotated[int, typer.Option(help="Leave out up to so many bad rows.")] = 0,
    feature_type: FeatureType = "float32",
    overwrite: Overwrite = False,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Write edges, and perhaps a node table, that may be larger than memory to a store."""
    from lgcn.tables.early_checks import EDGE_SUFFIXES, check_tables, table_kind

    with flag_names(features="--feature-type"), step_progress(err) as on_progress:
        _check_store(store, feature_type, memory, overwrite)
        for path in (*edges, *(more or [])):
            table_kind(path, "edges", EDGE_SUFFIXES)
        check_tables(None, **{"nodes": None, **tables})
        from lgcn.store.import_store import import_store

        counts = import_store(
            store,
            [*edges, *(more or [])],
            **tables,
            directed=directed,
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
        err.print(f"[yellow]Note:[/yellow] {escape(in_flags(note))}", soft_wrap=True)
    out.print(table)


def embed(
    run: RunFolder,
    output: Annotated[Path, typer.Option(help="File to write, .npy or .parquet.")],
    dataset: OtherDataset = None,
    graph: GraphStore = None,
    layer: Annotated[
        int, typer.Option(help="0: embedding, 1: after the first LGCL, ...; -1: the last.")
    ] = -1,
    memory: MemoryCeiling = None,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Write the embeddings of all nodes after a layer."""
    from lgcn.inference.embeddings import check_output, write_embeddings

    check_output(output)
    if memory is not None:
        parse_memory(memory)
    trained = TrainedRun(run, dataset, root, graph, tables, labels="not read")
    from lgcn.nn.layerwise import layerwise

    model, loaded = trained.model(), trained.graph()
    with step_progress(err) as on_progress:
        found = layerwise(
            model, loaded, layer=layer, memory=memory or "1GB", on_progress=on_progress
        )
        write_embeddings(found, output, node_ids=trained.node_ids(), on_progress=on_progress)
    record = {"output": str(output), "nodes": found.shape[0], "width": found.shape[1]}
    if as_json:
        print_json(record)
        return
    text = f"wrote embeddings of {found.shape[0]} nodes, {found.shape[1]} numbers each, to {output}"
    out.print(escape(text), soft_wrap=True)


def _check_store(store: Path, feature_type: str, memory: str, overwrite: bool) -> None:
    """What can be wrong with a new store whatever goes into it."""
    from lgcn.store.early_checks import check_target, feature_kind

    feature_kind(feature_type)
    parse_memory(memory)
    check_target(store.absolute(), overwrite)
