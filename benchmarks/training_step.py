"""100 epochs of training in the settings of the paper's Table 5, and of a GCN in PyG.

python -m benchmarks.training_step [--device cpu|cuda] [--out FILE] [--quick]

LGCN_sub trains on one fixed sub-graph, one hop around the training nodes; LGCN_whole and GCN train
on the whole graph. Timed is the training alone, from new weights, without evaluation; on a GPU that
includes the capture of the CUDA graph.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Module, Parameter
from torch_geometric.nn import GCNConv

from benchmarks._common import QUICK_GRAPH, compare, machine, parse_arguments, write
from lgcn import Graph, load_dataset
from lgcn.ops import spmm
from lgcn.training import Config
from lgcn.training.loop import make_loader, train_epochs

EPOCHS = 100
BUDGET = 40.0  # seconds that one variant may take in all turns
# Table 5 of the paper, seconds on a TITAN Xp and nodes per iteration.
PAPER = {
    "cora": {"GCN": 7, "LGCN_whole": 58, "LGCN_sub": 14, "nodes": 644},
    "citeseer": {"GCN": 4, "LGCN_whole": 30, "LGCN_sub": 3.6, "nodes": 442},
    "pubmed": {"GCN": 38, "LGCN_whole": 1080, "LGCN_sub": 2.6, "nodes": 354},
}
SETTINGS: dict[str, dict[str, Any]] = {
    "LGCN_sub": {"max_hops": 1, "max_nodes": None, "resample": False},
    "LGCN_whole": {"training": "whole"},
}
# What else can be chosen on a GPU.
CUDA_OPTIONS: dict[str, dict[str, Any]] = {
    "bfloat16": {"precision": "bfloat16"},
    "no CUDA graph": {"capture": False},
}


class SparseInput(Module):
    """Dropout and linear map of sparse features, at the cost of their non-zeros."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.weight = Parameter(torch.empty(in_channels, out_channels))
        torch.nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        values = F.dropout(x.values(), 0.5, self.training)
        return spmm(x.crow_indices(), x.col_indices(), values, self.weight)


class GCN(Module):
    """Kipf and Welling's network, as in PyG's example.

    There features are dense, and on a CPU their dropout takes most of the time; with ``sparse`` the
    first layer treats them as sparse, as Kipf and Welling's program does.
    """

    def __init__(self, in_channels: int, num_classes: int, sparse: bool) -> None:
        super().__init__()
        self.sparse = sparse
        self.first = GCNConv(in_channels, 16, cached=True)
        if sparse:
            self.first.lin = SparseInput(in_channels, 16)
        self.second = GCNConv(16, num_classes, cached=True)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = x if self.sparse else F.dropout(x, 0.5, self.training)
        h = self.first(h, edge_index).relu()
        out: Tensor = self.second(F.dropout(h, 0.5, self.training), edge_index)
        return out


def train_gcn(graph: Graph, sparse: bool, epochs: int) -> None:
    assert graph.x is not None
    assert graph.y is not None
    assert graph.train_mask is not None
    x = graph.x.to_sparse_csr() if sparse else graph.x.to_dense()
    edge_index = graph.edge_index
    nodes = graph.train_mask.nonzero().squeeze(1)
    labels = graph.y[nodes]
    model = GCN(graph.num_features, graph.num_classes, sparse).to(x.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x, edge_index)[nodes], labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def measure(graph: Graph, device: str, epochs: int, repeats: int) -> dict[str, Any]:
    settings = dict(SETTINGS)
    if device == "cuda":
        for name, given in SETTINGS.items():
            for what, option in CUDA_OPTIONS.items():
                settings[f"{name}, {what}"] = {**given, **option}
    configs = {
        name: Config.create(dataset=graph.name, device=device, **given)
        for name, given in settings.items()
    }
    variants: dict[str, Callable[[], object]] = {
        name: partial(train_epochs, graph, config, epochs) for name, config in configs.items()
    }
    on_device = graph.to(device)
    variants["GCN"] = partial(train_gcn, on_device, True, epochs)
    variants["GCN, dense features"] = partial(train_gcn, on_device, False, epochs)
    loader = make_loader(graph, configs["LGCN_sub"])
    return {
        "dataset": graph.name,
        "epochs": epochs,
        "repeats": repeats,
        "nodes": graph.num_nodes,
        "nodes_per_iteration": sum(batch.num_nodes for batch in loader.epoch(1)) / len(loader),
        "seconds": compare(variants, repeats, device, BUDGET),
        "paper": PAPER.get(graph.name),
    }


def main() -> None:
    arguments = parse_arguments("training_step", __doc__)
    device = arguments.device
    results = []
    for dataset in ["synthetic"] if arguments.quick else PAPER:
        epochs, repeats = (2, 1) if arguments.quick else (EPOCHS, 3)
        graph = load_dataset(dataset, **(QUICK_GRAPH if arguments.quick else {}))
        result = measure(graph, device, epochs, repeats)
        results.append(result)
        print(f"{dataset}: {result['nodes_per_iteration']:.0f} of {result['nodes']} nodes a step")
        for name, seconds in result["seconds"].items():
            paper = (result["paper"] or {}).get(name, "not known")
            print(f"    {name:25} {seconds:.3g} s; the paper's: {paper}", flush=True)
        write(arguments.out, {"results": results, "machine": machine(device)})


if __name__ == "__main__":
    main()
