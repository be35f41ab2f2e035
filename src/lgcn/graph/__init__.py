"""The graph: its data structure, CSR arithmetic, features and splits."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.graph.graph import SPLITS, Graph

__all__ = ["SPLITS", "Graph"]
__getattr__ = lazy_names(__name__, dict.fromkeys(__all__, "lgcn.graph.graph"))
