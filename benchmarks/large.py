"""Graphs of 1, 10 and 100 million edges: generate, import, train, predict, each in bounded memory.

python -m benchmarks.large [--out FILE] [--sizes 1 10 100] [--work FOLDER] [--quick]

One node per ten edges, 64 features, 10 classes. Every step is its own process, and its peak of
anonymous memory (RssAnon: everything but mapped files) is read from the operating system while it
runs. "base" is what the program holds after its imports. The import reads the edges from CSV and
the nodes from Parquet. The baselines hold the graph in memory: one epoch of PyG's GCN and of an
LGCN on the whole graph. They are left out if they would need more than --baseline-memory.
"""

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, write
from lgcn.utils.memory import PeakMemory, anonymous_memory

FEATURES, CLASSES, K = 64, 10, 8
CEILING = {"import": "4GB", "predict": "3GB"}
STEPS = ("generate", "import", "train", "predict")
BASELINES = ("GCN, whole graph in memory", "LGCN, whole graph in memory")
# Anonymous bytes per edge of an epoch in memory, measured at one million edges.
BASELINE_BYTES = {BASELINES[0]: 730, BASELINES[1]: 530}
MODEL = {"hidden_channels": 32, "lgcl_channels": 8, "num_layers": 1, "k": K, "lr": 0.01}


def generate(work: Path, num_edges: int) -> dict[str, Any]:
    from lgcn.store.generate import generate_store

    header = generate_store(
        work / "store",
        num_nodes=num_edges // 10,
        num_edges=num_edges,
        num_features=FEATURES,
        num_classes=CLASSES,
        overwrite=True,
    )
    return {"count": header["num_edges"] // 2, "of": "edges"}


def export(work: Path) -> None:
    """Writes the store as files for the import; not measured."""
    import numpy as np
    import pyarrow as pa
    import torch
    from pyarrow import csv, parquet

    from lgcn.store.open_store import open_store

    graph = open_store(work / "store", verify=False).graph
    assert graph.x is not None
    assert graph.y is not None
    schema = pa.schema([("source", pa.int32()), ("target", pa.int32())])
    with csv.CSVWriter(work / "edges.csv", schema) as file:
        for start in range(0, graph.num_nodes, 100_000):
            rows = graph.adjacency_rows(
                start, min(start + 100_000, graph.num_nodes), normalize=False, self_loops=False
            )
            target = start + torch.repeat_interleave(rows.rowptr.diff().long())
            once = target < rows.col
            ends = (rows.col[once].int(), target[once].int())
            file.write_table(pa.table([end.numpy() for end in ends], schema=schema))
    writer = None
    for start in range(0, graph.num_nodes, 100_000):
        stop = min(start + 100_000, graph.num_nodes)
        columns = {"id": np.arange(start, stop), "label": graph.y[start:stop].numpy()}
        rows_ = graph.features(slice(start, stop)).numpy()
        columns |= {f"f{i}": rows_[:, i] for i in range(FEATURES)}
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(work / "nodes.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def import_(work: Path, num_edges: int) -> dict[str, Any]:
    from lgcn.store.import_store import import_store

    counts = import_store(
        work / "imported",
        [work / "edges.csv"],
        work / "nodes.parquet",
        label_column="label",
        memory=CEILING["import"],
        overwrite=True,
    )
    return {"count": counts["edges"], "of": "edges"}


def train(work: Path, num_edges: int) -> dict[str, Any]:
    from lgcn.store.open_store import open_store
    from lgcn.training import Settings
    from lgcn.training import train as run_training

    graph = open_store(work / "store", verify=False).graph
    settings = Settings.create(
        dataset="store",
        training="subgraph",
        evaluate_on="sampled",
        max_steps=200,
        **MODEL,
    )
    with PeakMemory() as memory:
        peaks: list[int] = []  # until the last epoch: the exact scores of all nodes come after it
        record = run_training(
            graph, settings, out=work / "run", on_epoch=lambda state: peaks.append(memory.peak)
        ).record
    found = {key: value for key, value in record.items() if key.endswith("_per_second")}
    found |= {"test_score": record["test_score"], "steps_peak_megabytes": peaks[-1] / 1e6}
    return {"count": 200, "of": "steps", "steps_seconds": record["seconds"], **found}


def predict(work: Path, num_edges: int) -> dict[str, Any]:
    from lgcn.inference.predictions import prediction_blocks, write_predictions
    from lgcn.nn.layerwise import layerwise
    from lgcn.store.open_store import open_store
    from lgcn.training import Run

    store = open_store(work / "store", verify=False)
    model, _, spec = Run(work / "run").load_model()
    scores = layerwise(model, store.graph, memory=CEILING["predict"], scratch=work)
    names = [str(i) for i in range(spec.num_classes)]
    blocks = prediction_blocks(scores, names, node_ids=store.node_ids)
    written = write_predictions(blocks, work / "predictions.parquet")
    return {"count": written.nodes, "of": "nodes"}


def baseline(work: Path, name: str) -> dict[str, Any]:
    """One epoch on the whole graph in memory."""
    import torch
    import torch.nn.functional as F
    from torch_geometric.nn import GCNConv

    from lgcn import LGCN, Graph
    from lgcn.store.open_store import open_store

    stored = open_store(work / "store", verify=False).graph
    assert stored.y is not None
    assert stored.train_mask is not None
    graph = Graph(stored.rowptr.clone(), stored.col.long(), x=stored.features())
    y, mask = stored.y.clone(), stored.train_mask.clone()
    assert graph.x is not None
    if name == BASELINES[0]:
        first, second = GCNConv(FEATURES, 32), GCNConv(32, CLASSES)
        edge_index = graph.edge_index
        parameters = [*first.parameters(), *second.parameters()]

        def scores() -> Any:
            return second(F.relu(first(graph.x, edge_index)), edge_index)

    else:
        options = {key: value for key, value in MODEL.items() if key != "lr"}
        model = LGCN(FEATURES, CLASSES, **options)  # type: ignore[arg-type]
        parameters = list(model.parameters())

        def scores() -> Any:
            return model(graph.x, graph)

    optimizer = torch.optim.Adam(parameters, lr=0.01)
    F.cross_entropy(scores()[mask], y[mask]).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return {"count": graph.num_nodes, "of": "nodes"}


def measure_here(step: str, work: Path, num_edges: int) -> dict[str, Any]:
    """One step, after a tiny one that loads the compiled kernels."""
    functions: dict[str, Callable[[Path, int], dict[str, Any]]] = {
        "generate": generate,
        "import": import_,
        "train": train,
        "predict": predict,
    }
    run = functions.get(step) or (lambda folder, _: baseline(folder, step))
    with tempfile.TemporaryDirectory() as name:
        tiny = Path(name)
        generate(tiny, 3000)
        export(tiny)
        if step == "predict":
            train(tiny, 3000)
        run(tiny, 3000)
    base = anonymous_memory()
    with PeakMemory() as memory:
        start = time.perf_counter()
        found = run(work, num_edges)
        seconds = time.perf_counter() - start
    rate = found["count"] / seconds
    peaks = {"peak_megabytes": memory.peak / 1e6, "base_megabytes": base / 1e6}
    return {"seconds": seconds, "per_second": rate, **peaks, **found}


def measure(num_edges: int, folder: Path, baseline_bytes: float) -> dict[str, Any]:
    work = folder / f"edges-{num_edges}"
    work.mkdir(parents=True, exist_ok=True)
    result: dict[str, Any] = {"edges": num_edges, "nodes": num_edges // 10, "steps": {}}
    for step in (*STEPS, *BASELINES):
        if step in BASELINE_BYTES:
            needed = num_edges * BASELINE_BYTES[step]
            if needed > baseline_bytes:
                result["steps"][step] = {"left_out": f"needs about {needed / 1e9:.0f} GB"}
                continue
        if step == "import":
            export(work)
        command = [sys.executable, "-m", "benchmarks.large", "--measure", step, str(work)]
        done = subprocess.run(
            [*command, str(num_edges)], check=True, stdout=subprocess.PIPE, text=True
        )
        result["steps"][step] = found = json.loads(done.stdout.splitlines()[-1])
        print(
            f"{num_edges:,} edges, {step}: {found['seconds']:.1f} s, {found['per_second']:,.0f} "
            f"{found['of']} a second, peak {found['peak_megabytes']:.0f} MB "
            f"(base {found['base_megabytes']:.0f})",
            flush=True,
        )
        if step == "import":
            for name in ("edges.csv", "nodes.parquet"):
                (work / name).unlink()
            shutil.rmtree(work / "imported")
    shutil.rmtree(work)
    return result


def exponents(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Exponents of time and of memory beyond the base, from the smallest to the largest size."""
    first, last = results[0], results[-1]
    growth = math.log(last["edges"] / first["edges"]) if last is not first else math.nan
    found = {}
    for step in STEPS:
        a, b = first["steps"][step], last["steps"][step]
        extra = [max(1.0, s["peak_megabytes"] - s["base_megabytes"]) for s in (a, b)]
        found[step] = {
            "seconds": math.log(b["seconds"] / a["seconds"]) / growth,
            "memory": math.log(extra[1] / extra[0]) / growth,
        }
        if "steps_peak_megabytes" in a:  # without the scores of all nodes at the end
            extra = [max(1.0, s["steps_peak_megabytes"] - s["base_megabytes"]) for s in (a, b)]
            found[f"{step}, steps alone"] = {
                "seconds": math.log(b["steps_seconds"] / a["steps_seconds"]) / growth,
                "memory": math.log(extra[1] / extra[0]) / growth,
            }
    return found


def main() -> None:
    parser = make_parser("large", __doc__)
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=float,
        default=[1, 10, 100],
        metavar="MILLIONS",
        help="edges (default: 1 10 100)",
    )
    parser.add_argument(
        "--work", type=Path, metavar="FOLDER", help="(default: the folder for temporary files)"
    )
    parser.add_argument(
        "--baseline-memory", type=float, default=12e9, metavar="BYTES", help="(default: 12e9)"
    )
    add_quick(parser)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        step, work, num_edges = arguments.measure
        print(json.dumps(measure_here(step, Path(work), int(num_edges))))
        return
    sizes = [5000, 10_000] if arguments.quick else [round(1e6 * s) for s in arguments.sizes]
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=arguments.work, prefix="lgcn-large-") as folder:
        for num_edges in sizes:
            results.append(measure(num_edges, Path(folder), arguments.baseline_memory))
            record = {"features": FEATURES, "classes": CLASSES, "model": MODEL, "ceiling": CEILING}
            grown = {"exponents": exponents(results)}
            write(
                arguments.out, "cpu", {"machine": machine(), **record, "results": results, **grown}
            )


if __name__ == "__main__":
    main()
