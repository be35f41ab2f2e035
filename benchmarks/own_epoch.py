"""Seconds of an epoch on own tables with defaults, beside a GCN of two layers written with PyG.

python -m benchmarks.own_epoch [--datasets NAME ...] [--rounds N] [--epochs N] [--out FILE]
    [--quick]

An epoch is a training step and the scores of validation and test nodes. Ours is that of
`lgcn.train` with the default preset and the settings for few or many labels that its rule chooses.
The GCN is that of PyG's example with two layers of 64: dropout of 0.5 before each, and Adam. It
gets the normalised adjacency, as edge_index or as a CSR matrix, with dense or sparse features. The
fastest of the four counts; the plainest, edge_index with dense features, is told as well. All take
turns in one process. A turn is the mean over some epochs, since layer dropout makes them differ in
work. The smallest turn counts.
"""

import itertools
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Linear, Module
from torch_geometric.nn import GCNConv

from benchmarks import validation
from benchmarks._common import add_quick, machine, make_parser, write
from benchmarks.fewer_steps import DATASETS, SPLITS, find_places, split_graph
from lgcn import Graph
from lgcn.training import Settings, State, train

WIDTH = 64
ROUNDS, EPOCHS = 5, 10
SEED = 2000


class SparseLinear(Module):
    """The linear map of a GCNConv for features that are a sparse matrix."""

    def __init__(self, linear: Linear) -> None:
        super().__init__()
        self.weight = linear.weight

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.t()


class GCN(Module):
    """Two layers of PyG's GCNConv on an adjacency that is normalised already."""

    def __init__(self, in_channels: int, num_classes: int, sparse: bool) -> None:
        super().__init__()
        self.first = GCNConv(in_channels, WIDTH, normalize=False)
        self.second = GCNConv(WIDTH, num_classes, normalize=False)
        if sparse:
            self.first.lin = SparseLinear(self.first.lin)

    def forward(self, x: Tensor, *adjacency: Tensor | None) -> Tensor:
        h = self.first(self.drop(x), *adjacency).relu()
        out: Tensor = self.second(self.drop(h), *adjacency)
        return out

    def drop(self, x: Tensor) -> Tensor:
        """Dropout of dense features, or of the non-zeros of sparse ones."""
        if not self.training or x.layout == torch.strided:
            return F.dropout(x, 0.5, self.training)
        rowptr, col, values = x.crow_indices(), x.col_indices(), F.dropout(x.values(), 0.5)
        return torch.sparse_csr_tensor(rowptr, col, values, x.shape, check_invariants=False)


def gcn_epoch(graph: Graph, sparse: bool, csr: bool) -> Callable[[], None]:
    """An epoch of the GCN as a function."""
    assert graph.x is not None
    assert graph.y is not None
    assert graph.train_mask is not None
    x = graph.features()
    x = x.to_sparse_csr() if sparse and x.layout == torch.strided else x
    x = x if sparse or x.layout == torch.strided else x.to_dense()
    torch.manual_seed(0)
    model = GCN(graph.num_features, graph.num_classes, sparse)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4, fused=True)
    nodes, y = graph.train_mask.nonzero().squeeze(1), graph.y
    scored = [
        mask.nonzero().squeeze(1) for mask in (graph.val_mask, graph.test_mask) if mask is not None
    ]
    adjacency: tuple[Tensor | None, ...]
    if csr:
        rowptr, col, weight = graph.adjacency(normalize=True, self_loops=True)
        assert weight is not None
        size = (graph.num_nodes, graph.num_nodes)
        # Symmetric, so that it is its own transpose.
        adjacency = (torch.sparse_csr_tensor(rowptr, col, weight, size, check_invariants=False),)
    else:
        adjacency = graph.edges(normalize=True, self_loops=True)

    def epoch() -> None:
        model.train()
        optimizer.zero_grad()
        logits = model(x, *adjacency)
        F.cross_entropy(logits[nodes], y[nodes]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        model.eval()
        with torch.no_grad():
            logits = model(x, *adjacency)
            for some in scored:
                float(F.cross_entropy(logits[some], y[some]))
                float((logits[some].argmax(1) == y[some]).float().mean())

    return epoch


def gcn_turn(epoch: Callable[[], None], epochs: int) -> list[float]:
    """Seconds of each epoch but the first."""
    ends = []
    for _ in range(epochs + 1):
        epoch()
        ends.append(time.perf_counter())
    return [after - before for before, after in itertools.pairwise(ends)]


def lgcn_turn(graph: Graph, settings: Settings, epochs: int) -> list[float]:
    ends = []

    def on_epoch(state: State) -> None:
        ends.append(time.perf_counter())

    train(graph, settings.replace(max_epochs=epochs + 1), on_epoch=on_epoch)
    return [after - before for before, after in itertools.pairwise(ends)]


def measure(place: tuple[str, str, str], rounds: int, epochs: int) -> dict[str, Any]:
    dataset, split, labels = place
    graph = split_graph(dataset, split, SEED)
    settings = Settings.create(dataset="tables", labels=labels, seed=SEED, device="cpu")
    turns: dict[str, Callable[[], list[float]]] = {
        "lgcn": lambda: lgcn_turn(graph, settings, epochs)
    }
    for sparse in (False, True):
        for csr in (False, True):
            name = (
                f"GCN, {'CSR' if csr else 'edge_index'}, {'sparse' if sparse else 'dense'} features"
            )
            epoch = gcn_epoch(graph, sparse, csr)
            turns[name] = lambda epoch=epoch: gcn_turn(epoch, epochs)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            seconds[name].append(statistics.mean(turn()))
    least = {name: min(found) for name, found in seconds.items()}
    fastest = min((name for name in least if name != "lgcn"), key=least.__getitem__)
    plainest = least["GCN, edge_index, dense features"]
    return {
        "dataset": dataset,
        "split": split,
        "labels": labels,
        "nodes": graph.num_nodes,
        "entries": graph.num_edges,
        "seconds": least,
        "fastest": fastest,
        "ratio": least["lgcn"] / least[fastest],
        "ratio_plainest": least["lgcn"] / plainest,
    }


def main() -> None:
    parser = make_parser("own_epoch", __doc__)
    count = validation.at_least_one
    parser.add_argument("--datasets", nargs="+", default=list(DATASETS), metavar="NAME")
    parser.add_argument("--rounds", type=count, default=ROUNDS, help=f"(default: {ROUNDS})")
    parser.add_argument(
        "--epochs", type=count, default=EPOCHS, help=f"per turn (default: {EPOCHS})"
    )
    add_quick(parser)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.datasets, arguments.rounds, arguments.epochs = ["synthetic"], 1, 2
    validation.check(parser, arguments.datasets, "cpu")
    results = []
    for place in find_places(arguments.datasets, SPLITS, SEED):
        found = measure(place, arguments.rounds, arguments.epochs)
        results.append(found)
        print(
            f"{found['dataset']:17} {found['split']:13} {found['labels']:5}"
            f" {1e3 * found['seconds']['lgcn']:7.1f} ms beside"
            f" {1e3 * found['seconds'][found['fastest']]:7.1f} ms of {found['fastest']}:"
            f" {found['ratio']:.2f} times, {found['ratio_plainest']:.2f} times the plainest",
            flush=True,
        )
        write(arguments.out, "cpu", {"machine": machine(), "results": results})


if __name__ == "__main__":
    main()
