"""One epoch of LGCN on Cora, compared with the dense form of the released program.

python -m benchmarks.epoch [--device cpu|cuda] [--out FILE] [--quick]

The released program ranks N x C x N products of the dense adjacency and the features. Here the same
is written in torch, with the same network, on one hop around the training nodes (644 nodes) and on
the whole graph (2708 nodes). An epoch is one forward, backward and optimiser step. Peak memory is
what one epoch adds to what is held between epochs. --quick uses a small random graph.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from benchmarks._common import QUICK_GRAPH, compare, machine, parse_arguments, peak_megabytes, write
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


def cut(graph: Graph, device: str, whole: bool) -> Graph:
    if whole:
        return graph.to(device)
    nodes = select_subgraph(graph, roots=graph.train_mask, max_nodes=None, max_hops=1, seed=0)
    return graph.subgraph(nodes).to(device)


def make_epoch(graph: Graph, dense: bool) -> Callable[[], None]:
    """One epoch as a function; defaults, without adjacency dropout."""
    torch.manual_seed(0)
    model = LGCN(graph.num_features, graph.num_classes, adj_dropout=0.0).to(graph.col.device)
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
    """Checks that both compute the same, before anything is timed."""
    model = LGCN(graph.num_features, graph.num_classes).to(graph.col.device).eval()
    # The convolutions of a GPU round to ten bits unless told not to, which hides what we look for.
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        ours, dense = model(graph.x, graph), DenseLGCN(model, graph).eval()()
    torch.testing.assert_close(ours, dense, rtol=1e-4, atol=1e-5)


def measure(graph: Graph, device: str, repeats: int) -> dict[str, Any]:
    check_equal(graph)
    epochs = {"lgcn": make_epoch(graph, dense=False), "dense": make_epoch(graph, dense=True)}
    seconds = compare(epochs, repeats, device)
    return {
        "nodes": graph.num_nodes,
        "speedup": seconds["dense"] / seconds["lgcn"],
        "seconds": seconds,
        "peak_megabytes": {name: peak_megabytes(run, device) for name, run in epochs.items()},
    }


def main() -> None:
    arguments = parse_arguments("epoch", __doc__)
    device, repeats = arguments.device, 1 if arguments.quick else 7
    graph = load_dataset("synthetic", **QUICK_GRAPH) if arguments.quick else load_dataset("cora")
    results = []
    for whole in (False, True):
        kind = "whole" if whole else "one-hop sub-graph"
        result = {"graph": kind} | measure(cut(graph, device, whole), device, repeats)
        results.append(result)
        memory = result["peak_megabytes"]
        print(
            f"{kind}, {result['nodes']} nodes: {result['speedup']:.1f} times faster than"
            f" dense; peak memory {memory['lgcn']:.0f} MB against {memory['dense']:.0f} MB",
            flush=True,
        )
        write(arguments.out, device, {"machine": machine(device), "results": results})


if __name__ == "__main__":
    main()
