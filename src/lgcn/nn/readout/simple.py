"""Sum, mean and maximum over the nodes of each graph."""

from typing import Literal

from torch import Tensor
from torch.nn import Module

from lgcn.nn.groups import rows_of_graphs
from lgcn.ops import k_largest_values, spmm

Reduce = Literal["sum", "mean", "max"]


class SimpleReadout(Module):
    """The sum, the mean or the maximum over the nodes of each graph, zeros if it has none.

    The summation order is fixed on every device. The gradient of a maximum goes to the first node
    that has it.

    Args:
        reduce: `"sum"`, `"mean"` or `"max"`.

    Shapes:
        - **input:** node features $(N, C)$ and the node offsets of the graphs $(G + 1)$
        - **output:** $(G, C)$
    """

    def __init__(self, reduce: Reduce) -> None:
        super().__init__()
        if reduce not in ("sum", "mean", "max"):
            raise ValueError(f"reduce must be sum, mean or max, got {reduce!r}")
        self.reduce = reduce

    def forward(self, x: Tensor, ptr: Tensor) -> Tensor:
        """Reads out each graph.

        Args:
            x: Node features.
            ptr: Node offsets of the graphs.
        """
        rowptr, col, _ = rows_of_graphs(ptr, x.size(0))
        if self.reduce == "max":
            return k_largest_values(x, rowptr, col, 1).squeeze(1)
        total = spmm(rowptr, col, x.new_ones(x.size(0)), x)
        if self.reduce == "sum":
            return total
        return total / ptr.diff().clamp(min=1).unsqueeze(1)

    def extra_repr(self) -> str:
        return self.reduce
