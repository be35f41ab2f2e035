"""Trains an LGCN from Python and predicts with it.

python examples/train.py [DATASET]       (default: digits, which needs no files)
"""

import sys

import lgcn
from lgcn.inference import predict
from lgcn.training import Settings, train

dataset = sys.argv[1] if len(sys.argv) > 1 else "digits"
graph = lgcn.load_dataset(dataset)
print(graph)

settings = Settings.create(dataset=dataset, seed=0, max_epochs=100)
result = train(graph, settings)
record = result.record
print(f"validation {record['val_score']:.3f}, test {record['test_score']:.3f}")

classes = predict(result.model, graph).argmax(dim=1)
print("predicted classes of the first ten nodes:", classes[:10].tolist())
