"""How hard the graphs of `lgcn generate` are: test accuracy of simple models and of the LGCN.

python -m benchmarks.generated_quality [--out FILE] [--nodes N] [--edges N] [--steps N ...]
    [--epochs N] [--quick]

The graph has 32 features and 10 classes, and is opened from its store. The linear model is
scikit-learn's logistic regression, of the features and of their means over the neighbours, over the
neighbours' neighbours, and so on; its strength is chosen on validation nodes. The LGCN has the
default settings for stores and so many steps on sub-graphs, or epochs on the whole graph. "easy" is
the graph that `lgcn generate` made before it had noise.
"""

import argparse
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.linear_model import LogisticRegression

from benchmarks._common import add_quick, machine, make_parser, write
from lgcn.graph import Graph
from lgcn.store.generate import generate_store
from lgcn.store.open_store import open_store
from lgcn.training import Settings, train

EASY = {"homophily": 0.8, "imbalance": 0.0, "label_noise": 0.0, "noise": 0.25, "locality": 0.0}
GRAPHS: dict[str, dict[str, float]] = {"default": {}, "easy": EASY}
FEATURES, CLASSES, HOPS = 32, 10, 3
STRENGTHS = (0.0003, 0.003, 0.03, 0.3)


def linear_models(graph: Graph, hops: int) -> dict[str, float]:
    """Test accuracy of logistic regression, by the hops over which features are averaged."""
    assert graph.y is not None
    entries = (np.ones(graph.num_edges, np.float32), graph.col.numpy(), graph.rowptr.numpy())
    adjacency = scipy.sparse.csr_matrix(entries, shape=(graph.num_nodes, graph.num_nodes))
    degree = np.maximum(np.diff(entries[2]), 1).astype(np.float32)[:, None]
    mean = graph.features().float().numpy()
    parts = [mean / mean.std()]
    split = {name: getattr(graph, f"{name}_mask").numpy() for name in ("train", "val", "test")}
    labels = graph.y.numpy()
    found = {}
    for hop in range(hops + 1):
        x = np.hstack(parts)
        models = [
            LogisticRegression(C=c, max_iter=200).fit(x[split["train"]], labels[split["train"]])
            for c in STRENGTHS
        ]
        best = max(models, key=lambda one: one.score(x[split["val"]], labels[split["val"]]))
        accuracy = float(best.score(x[split["test"]], labels[split["test"]]))
        name = "linear model of the features"
        found[name + (f" and their means over {hop} hop{'s' * (hop > 1)}" if hop else "")] = (
            accuracy
        )
        mean = adjacency @ mean / degree
        parts.append(mean / mean.std())
    return found


def lgcn(graph: Graph, **given: Any) -> dict[str, Any]:
    began = time.perf_counter()
    record = train(graph, Settings.create(dataset="store", baselines=False, **given)).record
    seconds = round(time.perf_counter() - began, 1)
    return {
        "test_score": record["test_score"],
        "val_score": record["val_score"],
        "seconds": seconds,
    }


def measure(graph: Graph, arguments: argparse.Namespace, easy: bool) -> dict[str, Any]:
    assert graph.y is not None
    assert graph.test_mask is not None
    labels = graph.y[graph.test_mask]
    scores: dict[str, Any] = {"majority class": float(labels.bincount().max()) / labels.numel()}
    scores |= linear_models(graph, HOPS)
    report(scores)
    for steps in arguments.steps[:1] if easy else arguments.steps:
        name = f"LGCN, sub-graphs, {steps:,} steps"
        scores[name] = lgcn(graph, training="subgraph", max_steps=steps, evaluate_on="graph")
        report({name: scores[name]})
    if not easy:
        name = f"LGCN, whole graph, {arguments.epochs:,} epochs"
        scores[name] = lgcn(graph, training="whole", max_epochs=arguments.epochs)
        report({name: scores[name]})
    return scores


def report(scores: dict[str, Any]) -> None:
    for name, score in scores.items():
        print(name, score, flush=True)


def main() -> None:
    parser = make_parser("generated_quality", __doc__)
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--edges", type=int, default=200_000)
    parser.add_argument("--steps", type=int, nargs="+", default=[100, 400, 1000])
    parser.add_argument("--epochs", type=int, default=150)
    add_quick(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.nodes, arguments.edges = 400, 2000
        arguments.steps, arguments.epochs = [2, 4], 2
    on = machine()
    warnings.simplefilter("ignore")
    results = []
    for name, options in GRAPHS.items():
        with tempfile.TemporaryDirectory() as folder:
            header = generate_store(
                Path(folder) / "store",
                num_nodes=arguments.nodes,
                num_edges=arguments.edges,
                num_features=FEATURES,
                num_classes=CLASSES,
                **options,  # type: ignore[arg-type]
            )
            graph = open_store(Path(folder) / "store").graph
            result = {
                "graph": name,
                "source": header["source"],
                "edges": header["num_edges"] // 2,
                "training_nodes": int(graph.train_mask.sum()),  # type: ignore[union-attr]
                "scores": measure(graph, arguments, name == "easy"),
            }
            results.append(result)
    write(arguments.out, "cpu", {"results": results, "machine": on})


if __name__ == "__main__":
    main()
