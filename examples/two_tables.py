"""From two CSV files to predictions.

python examples/two_tables.py [EDGES.csv NODES.csv LABEL_COLUMN]

Without arguments, it first writes two example files: images of handwritten digits, each joined with
the three most similar ones. One image in three has a label.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph

import lgcn


def example_files(folder: Path) -> tuple[Path, Path, str]:
    pixels, digits = load_digits(return_X_y=True)
    names = np.array([f"image {i}" for i in range(len(digits))])
    columns = {"id": names} | {f"pixel {i}": pixels[:, i] for i in range(64)}
    hidden = np.random.default_rng(0).random(len(digits)) > 1 / 3
    columns["digit"] = pa.array([f"digit {d}" for d in digits], mask=hidden)
    csv.write_csv(pa.table(columns), folder / "nodes.csv")
    start, end = kneighbors_graph(pixels, 3).nonzero()
    csv.write_csv(pa.table({"source": names[start], "target": names[end]}), folder / "edges.csv")
    return folder / "edges.csv", folder / "nodes.csv", "digit"


folder = Path(tempfile.mkdtemp())
edges, nodes, label = sys.argv[1:4] if len(sys.argv) > 3 else example_files(folder)

# Edges count in both directions; directed=True would keep their direction.
graph = lgcn.from_tables(edges, nodes, label_column=label)
print(graph)

model = lgcn.LGCNClassifier(max_epochs=100, random_state=0).fit(graph)
print(f"validation {model.result_['val_score']:.3f}, test {model.result_['test_score']:.3f}")

# Predictions are null if the model is less than 80 % sure.
table = model.predictions(abstain_below=0.8)
print(table.select(["node", "predicted", "confidence"]).slice(0, 5).to_pylist())
csv.write_csv(table, folder / "predictions.csv")
print(f"no prediction for {table['predicted'].null_count} of {len(table)} nodes; see {folder}")
