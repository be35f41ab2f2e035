"""`lgcn partition`: time and memory for 100 million edges, and how much each method cuts.

python -m benchmarks.partition [--out FILE] [--edges MILLIONS] [--store FOLDER] [--work FOLDER]
                               [--quick]

The large graph has one node per ten edges and 64 features. Each method cuts it into 8 parts in a
process of its own. Memory is what is in no mapped file, and time includes checking the store,
writing, syncing and hashing the shards. Processor time is that of the process alone, which other
load on the machine changes less. Real graphs come from $LGCN_DATA.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, write

REAL = ("amazon_computers", "coauthor_cs", "pubmed", "wordnet31", "debian_bookworm")
PARTS = (2, 4, 8)
METHODS = ("metis", "ldg", "hash")
FEATURES = 64


def lgcn(*arguments: object) -> dict[str, Any]:
    """The record that a command prints, and the processor time that it took."""
    command = [sys.executable, "-m", "lgcn", *map(str, arguments), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"lgcn {arguments[0]} failed")
    return {**json.loads(text), "processor_seconds": usage.ru_utime + usage.ru_stime}


def cut(store: Path, folder: Path, parts: int, method: str) -> dict[str, Any]:
    """Partitions a store, and keeps what was measured."""
    record = lgcn("partition", store, folder, "--parts", parts, "--method", method)
    written = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    shutil.rmtree(folder)
    kept = ("cut_share", "halo_share", "balance", "train_balance", "seconds", "processor_seconds")
    return {
        "method": method,
        "parts": parts,
        **{key: record[key] for key in kept},
        "peak_megabytes": record["peak_memory"] / 1e6,
        "written_megabytes": written / 1e6,
    }


def large(work: Path, num_edges: int, store: Path | None) -> dict[str, Any]:
    """Every method that fits on a generated graph."""
    if store is None:
        store = work / "large"
        sizes = ("--nodes", num_edges // 10, "--edges", num_edges, "--features", FEATURES)
        lgcn("generate", store, *sizes)
    header = json.loads((store / "header.json").read_text())
    found = [cut(store, work / "parts", 8, method) for method in METHODS[1:]]
    return {"nodes": header["num_nodes"], "edges": header["num_edges"] // 2, "cuts": found}


def real(work: Path, name: str, parts: tuple[int, ...]) -> dict[str, Any]:
    """Every method on a data set."""
    from lgcn import load_dataset, write_store

    graph = load_dataset(name)
    write_store(work / name, graph)
    found = [cut(work / name, work / "parts", p, method) for p in parts for method in METHODS]
    shutil.rmtree(work / name)
    return {
        "dataset": name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges // 2,
        "cuts": found,
    }


def main() -> None:
    parser = make_parser("partition", __doc__)
    parser.add_argument("--edges", type=int, default=100, metavar="MILLIONS")
    parser.add_argument("--store", type=Path, help="a large store that exists, to save time")
    parser.add_argument(
        "--work", type=Path, help="folder for the stores (default: a temporary one)"
    )
    add_quick(parser)
    arguments = parser.parse_args()
    record: dict[str, Any] = {"machine": machine()}
    load, cores = record["machine"]["load"], record["machine"]["cores"]
    if load > 1.5 * cores:
        record["note"] = (
            f"Other programs used the machine at the same time: load {load} on {cores} cores when "
            "the benchmark started. Seconds would be fewer on an idle machine."
        )
    with tempfile.TemporaryDirectory(dir=arguments.work) as folder:
        work = Path(folder)
        if arguments.quick:
            record["real"] = [real(work, "digits", (2,))]
            record["large"] = large(work, 3000, arguments.store)
        else:
            record["real"] = [real(work, name, PARTS) for name in REAL]
            record["large"] = large(work, arguments.edges * 10**6, arguments.store)
    write(arguments.out, "cpu", record)


if __name__ == "__main__":
    main()
