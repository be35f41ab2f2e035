"""The graph: its data structure, CSR arithmetic, features and splits."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lgcn.graph.graph import SPLITS, Graph

__all__ = ["SPLITS", "Graph"]


def __getattr__(name: str) -> Any:
    # Imported when first used: splits and features are checked before torch is imported.
    if name not in __all__:
        raise AttributeError(f"module 'lgcn.graph' has no attribute {name!r}")
    from lgcn.graph import graph

    return getattr(graph, name)
