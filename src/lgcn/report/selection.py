"""What the LGCLs of a model selected, as shares of a node's grid."""

from __future__ import annotations

from lgcn.errors import LGCNError, one_line
from lgcn.inference.explanations import RunExplainer
from lgcn.report.neighbourhoods import LayerShares
from lgcn.report.node_results import Array


def selection_shares(explainer: RunExplainer, nodes: Array) -> list[LayerShares] | str:
    """Per LGCL, how much of the grid of each node its neighbours fill; or why there is none.

    Args:
        explainer: That of the run.
        nodes: Node numbers.
    """
    try:
        found = explainer.selected_neighbours(nodes)
    except LGCNError as error:
        return f"What the layers selected is not known: {one_line(error)}."
    if not found:
        return "The model has no LGCL, so nothing was selected."
    return [
        LayerShares(
            f"LGCL {layer.layer}",
            layer.node.numpy(),
            layer.neighbour.numpy(),
            layer.count.numpy() / (layer.k * layer.features),
        )
        for layer in found
    ]
