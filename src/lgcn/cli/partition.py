"""`lgcn partition`: cut a graph store into parts, one for each worker."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import Json, StoreFolder
from lgcn.cli.output import err, out, percent, print_json, print_line
from lgcn.utils.progress import step_progress
from lgcn.utils.sizes import format_memory

MOST_ROWS = 40  # of the table of parts


def partition(
    store: StoreFolder,
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the partition.")],
    parts: Annotated[int, typer.Option(help="Number of parts.")],
    method: Annotated[
        str | None,
        typer.Option(
            help="metis: fewest edges between parts. ldg: a stream, for graphs beyond memory. "
            "hash: at random. Default: metis if it fits in the memory, else ldg."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same parts.")] = 0,
    memory: Annotated[str, typer.Option(help="Memory that the process may use.")] = "2GB",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the partition if it exists.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Cut a graph store into parts for several workers, each with the neighbours it needs."""
    from lgcn.partition.new_partition_checks import check_new_partition

    with step_progress(err) as on_progress:
        check_new_partition(
            store,
            folder,
            parts,
            method=method,
            seed=seed,
            memory=memory,
            overwrite=overwrite,
        )
        from lgcn.partition import write_partition

        made = write_partition(
            store,
            folder,
            parts,
            method=method,
            seed=seed,
            memory=memory,
            overwrite=overwrite,
            on_progress=on_progress,
        )
    record = summary(made)
    if as_json:
        print_json({"partition": str(folder), **record})
        return
    print_partition(str(folder), made["name"], record)
    print_line(f"took {record['seconds']:.1f} s and {format_memory(record['peak_memory'])}")
    named = shlex.quote(str(folder))
    print_line(
        f"with several workers: torchrun --nproc-per-node {parts} -m lgcn train --graph {named}"
    )
    print_line(f"next: lgcn train --graph {named}")


def summary(header: dict[str, Any]) -> dict[str, Any]:
    """What a partition is like, from the content of its `partition.json`.

    Args:
        header: It may have `seconds` and `peak_memory` as well.
    """
    ways = 1 if header["directed"] else 2  # entries per edge
    return {
        "method": header["method"],
        "parts": header["num_parts"],
        "nodes": header["num_nodes"],
        "edges": header["num_edges"] // ways,
        "cut_edges": header["cut"] // ways,
        "cut_share": header["cut"] / max(1, header["num_edges"]),
        "halo": header["halo"],
        "halo_share": header["halo"] / header["num_nodes"],
        "balance": header["balance"],
        "train_balance": header["train_balance"],
        "shards": [
            {key: part[key] for key in ("owned", "halo", "entries", "cut", "train")}
            for part in header["parts"]
        ],
        **{key: header[key] for key in ("seconds", "peak_memory") if key in header},
    }


def print_partition(folder: str, name: str, record: dict[str, Any]) -> None:
    """Prints what `summary` returned.

    Args:
        folder: Of the partition.
        name: The name of the graph.
        record: The summary.
    """
    about = Table(title=escape(folder), title_justify="left", show_header=False)
    trained = record["train_balance"]
    for row in (
        ("graph", escape(name)),
        ("method", record["method"]),
        ("parts", f"{record['parts']:,}"),
        ("nodes", f"{record['nodes']:,}"),
        ("edges", f"{record['edges']:,}"),
        ("edges between parts", f"{record['cut_edges']:,} ({percent(record['cut_share'])})"),
        ("halo nodes", f"{record['halo']:,} ({percent(record['halo_share'])} of the nodes)"),
        ("largest part", f"{record['balance']:.2f} times the average"),
        (
            "most training nodes",
            "there are none" if trained is None else f"{trained:.2f} times the average",
        ),
    ):
        about.add_row(*row)
    out.print(about)
    table = Table("part", "nodes", "halo", "training nodes", "entries", "to the halo")
    for column in table.columns:
        column.justify = "right"
    shards = record["shards"]
    for number, shard in enumerate(shards[:MOST_ROWS]):
        numbers = (shard[key] for key in ("owned", "halo", "train", "entries", "cut"))
        table.add_row(str(number), *(f"{value:,}" for value in numbers))
    out.print(table)
    if len(shards) > MOST_ROWS:
        print_line(f"and {len(shards) - MOST_ROWS:,} more parts")
