"""Batch normalisation that also works on blocks of rows."""

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d

from lgcn.nn.rows import RowLayer, Rows


class BatchNorm(RowLayer, BatchNorm1d):
    """`torch.nn.BatchNorm1d`. Without running statistics, a block is normalised by all rows."""

    def rows(self, x: Rows) -> Rows:
        if self.track_running_stats:
            return x.then(self.forward)
        x = x.stored("before norm")

        @cache
        def statistics() -> tuple[Tensor, Tensor]:
            return _mean_and_variance(x)

        def normalize(block: Tensor) -> Tensor:
            mean, variance = statistics()
            return F.batch_norm(block, mean, variance, self.weight, self.bias, eps=self.eps)

        return x.then(normalize)


def _mean_and_variance(x: Rows) -> tuple[Tensor, Tensor]:
    """Of each column, over all rows, in double precision."""
    matrix = x.matrix()
    blocks = [slice(*bounds) for bounds in x.work.blocks(24 * x.width)]
    zero = torch.zeros(x.width, dtype=torch.double)
    mean = sum((matrix[rows].double().sum(0) for rows in blocks), zero) / len(matrix)
    squares = sum(((matrix[rows] - mean).square().sum(0) for rows in blocks), zero)
    variance = squares / len(matrix)
    return mean.to(x.work.device, matrix.dtype), variance.to(x.work.device, matrix.dtype)
