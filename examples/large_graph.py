"""From large edge and node files to predictions, in bounded memory.

python examples/large_graph.py [NODES]       (default: 20000; 10 million work, too)

The same on the command line: lgcn import, lgcn train --graph, lgcn predict --graph.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import lgcn
from lgcn.store.import_store import import_store

num_nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
folder = Path(tempfile.mkdtemp())

# Two example files: nodes of four kinds, most of whose neighbours are of the same kind.
rng = np.random.default_rng(0)
kind = np.arange(num_nodes) % 4
source = rng.integers(0, num_nodes, 5 * num_nodes)
target = rng.integers(0, num_nodes, 5 * num_nodes)
alike = rng.random(len(source)) < 0.8
target[alike] = target[alike] // 4 * 4 + kind[source[alike]]
target = np.minimum(target, num_nodes - 1)
csv.write_csv(pa.table({"source": source, "target": target}), folder / "edges.csv")
columns = {f"f{i}": (rng.normal(size=num_nodes) + (kind == i)).round(3) for i in range(8)}
labels = pa.array([f"kind {k}" for k in kind], mask=rng.random(num_nodes) > 0.1)
nodes = pa.table({"id": np.arange(num_nodes), "kind": labels, **columns})
csv.write_csv(nodes, folder / "nodes.csv")

# Import them into a graph store. Sorting happens on disk, within the memory limit.
counts = import_store(
    folder / "store",
    [folder / "edges.csv"],
    folder / "nodes.csv",
    label_column="kind",
    directed=False,
    memory="2GB",
)
print(f"{counts['nodes']} nodes, {counts['edges']} edges, {counts['peak_memory'] / 1e6:.0f} MB")

# Opening a store maps its files. Training reads only the sub-graphs that it samples.
store = lgcn.open_store(folder / "store")
settings = lgcn.Settings.create(
    dataset="store", training="subgraph", evaluate_on="sampled", k=8, max_steps=150
)
record = lgcn.train(store.graph, settings, out=folder / "run").record
print(f"validation {record['val_score']:.3f}, test {record['test_score']:.3f}")

# Predict all nodes, layer by layer and block by block, into a file.
run = lgcn.load_run(folder / "run")
written = run.write_predictions(
    folder / "predictions.parquet", store=folder / "store", memory="500MB"
)
print(f"{written.nodes} predictions in {folder}")
