"""Train an LGCN from Python, save the run, load it again and predict.

python examples/train.py [DATASET]       (default: digits, which needs no download)
"""

import sys
import tempfile

import lgcn

dataset = sys.argv[1] if len(sys.argv) > 1 else "digits"
graph = lgcn.load_dataset(dataset)
print(graph)

# Settings start from the preset for this data set. `lgcn settings` lists them all.
settings = lgcn.Settings.create(dataset=dataset, seed=0, max_epochs=100)
folder = tempfile.mkdtemp()
result = lgcn.train(graph, settings, out=folder)
record = result.record
print(f"validation {record['val_score']:.3f}, test {record['test_score']:.3f}")

# Predict with the model in memory: one row of class scores per node.
classes = lgcn.predict(result.model, graph).argmax(dim=1)
print("predicted classes of the first ten nodes:", classes[:10].tolist())

# Or load the run, here or in another program. The predictions are a table.
run = lgcn.load_run(folder)
table = run.predictions().select(["node", "predicted", "confidence"])
print(table.slice(0, 3).to_pylist())
