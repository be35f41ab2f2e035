"""The k-largest selection as a PyG aggregation."""

import torch
from torch import Tensor
from torch_geometric.nn.aggr import Aggregation

from lgcn.nn.groups import rows_of_groups
from lgcn.ops import k_largest_values
from lgcn.ops.k_largest import Zeros

REDUCTIONS = ("mean", "learn", "cat")


class KLargestAggregation(Aggregation):  # type: ignore[misc]
    r"""Aggregates each feature by its $k$ largest values, so that any PyG convolution can select as
    an LGCL does ([paper](https://arxiv.org/abs/1808.03965)).

    A PyG convolution expects as many features back as it sent. The $k$ values of a feature are
    therefore reduced to one, or concatenated for code that expects that.

    Args:
        k: How many values to keep per feature.
        reduce: `"mean"`, the mean of the selected values; `"learn"`, a weighted sum with one
            learned weight per rank, shared by all features; or `"cat"`, all values: first the
            largest of every feature, then the second largest, with zeros if a group has fewer than
            $k$ rows. (default: `"mean"`)
        zeros: How zeros take part in the selection, see `lgcn.k_largest`. (default: `"pad"`)

    Shapes:
        - **input:** $(E, C)$ and the group of each row, sorted or not
        - **output:** $(N, C)$, or $(N, k C)$ with `"cat"`

    Example:
        ```python
        from torch_geometric.nn import SAGEConv

        conv = SAGEConv(16, 32, aggr=KLargestAggregation(k=4))
        ```
    """

    def __init__(self, k: int, reduce: str = "mean", zeros: Zeros = "pad") -> None:
        super().__init__()
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        if reduce not in REDUCTIONS:
            raise ValueError(f"reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
        self.k = k
        self.reduce_mode = reduce
        self.zeros: Zeros = zeros
        self.weight = torch.nn.Parameter(torch.empty(k)) if reduce == "learn" else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the learned weights to the mean over the k ranks."""
        if self.weight is not None:
            torch.nn.init.constant_(self.weight, 1 / self.k)

    def forward(
        self,
        x: Tensor,
        index: Tensor | None = None,
        ptr: Tensor | None = None,
        dim_size: int | None = None,
        dim: int = -2,
        max_num_elements: int | None = None,
    ) -> Tensor:
        """Aggregates the rows of each group, see PyG's `Aggregation.forward`."""
        self.assert_two_dimensional_input(x, dim)
        if ptr is None:
            if index is None:
                index = torch.zeros(x.size(0), dtype=torch.long, device=x.device)
            ptr, rows, _ = rows_of_groups(index, dim_size)
        else:
            rows = torch.arange(x.size(0), device=x.device)
        values = k_largest_values(x, ptr, rows.to(ptr.dtype), self.k, zeros=self.zeros)
        if self.reduce_mode == "cat":
            return values.flatten(1)
        if self.weight is not None:
            return torch.einsum("nkc,k->nc", values, self.weight)
        count = ptr.diff().clamp(min=1, max=self.k).unsqueeze(1)
        return values.sum(dim=1) / count

    def __repr__(self) -> str:
        return f"{type(self).__name__}(k={self.k}, reduce={self.reduce_mode!r})"
