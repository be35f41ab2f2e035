"""What the LGCLs of a model selected, as shares of a node's grid."""

from __future__ import annotations

from typing import Any

from lgcn.graph import Graph
from lgcn.report.neighbourhoods import LayerShares
from lgcn.report.node_results import Array


def selection_shares(model: Any, graph: Graph, nodes: Array) -> list[LayerShares] | str:
    """Per LGCL, how much of the grid of each node its neighbours fill; or why there is none."""
    return "(not yet)"
