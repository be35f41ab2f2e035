"""Why a network predicts what it predicts: contributions, selections, counterfactuals."""

from lgcn.explain.explainer import NodeExplainer, explain_nodes
from lgcn.explain.explanation import Explanation
from lgcn.explain.graph_explainer import GraphExplainer
from lgcn.explain.selection import LayerSelection, selected_neighbours

__all__ = [
    "Explanation",
    "GraphExplainer",
    "LayerSelection",
    "NodeExplainer",
    "explain_nodes",
    "selected_neighbours",
]
