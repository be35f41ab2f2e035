"""The graph: its data structure, CSR arithmetic, features and splits."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.graph.graph import SPLITS, Graph
    from lgcn.graph.graph_set import GraphSet

__all__ = ["SPLITS", "Graph", "GraphSet"]
_HOME = {
    "SPLITS": "lgcn.graph.graph",
    "Graph": "lgcn.graph.graph",
    "GraphSet": "lgcn.graph.graph_set",
}
__getattr__ = lazy_names(__name__, _HOME)
