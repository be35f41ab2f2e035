"""Reading two CSV files as a graph: time and memory, compared with reading the files.

python -m benchmarks.tables [--out FILE] [--repeats N] [--quick]

1 million nodes with 16 numbers and a label, 10 million edges, with integer ids and with strings.
The baseline is ``pyarrow.csv.read_csv`` of both files, where the import starts. Each measurement is
its own process, and the two take turns. Each begins with a tiny import, so that loading compiled
kernels is not counted. Peak memory is what the process needs beyond that, divided by the bytes of
the arrays of the graph.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks._common import add_quick, machine, make_parser, peak_megabytes, write

NODES, EDGES, FEATURES = 1_000_000, 10_000_000, 16
LABELS = ("red", "green", "blue", "black", "white")
VARIANTS = ("import", "pyarrow")
AIM_SECONDS, AIM_MEMORY = 3.0, 3.0  # ratios: time to pyarrow, memory to the arrays


def write_files(folder: Path, kind: str, num_nodes: int, num_edges: int) -> None:
    """Writes nodes.csv, edges.csv and the same with 200 nodes for the warm-up."""
    import pyarrow as pa
    import pyarrow.csv

    def ids(numbers: Any) -> Any:
        return pa.array(numbers if kind == "integer" else np.char.add("user_", numbers.astype(str)))

    rng = np.random.default_rng(0)
    for prefix, n, e in (("", num_nodes, num_edges), ("tiny_", 200, 1000)):
        features = {f"f{i}": rng.standard_normal(n).round(4) for i in range(FEATURES)}
        label = np.array(LABELS)[rng.integers(0, len(LABELS), n)]
        nodes = pa.table({"id": ids(rng.permutation(n)), "label": label, **features})
        pyarrow.csv.write_csv(nodes, folder / f"{prefix}nodes.csv")
        ends = {name: ids(rng.integers(0, n, e)) for name in ("source", "target")}
        pyarrow.csv.write_csv(pa.table(ends), folder / f"{prefix}edges.csv")


def run_import(folder: Path, prefix: str = "") -> Any:
    from lgcn.tables.from_tables import import_tables

    files = (folder / f"{prefix}{name}.csv" for name in ("edges", "nodes"))
    return import_tables(*files, label_column="label").graph


def run_pyarrow(folder: Path, prefix: str = "") -> Any:
    import pyarrow.csv

    return [pyarrow.csv.read_csv(folder / f"{prefix}{name}.csv") for name in ("edges", "nodes")]


def array_megabytes(graph: Any) -> float:
    """All arrays of the graph, including the string objects in ``node_ids``."""
    names = ("rowptr", "col", "x", "y", "train_mask", "val_mask", "test_mask", "node_ids")
    size = sum(getattr(graph, name).nbytes for name in names)
    if graph.node_ids.dtype == object:
        size += sum(map(sys.getsizeof, graph.node_ids))
    return float(size / 1e6)


def measure_here(variant: str, folder: Path) -> dict[str, float]:
    """One measurement, in its own process."""
    run = run_import if variant == "import" else run_pyarrow
    run(folder, "tiny_")
    result: list[Any] = []

    def timed() -> None:
        start = time.perf_counter()
        graph = run(folder)
        result.extend([time.perf_counter() - start, graph])

    peak = peak_megabytes(timed, "cpu")
    seconds, graph = result
    if variant == "pyarrow":
        return {"seconds": seconds, "peak_megabytes": peak}
    return {
        "seconds": seconds,
        "peak_megabytes": peak,
        "array_megabytes": array_megabytes(graph),
        "entries": graph.num_edges,
    }


def measure(kind: str, num_nodes: int, num_edges: int, repeats: int) -> dict[str, Any]:
    runs: dict[str, list[dict[str, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, kind, num_nodes, num_edges)
        megabytes = {f: (folder / f"{f}.csv").stat().st_size / 1e6 for f in ("nodes", "edges")}
        for _ in range(repeats):
            for variant in VARIANTS:
                command = [sys.executable, "-m", "benchmarks.tables", "--measure", variant, name]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                runs[variant].append(json.loads(done.stdout))
    seconds = {v: statistics.median(run["seconds"] for run in runs[v]) for v in VARIANTS}
    peak = {v: statistics.median(run["peak_megabytes"] for run in runs[v]) for v in VARIANTS}
    arrays = runs["import"][0]["array_megabytes"]
    return {
        "ids": kind,
        "nodes": num_nodes,
        "edges": num_edges,
        "entries": runs["import"][0]["entries"],
        "features": FEATURES,
        "file_megabytes": megabytes,
        "seconds": seconds,
        "times_pyarrow": seconds["import"] / seconds["pyarrow"],
        "peak_megabytes": peak,
        "array_megabytes": arrays,
        "times_arrays": peak["import"] / arrays,
        "all_seconds": {v: [run["seconds"] for run in runs[v]] for v in VARIANTS},
    }


def main() -> None:
    parser = make_parser("tables", __doc__)
    parser.add_argument("--repeats", type=int, default=5)
    add_quick(parser)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        variant, folder = arguments.measure
        print(json.dumps(measure_here(variant, Path(folder))))
        return
    num_nodes, num_edges = (2000, 10_000) if arguments.quick else (NODES, EDGES)
    results = []
    for kind in ("integer", "string"):
        repeats = 1 if arguments.quick else arguments.repeats
        result = measure(kind, num_nodes, num_edges, repeats)
        results.append(result)
        print(
            f"{kind} ids: {result['seconds']['import']:.2f} s, {result['times_pyarrow']:.2f} times "
            f"as long as pyarrow; peak {result['peak_megabytes']['import']:.0f} MB, "
            f"{result['times_arrays']:.2f} times the arrays ({result['array_megabytes']:.0f} MB)",
            flush=True,
        )
    aims = {"times_pyarrow": AIM_SECONDS, "times_arrays": AIM_MEMORY}
    write(arguments.out, "cpu", {"machine": machine(), "aims": aims, "results": results})


if __name__ == "__main__":
    main()
