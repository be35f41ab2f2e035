"""The graphs of `benchmarks.explain`, and one trained LGCN for each."""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric import seed_everything
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph, TreeGraph
from torch_geometric.datasets.motif_generator import CycleMotif, GridMotif, HouseMotif

from lgcn import LGCN, Graph, load_dataset
from lgcn.graph.splits import fraction_split
from lgcn.training import Settings, train

SYNTHETIC = ("BA-Shapes", "BA-Community", "Tree-Cycles", "Tree-Grid")
REAL = ("cora", "wordnet31")
GRAPHS = (*SYNTHETIC, *REAL)
# The constant features, the sizes and the motifs are those of the GNNExplainer paper.
CONSTANT, COMMUNITY_EDGES = 10, 350
# Sizes of the LGCN for synthetic graphs, which has no dropout: they are learnt without errors.
_NETWORK: dict[str, Any] = {
    **{"hidden_channels": 32, "lgcl_channels": 16, "num_layers": 2, "k": 4},
    **{"dropout": 0.0, "adj_dropout": 0.0, "activation": "relu"},
}
EPOCHS = 200
# Settings for real graphs; the others are the defaults of `lgcn train --dataset NAME`. Training on
# all of wordnet31 would take an hour; sub-graphs take 12 seconds and reach 38 % of 45 classes.
_SETTINGS: dict[str, dict[str, Any]] = {
    "cora": {"max_epochs": 300, "patience": 50},
    "wordnet31": {
        **{"training": "subgraph", "max_epochs": 40, "evaluate_every": 20, "baselines": False},
    },
}


@dataclass(frozen=True, eq=False)
class Task:
    """A graph, which of its edges are the reason for a node's class, and nodes to explain.

    Args:
        graph: The graph, with a split.
        motif: The motif of each node, -1 for none; `None` where no reasons are known.
        nodes: The nodes that may be explained.
    """

    graph: Graph
    motif: Tensor | None
    nodes: Tensor

    def reasons(self, nodes: Tensor, edge_index: Tensor) -> Tensor | None:
        """Marks the edges within the motif of the first of `nodes`.

        Args:
            nodes: Node numbers of a part of the graph.
            edge_index: Edges between places in `nodes`.
        """
        if self.motif is None:
            return None
        motif = self.motif[nodes]
        return (motif[edge_index] == motif[0]).all(0)


def make_task(name: str, seed: int) -> Task:
    """A graph with its split; synthetic ones are drawn anew for each seed."""
    seed_everything(seed)  # PyG draws with NumPy as well
    if name in REAL:
        graph = load_dataset(name)
        assert graph.test_mask is not None
        return Task(graph, None, graph.test_mask.nonzero().squeeze(1))
    if name == "BA-Community":
        graph, motif = _community()
    else:
        edge_index, y, motif = _motifs(name)
        x = torch.ones(len(y), CONSTANT)
        graph = Graph.from_edge_index(edge_index, x=x, y=y, name=name)
    assert graph.y is not None
    masks = fraction_split(graph.y, val=0.1, test=0.1, seed=seed)
    graph = replace(graph, train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    return Task(graph, motif, (motif >= 0).nonzero().squeeze(1))


def trained(task: Task, name: str, seed: int) -> tuple[LGCN, float]:
    """The network and its accuracy on test nodes."""
    graph = task.graph
    if name in REAL:
        settings = Settings.create(dataset=name, seed=seed, device="cpu", **_SETTINGS[name])
        result = train(graph, settings)
        assert isinstance(result.model, LGCN)
        return result.model.eval(), float(result.record["test_score"])
    torch.manual_seed(seed)
    model = LGCN(graph.num_features, graph.num_classes, **_NETWORK)
    assert graph.x is not None
    assert graph.y is not None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(EPOCHS):
        optimizer.zero_grad()
        scores = model(graph.x, graph)
        rows = graph.train_mask
        # Smoothing keeps probabilities away from 0, where PyG's unfaithfulness is not a number.
        loss = F.cross_entropy(scores[rows], graph.y[rows], label_smoothing=0.1)
        torch.autograd.backward(loss)
        optimizer.step()
    with torch.no_grad():
        right = model.eval()(graph.x, graph).argmax(1) == graph.y
    return model, float(right[graph.test_mask].float().mean())


def _motifs(name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Edges, classes, and the motif of each node."""
    base, motif, size = {
        "BA-Shapes": (BAGraph(300, 5), HouseMotif(), 5),
        "Tree-Cycles": (TreeGraph(8, undirected=True), CycleMotif(6), 6),
        "Tree-Grid": (TreeGraph(8, undirected=True), GridMotif(), 9),
    }[name]
    data = ExplainerDataset(base, motif, num_motifs=80)[0]
    inside = data.node_mask > 0
    number = torch.full_like(data.y, -1)
    number[inside] = torch.arange(int(inside.sum())) // size  # one motif after the other
    y = data.y if name == "BA-Shapes" else inside.long()
    return data.edge_index, y, number


def _community() -> tuple[Graph, Tensor]:
    """Two BA-Shapes with random edges between them and features that tell them apart."""
    parts = [_motifs("BA-Shapes") for _ in range(2)]
    size = len(parts[0][1])
    between = torch.randint(size, (2, COMMUNITY_EDGES)) + torch.tensor([[0], [size]])
    edge_index = torch.cat([parts[0][0], parts[1][0] + size, between], dim=1)
    motif = torch.cat([parts[0][2], torch.where(parts[1][2] < 0, -1, parts[1][2] + 80)])
    x = 0.5 * torch.randn(2 * size, CONSTANT)
    x[:size, :2] -= 1
    x[size:, :2] += 1
    y = torch.cat([parts[0][1], parts[1][1] + 4])
    return Graph.from_edge_index(edge_index, x=x, y=y, name="BA-Community"), motif
