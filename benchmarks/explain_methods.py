"""Ways to explain a node by its edges, each called as `method(field, seed)`.

A method gets a `Field`: the part of the graph that the node's scores depend on, cut out once for
all methods, with the degrees of the whole graph. It gives one importance per edge of
`field.edge_index`, in whatever unit: only the order counts.

GNNExplainer and PGExplainer are PyG's. Saliency and integrated gradients are a few lines here,
of the edge mask in place of the features, as in PyG's CaptumExplainer; Captum is not needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.explain import Explainer, GNNExplainer, ModelConfig, PGExplainer
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from lgcn import Graph
from lgcn.explain import NodeExplainer
from lgcn.explain.neighbourhood import Neighbourhood, neighbourhood, num_hops

STEPS = 50  # of integrated gradients, Captum's default
GNN_EPOCHS, PG_EPOCHS, PG_NODES = 100, 20, 10
RESTART, WALK_STEPS = 0.15, 30  # of personalised PageRank
CONFIG = ModelConfig(mode="multiclass_classification", task_level="node", return_type="raw")


class OnField(Module):
    """A network that PyG calls with `x` and `edge_index`, on the graph that has the degrees."""

    def __init__(self, model: Module, graph: Graph) -> None:
        super().__init__()
        self.model, self.graph = model, graph
        self.eval()  # else PyG restores the training mode, of the network as well

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        scores: Tensor = self.model(x, self.graph)
        return scores


@dataclass(frozen=True, eq=False)
class Field:
    """The neighbourhood of a node, which has number 0 in it.

    Args:
        node: The node's number in the whole graph.
        whole: The whole graph.
        part: The neighbourhood.
        network: The trained network, which is the same for all.
        predicted: The predicted class of the node.
    """

    node: int
    whole: Graph
    part: Neighbourhood
    network: Module
    predicted: int

    @property
    def x(self) -> Tensor:
        return self.part.graph.features()

    @property
    def edge_index(self) -> Tensor:
        return self.part.graph.edge_index

    @property
    def model(self) -> OnField:
        return OnField(self.network, self.part.graph)


def cut_field(network: Module, graph: Graph, node: int) -> Field:
    """Cuts out what the scores of a node depend on."""
    return make_field(network, graph, node, cut(network, graph, node))


def cut(network: Module, graph: Graph, node: int) -> Neighbourhood:
    """The neighbourhood of a node, as wide as the network sees."""
    return neighbourhood(graph, torch.tensor([node]), num_hops(network))


def make_field(network: Module, graph: Graph, node: int, part: Neighbourhood) -> Field:
    """A neighbourhood with the node's prediction."""
    with torch.no_grad():
        scores = network(part.graph.features(), part.graph)
    return Field(node, graph, part, network, int(scores[0].argmax()))


def noisy(field: Field, seed: int, size: float = 0.01) -> Field:
    """The same field with Gaussian noise on the features that are not zero, of relative size."""
    generator = torch.Generator().manual_seed(seed)
    x = field.x

    def change(values: Tensor) -> Tensor:
        return values * (1 + size * torch.randn(values.shape, generator=generator))

    if x.layout == torch.sparse_csr:
        parts = (x.crow_indices(), x.col_indices(), change(x.values()))
        x = torch.sparse_csr_tensor(*parts, tuple(x.shape), check_invariants=False)
    else:
        x = change(x)
    graph = replace(field.part.graph, x=x)
    return replace(field, part=replace(field.part, graph=graph))


Method = Callable[[Field, int], Tensor]


def masked_score(field: Field, mask: Tensor) -> Tensor:
    """The log probability of the predicted class with masked edges."""
    model = field.model
    set_masks(model, mask, field.edge_index, apply_sigmoid=False)
    try:
        scores: Tensor = model(field.x, field.edge_index)[0]
        return scores.log_softmax(0)[field.predicted]
    finally:
        clear_masks(model)


def ours(field: Field, seed: int, thorough: bool = False) -> Tensor:
    """How much the score depends on each edge, with all edges and on the way to none."""
    explainer = NodeExplainer(field.network, field.part.graph)
    entry, found = explainer.important_edges(0, thorough=thorough)
    importance = torch.zeros(field.part.graph.num_edges)
    importance[entry] = found.float()
    return importance


def thorough(field: Field, seed: int) -> Tensor:
    """The same, and the strongest edges are ranked by trying them."""
    return ours(field, seed, thorough=True)


def gnn_explainer(field: Field, seed: int) -> Tensor:
    """PyG's GNNExplainer with its defaults and an edge mask alone."""
    torch.manual_seed(seed)
    algorithm = GNNExplainer(epochs=GNN_EPOCHS)
    explainer = make_explainer(field, algorithm)
    mask: Tensor = explainer(field.x, field.edge_index, index=0).edge_mask
    return mask


class TrainedPGExplainer:
    """PyG's PGExplainer, trained on other nodes of the same graph.

    Args:
        fields: What it is trained on.
        seed: Of its weights and its noise.
    """

    def __init__(self, fields: Sequence[Field], seed: int) -> None:
        torch.manual_seed(seed)
        self.algorithm = PGExplainer(epochs=PG_EPOCHS, lr=0.003)
        for epoch in range(PG_EPOCHS):
            for field in fields:
                make_explainer(field, self.algorithm, "phenomenon")
                self.algorithm.train(
                    epoch,
                    field.model.eval(),
                    field.x,
                    field.edge_index,
                    target=_targets(field),
                    index=0,
                )

    def __call__(self, field: Field, seed: int) -> Tensor:
        explainer = make_explainer(field, self.algorithm, "phenomenon")
        mask: Tensor = explainer(
            field.x, field.edge_index, target=_targets(field), index=0
        ).edge_mask
        return mask


def saliency(field: Field, seed: int) -> Tensor:
    """The size of the gradient at the unmasked graph."""
    mask = torch.ones(field.part.graph.num_edges, requires_grad=True)
    return torch.autograd.grad(masked_score(field, mask), mask)[0].abs()


def integrated_gradients(field: Field, seed: int) -> Tensor:
    """The size of the mean gradient on the way from no edges to all edges (midpoint rule)."""
    total = torch.zeros(field.part.graph.num_edges)
    for step in range(STEPS):
        mask = torch.full_like(total, (step + 0.5) / STEPS).requires_grad_()
        total += torch.autograd.grad(masked_score(field, mask), mask)[0]
    return (total / STEPS).abs()


def page_rank(field: Field, seed: int) -> Tensor:
    """The flow through each edge of a random walk against the edges that restarts at the node."""
    source, target = field.edge_index
    degree = torch.bincount(target, minlength=field.part.graph.num_nodes).clamp(min=1)
    start = torch.zeros(field.part.graph.num_nodes)
    start[0] = 1
    rank = start
    for _ in range(WALK_STEPS):
        moved = torch.zeros_like(rank).index_add(0, source, (rank / degree)[target])
        rank = RESTART * start + (1 - RESTART) * moved
    return (rank / degree)[target]


def random(field: Field, seed: int) -> Tensor:
    """No explanation at all."""
    return torch.rand(
        field.part.graph.num_edges, generator=torch.Generator().manual_seed(seed + field.node)
    )


METHODS: dict[str, Method | None] = {
    "ours": ours,
    "ours, thorough": thorough,
    "GNNExplainer": gnn_explainer,
    "PGExplainer": None,  # is trained first
    "integrated gradients": integrated_gradients,
    "saliency": saliency,
    "PageRank": page_rank,
    "random": random,
}


class Given(ExplainerAlgorithm):  # type: ignore[misc]
    """An algorithm that is never asked: PyG's metrics need an explainer of a network."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    def supports(self) -> bool:
        return True


def make_explainer(
    field: Field, algorithm: ExplainerAlgorithm | None = None, kind: str = "model"
) -> Explainer:
    """PyG's explainer of the field's network."""
    return Explainer(
        field.model,
        Given() if algorithm is None else algorithm,
        explanation_type=kind,
        edge_mask_type="object",
        model_config=CONFIG,
    )


def _targets(field: Field) -> Tensor:
    return torch.full((field.part.graph.num_nodes,), field.predicted)
