"""Memory that LGCNClassifier.fit needs beyond the graph: no copy of features or edges.

python -m benchmarks.fit_memory [--out FILE] [--quick]

Features and edges are large, so that a copy of either would show. One epoch on sub-graphs and one
on the whole graph, each with its evaluation. Then the largest graph that is still one batch, with
the defaults for few and for many labels (which needs 10 GB). Each measurement is its own process
and begins with a fit on a tiny graph.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

import torch

from benchmarks._common import add_quick, machine, make_parser, peak_megabytes, write
from lgcn import LGCNClassifier
from lgcn.datasets import synthetic
from lgcn.graph import Graph
from lgcn.training.choose import WHOLE_GRAPH_VALUES

TINY = {"num_nodes": 300, "num_features": 10, "mean_degree": 5}
WIDE = {"num_nodes": 100_000, "num_features": 1000, "mean_degree": 100}
K = 8
LARGEST = {"num_nodes": WHOLE_GRAPH_VALUES // (K + 1), "num_features": 100, "mean_degree": 10}
CASES: dict[str, tuple[dict[str, int], dict[str, str]]] = {
    "sub-graphs": (WIDE, {"training": "subgraph"}),
    "whole": (WIDE, {"training": "whole"}),
    "largest whole, few labels": (LARGEST, {"labels": "few"}),
    "largest whole, many labels": (LARGEST, {"labels": "many"}),
}


def fit(graph: Graph, settings: dict[str, str]) -> LGCNClassifier:
    model = LGCNClassifier(max_epochs=1, k=K, random_state=0, device="cpu", settings=settings)
    return model.fit(graph)


def measure(case: str, quick: bool) -> dict[str, Any]:
    size, settings = CASES[case]
    fit(synthetic(**TINY), settings)
    graph = synthetic(**({**size, "num_nodes": 500} if quick else size))
    assert graph.x is not None
    shared: list[bool] = []

    def run() -> None:
        kept = fit(graph, settings).graph_
        assert kept is not None
        assert kept.x is not None
        assert graph.x is not None
        shared.append(kept.x.data_ptr() == graph.x.data_ptr())
        shared.append(kept.col.data_ptr() == graph.col.data_ptr())

    peak = peak_megabytes(run, "cpu")
    return {
        "case": case,
        "nodes": graph.num_nodes,
        "entries": graph.num_edges,
        "features": graph.num_features,
        "feature_megabytes": graph.x.nbytes / 1e6,
        "edge_megabytes": (graph.col.nbytes + graph.rowptr.nbytes) / 1e6,
        "peak_megabytes": peak,
        "shares_features_and_edges": all(shared),
    }


def main() -> None:
    parser = make_parser("fit_memory", __doc__)
    add_quick(parser)
    parser.add_argument("--measure", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        torch.manual_seed(0)
        print(json.dumps(measure(arguments.measure, arguments.quick)))
        return
    results = []
    for case in CASES:
        command = [sys.executable, "-m", "benchmarks.fit_memory", "--measure", case]
        command += ["--quick"] if arguments.quick else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            parser.exit(1, f"{case}: its process ended with {done.returncode}, see above\n")
        results.append(json.loads(done.stdout.splitlines()[-1]))
        found = results[-1]
        print(
            f"{case}: fit needs {found['peak_megabytes']:.0f} MB beyond the graph of "
            f"{found['feature_megabytes']:.0f} MB of features and {found['edge_megabytes']:.0f} MB "
            f"of edges; shared: {found['shares_features_and_edges']}",
            flush=True,
        )
    write(arguments.out, "cpu", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
