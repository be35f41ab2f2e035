"""One epoch of LGCN on Cora against the dense formulation of the released program.

python -m benchmarks.epoch [--out FILE] [--repeats N]

The released program multiplies the dense adjacency with the features to N x C x N products and
ranks those; here the same is written in torch, with the same network, on the same sub-graph (one
hop around the training nodes, 644 nodes) and on the whole graph (2708 nodes). An epoch is one
forward, backward and optimiser step. Peak memory is what one epoch adds to
what a process of its own holds between epochs.
"""

import argparse
import gc
import multiprocessing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks._common import compare, machine, write
from lgcn import LGCN, Graph, LGConv, load_dataset, select_subgraph


class DenseLGCN(torch.nn.Module):
    """The network and weights of an LGCN, computed as the released program does."""

    def __init__(self, model: LGCN, graph: Graph) -> None:
        super().__init__()
        self.model = model
        rowptr, col, weight = graph.adjacency(normalize=True, self_loops=True)
        assert weight is not None
        adjacency = torch.sparse_csr_tensor(rowptr, col, weight, check_invariants=False)
        self.adjacency = adjacency.to_dense()
        assert graph.x is not None
        self.x = graph.x.to_dense()

    def forward(self) -> Tensor:
        h = self._layer(self.model.embedding, self.x)
        for layer in self.model.layers:
            assert isinstance(layer, LGConv)
            products = self.adjacency.unsqueeze(1) * h.t().unsqueeze(0)
            grid = torch.cat([h.unsqueeze(2), products.topk(layer.k, dim=2).values], dim=2)
            h = torch.cat([h, layer.convolve(grid.transpose(1, 2))], dim=1)
        return self._layer(self.model.classifier, h)

    def _layer(self, layer: Any, h: Tensor) -> Tensor:
        h = F.dropout(h, layer.dropout, self.training)
        out: Tensor = self.adjacency @ (h @ layer.weight + layer.bias)
        return out


def cora(whole: bool) -> Graph:
    graph = load_dataset("cora")
    if whole:
        return graph
    nodes = select_subgraph(graph, roots=graph.train_mask, max_nodes=None, max_hops=1, seed=0)
    return graph.subgraph(nodes)


def make_epoch(graph: Graph, dense: bool) -> Callable[[], None]:
    """One epoch as a function; adjacency dropout is off in both, the rest are the defaults."""
    torch.manual_seed(0)
    model = LGCN(graph.num_features, graph.num_classes, adj_dropout=0.0)
    reference = DenseLGCN(model, graph) if dense else None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, weight_decay=5e-4)
    mask, y = graph.train_mask, graph.y
    assert mask is not None
    assert y is not None

    def epoch() -> None:
        optimizer.zero_grad()
        logits = model(graph.x, graph) if reference is None else reference()
        F.cross_entropy(logits[mask], y[mask]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return epoch


def check_equal(graph: Graph) -> None:
    """Both compute the same before anything is timed."""
    model = LGCN(graph.num_features, graph.num_classes).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(graph.x, graph), DenseLGCN(model, graph).eval()())


def peak_megabytes(whole: bool, dense: bool) -> float:
    epoch = make_epoch(cora(whole), dense)
    epoch()  # compiles the kernels
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here (Linux)
    before = peak_resident()
    epoch()
    return peak_resident() - before


def peak_resident() -> float:
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def in_new_process(whole: bool, dense: bool) -> float:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(peak_megabytes, (whole, dense))


def measure(whole: bool, repeats: int) -> dict[str, Any]:
    graph = cora(whole)
    check_equal(graph)
    seconds = compare(
        {"lgcn": make_epoch(graph, dense=False), "dense": make_epoch(graph, dense=True)}, repeats
    )
    return {
        "graph": "whole" if whole else "one-hop sub-graph",
        "nodes": graph.num_nodes,
        "speedup": seconds["dense"] / seconds["lgcn"],
        "seconds": seconds,
        "peak_megabytes": {
            "lgcn": in_new_process(whole, dense=False),
            "dense": in_new_process(whole, dense=True),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/epoch.json"))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    results = [measure(whole, arguments.repeats) for whole in (False, True)]
    for result in results:
        memory = result["peak_megabytes"]
        print(
            f"{result['graph']}, {result['nodes']} nodes: {result['speedup']:.1f} times faster than"
            f" dense; peak memory {memory['lgcn']:.0f} MB against {memory['dense']:.0f} MB"
        )
    write(arguments.out, {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
