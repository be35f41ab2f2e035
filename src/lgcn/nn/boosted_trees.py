"""Gradient-boosted trees as a model of nodes, stored as plain arrays.

scikit-learn grows the trees (`lgcn.training.boosting`). Here they are kept in tensors of fixed
shapes, so that a safetensors file holds them and no pickle is needed, and evaluated by a loop.
"""

# mypy: disable-error-code="untyped-decorator"

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import Module, Parameter

from lgcn.graph import Graph
from lgcn.ops import spmm
from lgcn.ops.structure import csr_parts
from lgcn.utils.jit import jit

# More features than this are projected to `hidden_channels` before neighbours are averaged.
WIDE = 256


class BoostedTrees(Module):
    """Sums of decision trees over features that are made of a node and its neighbours.

    The features are those of the node, their means over neighbours of one hop, of two hops and so
    on, and the number of neighbours. More than 256 input features are projected first (truncated
    SVD); the node's own features stay as they are up to `raw_features`. The trees are not
    differentiable. They compute whole graphs only, on the CPU.

    Args:
        in_channels: Input features per node.
        num_classes: Number of outputs per node.
        hidden_channels: Columns that more than 256 input features are projected to.
            (default: 128)
        raw_features: Up to this many features of the node itself are not projected: a split can
            then ask for a single one. (default: 256)
        num_layers: Hops over which neighbours are averaged. (default: 2)
        trees: Trees per output, at most. (default: 200)
        leaves: Leaves per tree, at most. (default: 31)
        dropout: Share of the features that a split does not consider; for training only.
            (default: 0)
        input_scale: Factor of the input features. (default: 1)

    Shapes:
        - **input:** node features $(N, C)$, dense or sparse CSR, and the graph
        - **output:** scores before softmax or sigmoid, $(N, classes)$
    """

    used: Tensor
    feature: Tensor
    threshold: Tensor
    missing_left: Tensor
    left: Tensor
    right: Tensor
    value: Tensor

    def __init__(
        self,
        in_channels: int,
        num_classes: int,
        *,
        hidden_channels: int = 128,
        raw_features: int = WIDE,
        num_layers: int = 2,
        trees: int = 200,
        leaves: int = 31,
        dropout: float = 0.0,
        input_scale: float = 1.0,
    ) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.hops = num_layers
        self.input_scale = input_scale
        wide = in_channels > WIDE
        base = min(hidden_channels, in_channels) if wide else in_channels
        self.keep_raw = in_channels <= max(WIDE, raw_features)
        own = in_channels if self.keep_raw else base
        self.columns = own + base * num_layers + 1
        self.projection = (
            Parameter(torch.zeros(in_channels, base), requires_grad=False) if wide else None
        )
        self.baseline = Parameter(torch.zeros(num_classes), requires_grad=False)
        shape = (trees, num_classes, 2 * leaves - 1)
        self.register_buffer("used", torch.zeros(1, dtype=torch.int32))  # trees per output
        # A node whose children are itself is a leaf.
        itself = torch.arange(shape[2], dtype=torch.int32).expand(shape)
        self.register_buffer("left", itself.clone())
        self.register_buffer("right", itself.clone())
        self.register_buffer("feature", torch.zeros(shape, dtype=torch.int32))
        self.register_buffer("threshold", torch.zeros(shape))
        self.register_buffer("missing_left", torch.zeros(shape, dtype=torch.uint8))
        self.register_buffer("value", torch.zeros(shape))

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        """Scores the classes of every node."""
        scores = self.evaluate(self.node_features(x, graph))
        return (scores + self.baseline.detach().cpu()).to(self.baseline.device)

    @torch.no_grad()
    def node_features(self, x: Tensor, graph: Graph) -> Tensor:
        """What the trees read of each node, [nodes, columns] on the CPU."""
        if tuple(x.shape) != (graph.num_nodes, self.in_channels):
            raise ValueError(
                f"x must have shape [nodes, in_channels] = [{graph.num_nodes}, {self.in_channels}],"
                f" got {list(x.shape)}"
            )
        base = self._project(x)
        parts = [base]
        own = self._raw(x) if self.keep_raw else base
        rowptr, col, weight = graph.adjacency()
        values = base.new_ones(col.numel()) if weight is None else weight.to(base)
        total = spmm(rowptr, col, values, base.new_ones(graph.num_nodes, 1))
        for _ in range(self.hops):
            mean = spmm(rowptr, col, values, parts[-1].contiguous())
            parts.append(mean / torch.where(total == 0, 1, total))
        parts.append(rowptr.diff()[:, None].to(base))
        return torch.cat([own, *parts[1:]], dim=1).cpu()

    def _raw(self, x: Tensor) -> Tensor:
        dense = x.to_dense() if x.layout == torch.sparse_csr else x
        return self.input_scale * dense.float()

    def _project(self, x: Tensor) -> Tensor:
        if self.projection is None:
            return self._raw(x)
        matrix = self.input_scale * self.projection.detach().float()
        if x.layout == torch.sparse_csr:
            rowptr, col, values = csr_parts(x)
            return spmm(rowptr, col, values.float(), matrix)
        return x.float() @ matrix

    def evaluate(self, features: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        """The sums of the trees, [rows, outputs].

        Args:
            features: What the trees read, [rows, columns]; NaN is a missing value.
            first, last: Only the trees from `first` up to `last` of each output.
                (default: all that are used)
        """
        last = int(self.used) if last is None else last
        arrays = [
            getattr(self, name)[first:last].cpu().contiguous().numpy()
            for name in ("feature", "threshold", "missing_left", "left", "right", "value")
        ]
        out = np.zeros((len(features), self.value.size(1)))
        _add_trees(features.float().contiguous().numpy(), *arrays, out)
        return torch.from_numpy(out).float()

    def check(self) -> None:
        """Raises ValueError if the arrays are no trees, for example in a damaged file."""
        size = self.left.size(2)
        place = torch.arange(size, dtype=torch.int32)
        leaf = (self.left == place) & (self.right == place)
        below = (self.left > place) & (self.right > place)
        inside = (self.left < size) & (self.right < size)
        known = (self.feature >= 0) & (self.feature < self.columns)
        if not bool(((leaf | below) & inside & known).all()):
            raise ValueError("left, right and feature must describe trees")
        if not 0 <= int(self.used) <= self.left.size(0):
            raise ValueError(f"used must be from 0 to {self.left.size(0)}")
        if bool(self.threshold.isnan().any()) or not bool(self.value.isfinite().all()):
            raise ValueError("threshold and value must be numbers")

    @property
    def first_layer(self) -> Module:
        """The layer that reads the input features: the model itself."""
        return self


@jit
def _add_trees(
    x: Any,
    feature: Any,
    threshold: Any,
    missing_left: Any,
    left: Any,
    right: Any,
    value: Any,
    out: Any,
) -> None:
    for row in range(x.shape[0]):
        for tree in range(feature.shape[0]):
            for output in range(feature.shape[1]):
                node = 0
                while left[tree, output, node] != node:
                    number = x[row, feature[tree, output, node]]
                    if np.isnan(number):
                        to_left = missing_left[tree, output, node] != 0
                    else:
                        to_left = number <= threshold[tree, output, node]
                    node = left[tree, output, node] if to_left else right[tree, output, node]
                out[row, output] += value[tree, output, node]
