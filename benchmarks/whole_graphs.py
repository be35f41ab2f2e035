"""Epochs on many small graphs: the LGCN and GIN of this package, and PyG's GIN with its DataLoader.

python -m benchmarks.whole_graphs [--device cpu|cuda] [--out FILE] [--quick]

An epoch draws an order, makes batches of 32 training graphs of the first public fold, and takes a
training step on each. The networks take turns. PyG's is that of its example for MUTAG
(`torch_geometric.nn.GIN`, sum pooling, a perceptron), with the width and depth of ours. Batches
alone are timed too. "Padded" says how much larger a batch would be with all graphs padded to the
largest of the set. --quick takes random graphs.
"""

import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.nn import Module
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GIN, MLP, global_add_pool

import lgcn.paper  # registers GIN
from benchmarks._common import compare, machine, parse_arguments, write
from lgcn.graph import GraphSet
from lgcn.sampling.graph_batches import GraphSetLoader
from lgcn.training.graph_set_data import GraphSetData
from lgcn.training.settings import Settings
from lgcn.training.step import Step

SETS = ("PROTEINS", "NCI1", "IMDB-BINARY", "REDDIT-BINARY", "DD")
BATCH = 32
WIDTH, LAYERS = 64, 4  # of both GINs
OURS = {"LGCN": "graph_lgcn", "GIN": "gin"}


class PyGGIN(Module):
    """The network of PyG's example for MUTAG."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.gnn = GIN(in_channels, WIDTH, LAYERS, dropout=0.5, norm="batch_norm", jk="cat")
        self.classifier = MLP([WIDTH, WIDTH, out_channels], norm="batch_norm", dropout=0.5)

    def forward(self, batch: Any) -> Any:
        x = self.gnn(batch.x, batch.edge_index)
        return self.classifier(global_add_pool(x, batch.batch, size=batch.num_graphs))


def random_graphs() -> GraphSet:
    """Small graphs for --quick."""
    generator = torch.Generator().manual_seed(0)
    data = []
    for number in range(64):
        size = 5 + number % 7
        edges = (torch.rand(size, size, generator=generator) < 0.3).nonzero().t()
        x = torch.rand(size, 3, generator=generator)
        data.append(Data(x=x, edge_index=edges, num_nodes=size, y=torch.tensor([number % 2])))
    graphs: GraphSet = lgcn.load_graphs(data, name="random")
    return graphs


def as_pyg(graphs: GraphSet) -> list[Data]:
    """The training graphs as PyG's loader takes them."""
    mask = graphs.mask("train")
    assert mask is not None
    assert graphs.y is not None
    found = []
    for number in mask.nonzero().squeeze(1).tolist():
        graph = graphs[number]
        x = graph.features().to_dense()
        found.append(Data(x=x, edge_index=graph.edges()[0], y=graphs.y[number : number + 1]))
    return found


def epoch_of_ours(model: str, graphs: GraphSet, device: str) -> tuple[Callable[[], None], Module]:
    """One epoch through the loop's own step, with the settings of the model's preset."""
    chosen = Settings.create(dataset="graphs", model=model, graphs_per_batch=BATCH, device=device)
    data = GraphSetData(graphs, chosen)
    torch.manual_seed(0)
    network = data.spec.build(data.settings).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    step = Step(network, optimizer, data.settings, torch.device(device), fixed=False)
    loader = data.loader()
    assert isinstance(loader, GraphSetLoader)

    def epoch() -> None:
        network.train()
        for batch in loader:
            step(batch)

    return epoch, network


def epoch_of_pyg(data: list[Data], classes: int, device: str) -> tuple[Callable[[], None], Module]:
    torch.manual_seed(0)
    x = data[0].x
    assert x is not None
    network = PyGGIN(x.size(1), classes).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.001)
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)

    def epoch() -> None:
        network.train()
        for batch in loader:
            batch = batch.to(device)
            optimizer.zero_grad()
            F.cross_entropy(network(batch), batch.y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    return epoch, network


def measure(graphs: GraphSet, device: str, repeats: int) -> dict[str, Any]:
    epochs: dict[str, Callable[[], None]] = {}
    networks: dict[str, Module] = {}
    for title, model in OURS.items():
        epochs[title], networks[title] = epoch_of_ours(model, graphs, device)
    # Both have the same features, those that edges give where there are no others.
    prepared = GraphSetData(graphs, Settings.create(dataset="graphs", model="graph_lgcn")).graphs
    data = as_pyg(prepared)
    epochs["PyG's GIN"], networks["PyG's GIN"] = epoch_of_pyg(data, graphs.num_outputs, device)
    loader = GraphSetLoader(prepared, batch_size=BATCH)
    theirs = DataLoader(data, batch_size=BATCH, shuffle=True)

    def batches_of(source: Any) -> Callable[[], None]:
        def run() -> None:
            for _ in source:
                pass

        return run

    seconds = compare(epochs, repeats, device)
    batches = compare({"LGCN": batches_of(loader), "PyG": batches_of(theirs)}, repeats)
    sizes = prepared.sizes.double()
    return {
        "graphs": graphs.name,
        "training_graphs": len(data),
        "mean_nodes": round(float(sizes.mean()), 1),
        "largest": int(sizes.max()),
        "padded": round(float(sizes.max() / sizes.mean()), 1),
        "features": prepared.num_features,
        "parameters": {
            name: sum(p.numel() for p in network.parameters()) for name, network in networks.items()
        },
        "seconds": seconds,
        "batch_seconds": batches,
        "batch_speedup": batches["PyG"] / batches["LGCN"],
    }


def main() -> None:
    arguments = parse_arguments("whole_graphs", __doc__)
    device, repeats = arguments.device, 1 if arguments.quick else 7
    results = []
    for name in ("random",) if arguments.quick else SETS:
        graphs = random_graphs() if arguments.quick else lgcn.load_graphs(name, fold=0)
        result = measure(graphs, device, repeats)
        results.append(result)
        base = result["seconds"]["PyG's GIN"]
        print(
            f"{name}: "
            + ", ".join(f"{key} {base / own:.2f}" for key, own in result["seconds"].items())
            + f" epochs per epoch of PyG's GIN ({base:.3f} s); batches "
            + f"{result['batch_speedup']:.1f} times as fast",
            flush=True,
        )
    speedups = [r["seconds"]["PyG's GIN"] / r["seconds"]["LGCN"] for r in results]
    record = {"median": statistics.median(speedups), "results": results}
    write(arguments.out, device, {"machine": machine(device), **record})


if __name__ == "__main__":
    main()
