"""A small estimator, and the parts of a graph as users hold them."""

from typing import Any

import numpy as np
import scipy.sparse

from lgcn import Graph
from lgcn.estimator import LGCNClassifier

# Why two checks of scikit-learn cannot apply.
REPEATED = (
    "it compares weights with repeated rows; here rows are nodes, and other rows are another graph "
    "with other validation nodes"
)


def small(kind: Any = LGCNClassifier, /, **given: Any) -> Any:
    """An estimator that trains in a fraction of a second."""
    options = {"hidden_channels": 8, "k": 4, "lr": 0.05, "max_epochs": 12}
    return kind(**{**options, "random_state": 0, **given})


def parts(graph: Graph) -> tuple[Any, Any, Any]:
    """Features, labels and edges as arrays."""
    assert graph.x is not None
    assert graph.y is not None
    return graph.x.numpy(), graph.y.numpy(), graph.edge_index.numpy()


def adjacency(graph: Graph) -> Any:
    ones = np.ones(graph.num_edges, dtype=np.float32)
    shape = (graph.num_nodes, graph.num_nodes)
    return scipy.sparse.csr_matrix((ones, graph.col.numpy(), graph.rowptr.numpy()), shape=shape)
