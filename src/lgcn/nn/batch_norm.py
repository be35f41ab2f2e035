"""Batch normalisation that also works on blocks of rows."""

import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d

from lgcn.nn.rows import RowLayer, Rows


class BatchNorm(RowLayer, BatchNorm1d):
    """`torch.nn.BatchNorm1d`. Without running statistics, a block is normalised by all rows.

    Less than two rows have no variance. In training they are normalised by the running statistics,
    if there are any, which they leave as they are.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and x.size(0) < 2 and self.track_running_stats:
            mean, variance = self.running_mean, self.running_var
            return F.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)
        return super().forward(x)

    def rows(self, x: Rows) -> Rows:
        if self.track_running_stats:
            return x.then(self.forward)
        x = x.stored("before norm")
        mean, variance = _mean_and_variance(x)

        def normalize(block: Tensor) -> Tensor:
            return F.batch_norm(block, mean, variance, self.weight, self.bias, eps=self.eps)

        return x.then(normalize)


def _mean_and_variance(x: Rows) -> tuple[Tensor, Tensor]:
    """Of each column, over all rows, in double precision."""
    matrix, work = x.matrix(), x.work
    mean = work.column_sums(matrix, lambda rows: rows) / work.total_rows
    squares = work.column_sums(matrix, lambda rows: (rows - mean).square())
    variance = squares / work.total_rows
    return mean.to(work.device, matrix.dtype), variance.to(work.device, matrix.dtype)
