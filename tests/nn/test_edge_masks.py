"""Edge masks of PyG's explainers, on LGConv and on whole networks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.explain import Explainer, GNNExplainer, fidelity, unfaithfulness
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from lgcn import LGCN, Graph, LGConv
from lgcn.errors import UsageError
from lgcn.graph.csr import CSR
from lgcn.nn import Diffusion, GCNLayer
from lgcn.nn.layerwise import layerwise
from lgcn.nn.neighbour_layers import Attention, NeighbourMean, NormalizedSum
from lgcn.nn.residual import ResidualLGCN
from tests.conftest import make_graph

EDGES = torch.tensor([[3, 1, 2, 0, 2, 4, 0, 1, 4, 3], [0, 2, 0, 1, 1, 4, 2, 0, 3, 4]])  # unsorted
X = torch.tensor([[0.5, -1.0], [2.0, 0.3], [-0.7, 1.5], [1.1, -0.2], [0.9, 0.8]])
MASK = torch.linspace(0.1, 1.0, 10)

LAYERS: dict[str, Callable[[], Module]] = {
    "LGConv": lambda: LGConv(2, 3, k=2),
    "LGConv, mean": lambda: LGConv(2, 3, k=2, mean=True, self_loops=True),
    "LGConv, normalized": lambda: LGConv(2, 3, k=2, rank="normalized", self_loops=True),
    "LGCN": lambda: LGCN(2, 3, hidden_channels=4, k=2),
    "LGCN, diffusion": lambda: LGCN(2, 3, hidden_channels=4, k=2, classifier="diffusion", hops=2),
    "LGCN, gcn": lambda: LGCN(2, 3, hidden_channels=4, layer="gcn", classifier="sum"),
    **{
        f"residual, {kind}": lambda kind=kind: ResidualLGCN(
            2, 3, hidden_channels=16, num_layers=2, aggregate=kind
        )
        for kind in ("lgcl", "mean", "max", "sum", "gcn", "attention")
    },
    "residual, depthwise": lambda: ResidualLGCN(
        2, 3, hidden_channels=16, num_layers=2, cnn="depthwise"
    ),
}


def masked(model: Module, mask: Tensor, x: Tensor, edge_index: Any) -> Tensor:
    set_masks(model, mask, EDGES, apply_sigmoid=False)
    try:
        return model(x, edge_index)
    finally:
        clear_masks(model)


@pytest.mark.parametrize("name", LAYERS)
def test_a_mask_of_ones_changes_nothing(name: str) -> None:
    model = LAYERS[name]().eval()
    expected = model(X, EDGES)
    assert torch.equal(masked(model, torch.ones(10), X, EDGES), expected)
    assert torch.equal(model(X, EDGES), expected)


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_reach_every_edge_of_the_mask(name: str) -> None:
    model = LAYERS[name]().double().eval()
    mask = MASK.double().requires_grad_()

    def of_mask(mask: Tensor) -> Tensor:
        return masked(model, mask, X.double(), EDGES)

    assert torch.autograd.gradcheck(of_mask, (mask,))
    of_mask(mask).square().sum().backward()
    assert (mask.grad != 0).sum() >= 7  # those that some node selects, or all


def dense(conv: LGConv, mask: Tensor) -> Tensor:
    """The masked layer on dense matrices: each message is multiplied before it is ranked."""
    matrix, entries = torch.zeros(5, 5), torch.zeros(5, 5, dtype=torch.bool)
    matrix[EDGES[1], EDGES[0]], entries[EDGES[1], EDGES[0]] = 1.0, True
    factor = torch.ones(5, 5)
    factor[EDGES[1], EDGES[0]] = mask
    if conv.self_loops:
        matrix.fill_diagonal_(1.0)
        entries.fill_diagonal_(True)
    if conv.rank == "normalized":
        root = matrix.sum(1).sqrt()
        matrix = matrix / (root[:, None] * root)
    grids = []
    for i in range(5):
        among = entries[i].nonzero().squeeze(1)
        values = (factor * matrix)[i, among, None] * X[among]
        if conv.zeros == "compete":
            values = values.clamp(min=0)
        values = torch.cat([values.sort(0, descending=True).values, torch.zeros(conv.k, 2)])
        rows = [X[i : i + 1], values[: conv.k]]
        if conv.mean:
            total = (factor * matrix)[i] @ X
            rows.append((total if conv.rank == "normalized" else total / matrix[i].sum())[None])
        grids.append(torch.cat(rows))
    return conv.convolve(torch.stack(grids))


@pytest.mark.parametrize("rank", ["raw", "normalized"])
@pytest.mark.parametrize("self_loops", [False, True])
@pytest.mark.parametrize("zeros", ["pad", "compete"])
@pytest.mark.parametrize("mean", [False, True])
def test_a_mask_multiplies_messages_before_the_selection(
    rank: str, self_loops: bool, zeros: str, mean: bool
) -> None:
    conv = LGConv(2, 3, k=2, rank=rank, self_loops=self_loops, zeros=zeros, mean=mean)
    expected = dense(conv, MASK)
    torch.testing.assert_close(masked(conv, MASK, X, EDGES), expected)
    graph = Graph.as_given(EDGES, 5)
    order = EDGES[1].argsort(stable=True)  # the mask of a graph follows graph.edge_index
    torch.testing.assert_close(masked(conv, MASK[order], X, graph), expected)
    with torch.no_grad():
        torch.testing.assert_close(masked(conv.eval(), MASK, X, EDGES), expected)


def test_a_mask_of_zero_among_competing_zeros_is_an_edge_less() -> None:
    conv = LGConv(2, 3, k=2, rank="normalized", self_loops=True, zeros="compete")
    mask = torch.ones(10)
    mask[[0, 4]] = 0
    adjacency = Graph.as_given(EDGES, 5).adjacency(normalize=True, self_loops=True)
    rows = torch.arange(5).repeat_interleave(adjacency.rowptr.diff())
    gone = [(3, 0), (2, 1)]
    pairs = zip(adjacency.col.tolist(), rows.tolist(), strict=True)
    kept = torch.tensor([pair not in gone for pair in pairs])
    counts = torch.bincount(rows[kept], minlength=5)
    rowptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    without = CSR(rowptr, adjacency.col[kept], adjacency.weight[kept])
    torch.testing.assert_close(masked(conv, mask, X, EDGES), conv(X, without))


def test_gcn_layers_mask_the_normalised_entries() -> None:
    matrix = torch.zeros(5, 5)
    matrix[EDGES[1], EDGES[0]] = 1.0
    matrix.fill_diagonal_(1.0)
    root = matrix.sum(1).sqrt()
    factor = torch.ones(5, 5)
    factor[EDGES[1], EDGES[0]] = MASK
    factor = factor * matrix / (root[:, None] * root)
    graph = Graph.as_given(EDGES, 5)
    mask = MASK[EDGES[1].argsort(stable=True)]
    gcn, diffusion, total = GCNLayer(2, 3), Diffusion(2, 3, hops=2), NormalizedSum(2, 3)
    torch.testing.assert_close(masked(gcn, mask, X, graph), factor @ gcn.transform(X))
    torch.testing.assert_close(masked(total, mask, X, graph), factor @ (X @ total.weight))
    mean = (X + factor @ X + factor @ factor @ X) / 3
    torch.testing.assert_close(masked(diffusion, mask, X, graph), diffusion.transform(mean))


def test_means_and_attention_keep_their_denominators() -> None:
    graph = Graph.as_given(EDGES, 5)
    half = torch.full((10,), 0.5)
    mean = NeighbourMean(2, 4)
    torch.testing.assert_close(masked(mean, half, X, graph), mean(X, graph) / 2)
    attention = Attention(2, 4, heads=2)
    alone = masked(attention, torch.zeros(10), X, graph)  # node 4 has a self-loop of its own
    share = attention(X, graph) - alone
    torch.testing.assert_close(masked(attention, half, X, graph), alone + share / 2)
    assert alone[4].abs().max() == 0
    assert alone[0].abs().max() > 0


@pytest.mark.parametrize("name", ["LGConv", "LGCN", "LGCN, diffusion", "residual, lgcl"])
def test_gnn_explainer_finds_masks(name: str) -> None:
    model = LAYERS[name]()
    explainer = Explainer(
        model,
        GNNExplainer(epochs=5),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "node",
            "return_type": "raw",
        },
    )
    explanation = explainer(X, EDGES, index=0)
    assert explanation.edge_mask.shape == (10,)
    assert (explanation.edge_mask > 0).sum() >= 2
    into = EDGES[1] == 0
    assert explanation.edge_mask[into].max() > 0
    if name == "LGConv":  # one hop
        assert explanation.edge_mask[~into].max() == 0
    assert 0 <= unfaithfulness(explainer, explanation) <= 1
    assert all(0 <= value <= 1 for value in fidelity(explainer, explanation))
    model.eval()
    assert torch.equal(model(X, EDGES), model(X, Graph.as_given(EDGES, 5)))  # masks are gone
    later = torch.ones(10, requires_grad=True)  # PyG makes a parameter of the mask before
    masked(model, later, X, EDGES).sum().backward()
    assert later.grad.abs().sum() > 0
    assert not any("mask" in key for key in model.state_dict())


def test_a_layer_can_be_left_unmasked() -> None:
    conv = LGConv(2, 3, k=2)
    conv.explain = False
    assert torch.equal(masked(conv, torch.zeros(10), X, EDGES), conv(X, EDGES))


def test_what_cannot_be_masked_is_refused() -> None:
    graph = make_graph()
    model = LGCN(5, 3)
    with pytest.raises(ValueError, match=r"one entry per edge \(10\), got shape \[4\]"):
        masked(LGConv(2, 3), torch.ones(4), X, EDGES)
    with pytest.raises(ValueError, match=r"adj_dropout \(0.5\) .* call eval"):
        masked(LGConv(2, 3, adj_dropout=0.5), MASK, X, EDGES)
    set_masks(model, torch.ones(graph.num_edges), graph.edge_index)
    with pytest.raises(UsageError, match="block by block"):
        layerwise(model.eval(), graph, memory=10**9)
