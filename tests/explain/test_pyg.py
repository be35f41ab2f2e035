"""PyG's Explainer with our algorithm: masks have the right shape and are the contributions."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.explain import Explainer, ModelConfig
from torch_geometric.nn import GCNConv

import lgcn
from lgcn.errors import UsageError
from lgcn.explain import NodeExplainer
from lgcn.explain.pyg import LGCNExplainer
from lgcn.nn.edge_factor import EdgeFactor
from lgcn.nn.residual import ResidualLGCN

from .networks import FEATURES, build, random_graph


def explainer(model: torch.nn.Module, mode: str = "multiclass_classification", **masks: Any) -> Any:
    masks = masks or {"node_mask_type": "attributes", "edge_mask_type": "object"}
    config = ModelConfig(mode=mode, task_level="node", return_type="raw")
    return Explainer(model, LGCNExplainer(), explanation_type="model", model_config=config, **masks)


@pytest.mark.parametrize("kind", ["lgcn", "residual"])
def test_masks_are_the_native_contributions(kind: str):
    model = build(kind, {"num_layers": 2})
    graph = random_graph()
    order = torch.randperm(graph.num_edges)  # PyG's edges come in any order
    edges = graph.edge_index[:, order]
    x = graph.features()
    found = explainer(model)(x, edges, index=4)
    assert found.validate(raise_on_error=True)
    native = NodeExplainer(model, lgcn.Graph.as_given(edges, 20, x=x)).contributions(4)
    (share,) = native.shares
    added = torch.zeros(20, dtype=torch.double)
    added[share.field.nodes] = share.by_node
    torch.testing.assert_close(found.node_mask.sum(1), added)
    torch.testing.assert_close(found.node_mask.sum(0), share.by_feature())
    pairs: dict[tuple[int, int], float] = {}
    rows = torch.arange(len(share.field.nodes)).repeat_interleave(
        share.field.graph.rowptr.diff().long()
    )
    for source, target, value in zip(
        share.field.nodes[share.field.graph.col.long()].tolist(),
        share.field.nodes[rows].tolist(),
        share.by_edge.tolist(),
        strict=True,
    ):
        pairs[source, target] = value
    expected = [pairs.get((a, b), 0.0) for a, b in edges.t().tolist()]
    torch.testing.assert_close(found.edge_mask.double(), torch.tensor(expected).double())


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("object", (20, 1)), ("common_attributes", (1, FEATURES)), ("attributes", (20, FEATURES))],
)
def test_masks_of_all_kinds_have_their_shape(kind: str, shape: tuple[int, int]):
    graph = random_graph()
    found = explainer(build("lgcn", {}), node_mask_type=kind)(
        graph.features(), graph.edge_index, index=torch.tensor([1, 2])
    )
    assert tuple(found.node_mask.shape) == shape
    assert "edge_mask" not in found


class Mixed(torch.nn.Module):
    """A model of PyG that has an LGCL among other layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GCNConv(FEATURES, 6)
        self.second = lgcn.LGConv(6, 3, k=2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.second(self.first(x, edge_index).relu(), edge_index)
        return out


def test_other_models_are_explained_by_integrated_gradients():
    model = Mixed().double().eval()
    graph = random_graph()
    x, edges = graph.features(), graph.edge_index
    algorithm = explainer(model)
    algorithm.algorithm.steps = 400
    found = algorithm(x, edges, index=4)
    assert found.validate(raise_on_error=True)

    def odds(features: Tensor) -> float:
        scores = model(features, edges)[4]
        target = int(model(x, edges)[4].argmax())
        return float(torch.logit(scores.softmax(0)[target]))

    rise = odds(x) - odds(torch.zeros_like(x))
    assert float(found.node_mask.sum()) == pytest.approx(rise, abs=0.02)
    assert found.edge_mask.shape == (edges.size(1),)
    assert float(found.edge_mask.abs().sum()) > 0
    assert model.first._edge_mask is None  # nothing is left behind


def test_a_binary_model_is_explained_towards_its_class():
    model = lgcn.LGCN(FEATURES, 1, hidden_channels=4).double().eval()
    graph = random_graph()
    x, edges = graph.features(), graph.edge_index
    scores = model(x, edges).squeeze(1)
    explain = explainer(model, "binary_classification", node_mask_type="attributes")
    native = NodeExplainer(model, graph)
    for node in (int(scores.argmax()), int(scores.argmin())):
        found = explain(x, edges, index=node)
        sign = 1 if float(scores[node]) > 0 else -1
        added = sign * native.contributions(node, target=0).shares[0].by_node.sum()
        torch.testing.assert_close(found.node_mask.sum(), added)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(UsageError, match="steps must be at least 1, got 0"):
        LGCNExplainer(steps=0)
    config = ModelConfig(mode="multiclass_classification", task_level="graph", return_type="raw")
    with pytest.raises(ValueError, match="not support"):
        Explainer(
            build("lgcn", {}),
            LGCNExplainer(),
            explanation_type="model",
            model_config=config,
            edge_mask_type="object",
        )


def test_networks_of_edge_features_and_both_directions_are_explained_by_masks():
    graph = random_graph()
    attr = torch.randn(graph.num_edges, 2)
    options = {"hidden_channels": 8, "num_layers": 1, "norm": "none", "directions": "both"}
    model = ResidualLGCN(FEATURES, 3, edge_channels=2, **options).double().eval()
    for module in model.modules():
        if isinstance(module, EdgeFactor):
            torch.nn.init.normal_(module.weight)
    x = graph.features()
    found = explainer(model)(x, graph.edge_index, edge_attr=attr, index=4)
    assert found.edge_mask.shape == (graph.num_edges,)
    near = (graph.edge_index == 4).any(0)
    assert bool(found.edge_mask[near].any())
    assert not bool(found.edge_mask[~near].any())  # with one layer, in both directions
    plain = ResidualLGCN(FEATURES, 3, **options).double().eval()
    assert bool(explainer(plain)(x, graph.edge_index, index=4).edge_mask.any())
