"""Contributions as an algorithm of `torch_geometric.explain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.explain.config import MaskType, ModelMode, ModelTaskLevel

from lgcn.errors import UsageError
from lgcn.explain.explainer import NodeExplainer
from lgcn.explain.parts import not_explained
from lgcn.explain.worlds import NETWORKS
from lgcn.graph import Graph
from lgcn.training.model_spec import ModelSpec


class LGCNExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """Contributions of nodes, features and edges, for PyG's `Explainer`.

    ```python
    explainer = Explainer(
        model,
        LGCNExplainer(),
        explanation_type="model",
        node_mask_type="attributes",
        edge_mask_type="object",
        model_config=ModelConfig(
            mode="multiclass_classification", task_level="node", return_type="raw"
        ),
    )
    explanation = explainer(x, edge_index, index=7)
    ```

    For an `lgcn.LGCN` or a `lgcn.nn.residual.ResidualLGCN`, the masks are the contributions of
    `lgcn.explain_nodes`: they add up to the score exactly. For any other model, such as one with
    `lgcn.LGConv` among other layers, gradients are integrated along the way from no features, or
    from no messages, in `steps` steps; what was selected follows along. Negative entries speak
    against the target. Several nodes are added up.

    Args:
        steps: Steps of the integration for other models. (default: 20)
    """

    def __init__(self, steps: int = 20) -> None:
        super().__init__()
        if steps < 1:
            raise UsageError(f"steps must be at least 1, got {steps}")
        self.steps = steps

    def supports(self) -> bool:
        """Whether the configuration can be explained."""
        if self.model_config.task_level != ModelTaskLevel.node:
            return False
        return self.explainer_config.edge_mask_type in (None, MaskType.object)

    def forward(
        self,
        model: Module,
        x: Any,
        edge_index: Any,
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> PyGExplanation:
        """Explains the nodes `index`, by default all, see PyG's `ExplainerAlgorithm`."""
        if isinstance(x, dict) or isinstance(edge_index, dict):
            raise UsageError("x and edge_index must be tensors: relations are not explained")
        number = torch.arange(x.size(0)) if index is None else torch.as_tensor(index)
        nodes = number.reshape(-1).cpu()
        exact = isinstance(model, NETWORKS) and not not_explained(model)
        if exact and set(kwargs) <= {"edge_weight"}:
            by_value, by_edge = self._exact(model, x, edge_index, target, nodes, **kwargs)
        else:
            by_value, by_edge = self._integrated(model, x, edge_index, target, nodes, kwargs)
        kind = self.explainer_config.node_mask_type
        masks: dict[str, Tensor | None] = {"node_mask": None, "edge_mask": None}
        if kind is not None:
            sums: dict[MaskType, Callable[[], Tensor]] = {
                MaskType.object: lambda: by_value.sum(1, keepdim=True),
                MaskType.common_attributes: lambda: by_value.sum(0, keepdim=True),
                MaskType.attributes: lambda: by_value,
            }
            masks["node_mask"] = sums[kind]()
        if self.explainer_config.edge_mask_type is not None:
            masks["edge_mask"] = by_edge
        return PyGExplanation(**masks)

    def _exact(
        self,
        model: Module,
        x: Tensor,
        edge_index: Tensor,
        target: Tensor,
        nodes: Tensor,
        edge_weight: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Contributions of the values of x, and of the edges."""
        graph = Graph.as_given(edge_index, x.size(0), edge_weight=edge_weight, x=x.detach()).to(
            "cpu"
        )
        layer: Any = model.classifier
        multi = self.model_config.mode == ModelMode.multiclass_classification
        spec = ModelSpec(x.size(1), layer.out_channels)
        explainer = NodeExplainer(model, graph, spec=spec)
        weight = explainer.parts[0].model.first_layer.linear_map()[0].detach()
        # Rows are sorted by target, each in the order of the edges.
        order = edge_index[1].cpu().argsort(stable=True)
        by_value, by_edge = torch.zeros_like(graph.features()), torch.zeros(graph.num_edges)
        for node in nodes.tolist():
            sign = self._sign(target, node)
            found = explainer.contributions(node, target=int(target[node]) if multi else 0)
            (share,) = found.shares
            local = share.field.nodes
            by_value[local] += sign * share.field.graph.features() * (share.slope @ weight.t())
            by_edge[order[share.field.entry]] += sign * share.by_edge.float()
        return by_value.to(x), by_edge.to(x.device)

    def _integrated(
        self,
        model: Module,
        x: Tensor,
        edge_index: Tensor,
        target: Tensor,
        nodes: Tensor,
        kwargs: dict[str, Any],
    ) -> tuple[Tensor, Tensor]:
        """The same by integrated gradients, the edges by PyG's masks."""

        def score(features: Tensor) -> Tensor:
            out: Tensor = model(features, edge_index, **kwargs)[nodes]
            if self.model_config.mode == ModelMode.multiclass_classification:
                wanted = target[nodes].reshape(-1, 1)
                others = out.scatter(1, wanted, -torch.inf).logsumexp(1)
                return (out.gather(1, wanted).squeeze(1) - others).sum()
            signs = torch.tensor([self._sign(target, node) for node in nodes.tolist()])
            return (out.reshape(len(nodes), -1).sum(1) * signs.to(out)).sum()

        by_value = torch.zeros_like(x)
        by_edge = x.new_zeros(edge_index.size(1))
        try:
            for step in range(self.steps):
                factor = (step + 0.5) / self.steps
                features = (factor * x).detach().requires_grad_()
                (slope,) = torch.autograd.grad(score(features), features)
                by_value += slope * x.detach() / self.steps
                mask = by_edge.new_full(by_edge.shape, factor).requires_grad_()
                set_masks(model, mask, edge_index, apply_sigmoid=False)
                (slope,) = torch.autograd.grad(score(x.detach()), mask, allow_unused=True)
                clear_masks(model)
                if slope is not None:
                    by_edge = by_edge + slope / self.steps
        finally:
            clear_masks(model)
        return by_value, by_edge.detach()

    def _sign(self, target: Tensor, node: int) -> int:
        """Of two classes with one output, the first speaks for small outputs."""
        if self.model_config.mode == ModelMode.binary_classification:
            return 1 if int(target[node]) > 0 else -1
        return 1
