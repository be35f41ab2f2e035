"""Large-Scale Learnable Graph Convolutional Networks for PyTorch and PyTorch Geometric."""

import os
from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.datasets import load_dataset
    from lgcn.datasets.graph_sets import load_graphs
    from lgcn.estimator import GraphClassifier, GraphRegressor, LGCNClassifier, LGCNRegressor
    from lgcn.explain import explain_nodes, selected_neighbours
    from lgcn.graph import Graph, GraphSet
    from lgcn.inference import load_run, predict
    from lgcn.nn import LGCN, GraphLGCN, KLargestAggregation, KLargestReadout, LGConv
    from lgcn.ops import k_largest
    from lgcn.partition import open_partition
    from lgcn.sampling import GraphSetLoader, SubgraphLoader, select_subgraph
    from lgcn.store.open_store import open_store
    from lgcn.store.write_store import write_store
    from lgcn.tables.from_graphs import from_networkx, from_scipy
    from lgcn.tables.from_tables import from_tables
    from lgcn.tables.graphs_from_tables import graphs_from_tables
    from lgcn.training import train
    from lgcn.training.settings import Settings

__version__ = "0.1.0"

# A step of training on a CPU makes and frees tensors of some hundred megabytes, whose pages of 4 KB
# the system hands out one by one. torch asks for huge pages if this is set before its first tensor,
# and with many labels an epoch is 1.2 times as fast (benchmarks/huge_pages.py).
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")

__all__ = [
    "LGCN",
    "Graph",
    "GraphClassifier",
    "GraphLGCN",
    "GraphRegressor",
    "GraphSet",
    "GraphSetLoader",
    "KLargestAggregation",
    "KLargestReadout",
    "LGCNClassifier",
    "LGCNRegressor",
    "LGConv",
    "Settings",
    "SubgraphLoader",
    "explain_nodes",
    "from_networkx",
    "from_scipy",
    "from_tables",
    "graphs_from_tables",
    "k_largest",
    "load_dataset",
    "load_graphs",
    "load_run",
    "open_partition",
    "open_store",
    "predict",
    "select_subgraph",
    "selected_neighbours",
    "train",
    "write_store",
]

# Where each name is defined, by what it is for. It is imported when it is first used: torch and PyG
# take seconds, which `lgcn --help` should not.
_HOME = {
    # A graph: from your tables, from other libraries, by name, on disk.
    "Graph": "lgcn.graph",
    "from_tables": "lgcn.tables.from_tables",
    "from_networkx": "lgcn.tables.from_graphs",
    "from_scipy": "lgcn.tables.from_graphs",
    "load_dataset": "lgcn.datasets",
    "open_store": "lgcn.store.open_store",
    "write_store": "lgcn.store.write_store",
    "open_partition": "lgcn.partition",
    # Many graphs, each with a label.
    "GraphSet": "lgcn.graph",
    "load_graphs": "lgcn.datasets.graph_sets",
    "graphs_from_tables": "lgcn.tables.graphs_from_tables",
    # A model: train one, use a trained one.
    "LGCNClassifier": "lgcn.estimator",
    "LGCNRegressor": "lgcn.estimator",
    "GraphClassifier": "lgcn.estimator",
    "GraphRegressor": "lgcn.estimator",
    "Settings": "lgcn.training.settings",
    "train": "lgcn.training",
    "load_run": "lgcn.inference",
    "predict": "lgcn.inference",
    # Why it predicts what it predicts.
    "explain_nodes": "lgcn.explain",
    "selected_neighbours": "lgcn.explain",
    # Its parts: the networks, the layer, the selection, the read-out of graphs, Algorithm 1.
    "LGCN": "lgcn.nn",
    "LGConv": "lgcn.nn",
    "KLargestAggregation": "lgcn.nn",
    "GraphLGCN": "lgcn.nn",
    "KLargestReadout": "lgcn.nn",
    "k_largest": "lgcn.ops",
    "SubgraphLoader": "lgcn.sampling",
    "select_subgraph": "lgcn.sampling",
    "GraphSetLoader": "lgcn.sampling",
}
__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
