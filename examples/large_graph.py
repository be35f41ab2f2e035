"""From an edge file to predictions through a store on disk, in bounded memory.

python examples/large_graph.py [NODES]       (default: 20000; 10 million work, too)

The same from the shell: lgcn import, lgcn train --graph, lgcn predict --graph.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from lgcn.inference.predictions import prediction_blocks, write_predictions
from lgcn.nn.layerwise import layerwise
from lgcn.store.import_store import import_store
from lgcn.store.open_store import open_store
from lgcn.training import Settings, train

num_nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
folder = Path(tempfile.mkdtemp())

# Two files as they may come from elsewhere: nodes of four kinds, most neighbours are alike.
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
csv.write_csv(
    pa.table({"id": np.arange(num_nodes), "kind": labels, **columns}), folder / "nodes.csv"
)

# The import sorts on disk and stays below the ceiling, however large the files are.
counts = import_store(
    folder / "store",
    [folder / "edges.csv"],
    folder / "nodes.csv",
    label_column="kind",
    memory="2GB",
)
print(f"{counts['nodes']} nodes, {counts['edges']} edges, {counts['peak_memory'] / 1e6:.0f} MB")

# Opening maps the files; training reads the nodes and edges of its sub-graphs.
store = open_store(folder / "store")
settings = Settings.create(
    dataset="store", training="subgraph", evaluate_on="sampled", k=8, max_steps=150
)
result = train(store.graph, settings)
record = result.record
print(f"validation {record['val_score']:.3f}, test {record['test_score']:.3f}")

# Every node's scores, layer by layer over blocks of rows, then to a file in pieces.
scores = layerwise(result.model, store.graph, memory="500MB")
blocks = prediction_blocks(
    scores,
    store.graph.label_names or (),
    node_ids=store.node_ids,
    temperature=record["temperature"],
)
written = write_predictions(blocks, folder / "predictions.parquet")
print(f"{written.nodes} predictions in {folder}")
