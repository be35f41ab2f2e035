"""Classify molecules: a set in TU's layout, or tables of invented molecules.

python examples/molecules.py [NAME or FOLDER]

With a name such as MUTAG, the set is looked up in $LGCN_DATA. Without arguments, three tables are
written first.
"""

import runpy
import sys
import tempfile
from pathlib import Path

import lgcn


def invented() -> lgcn.GraphSet:
    folder = Path(tempfile.mkdtemp())
    make_molecules = Path(__file__).parent / "molecules" / "make_molecules.py"
    runpy.run_path(str(make_molecules))["main"](folder)
    return lgcn.graphs_from_tables(
        folder / "bonds.csv",
        folder / "atoms.csv",
        folder / "molecules.csv",
        graph_column="molecule",
        label_column="toxic",
    )


graphs = lgcn.load_graphs(sys.argv[1]) if len(sys.argv) > 1 else invented()
print(graphs)

model = lgcn.GraphClassifier(max_epochs=60, random_state=0).fit(graphs)
print(f"validation {model.result_['val_score']:.3f}, test {model.result_['test_score']:.3f}")

for row in model.predictions(abstain_below=0.8).slice(0, 5).to_pylist():
    print(row["graph"], row["predicted"], round(row["confidence"], 2), "truth:", row["true"])
