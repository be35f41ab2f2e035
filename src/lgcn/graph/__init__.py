"""The graph: its data structure, CSR arithmetic, features and splits."""

from lgcn.graph.graph import SPLITS, Graph

__all__ = ["SPLITS", "Graph"]
