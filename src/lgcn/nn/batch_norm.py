"""Batch normalisation that also works on blocks of rows, and on rows that do not all count."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import BatchNorm1d

from lgcn.nn.rows import RowLayer, Rows


class _Current(threading.local):
    share: Tensor | None = None


_current = _Current()


@contextmanager
def counting_rows(share: Tensor | None) -> Iterator[None]:
    """Within this context, statistics of a batch are those of some of its rows.

    Args:
        share: One over the number of the rows that count, for each of these, and 0 for the others.
            `None` if all rows count.
    """
    before, _current.share = _current.share, share
    try:
        yield
    finally:
        _current.share = before


class BatchNorm(RowLayer, BatchNorm1d):
    """`torch.nn.BatchNorm1d`. Without running statistics, a block is normalised by all rows.

    Less than two rows have no variance. In training they are normalised by the running statistics,
    if there are any, which they leave as they are.
    """

    def forward(self, x: Tensor) -> Tensor:
        if self.training and _current.share is not None:
            return self._by_some(x, _current.share.unsqueeze(1))
        if self.training and x.size(0) < 2 and self.track_running_stats:
            mean, variance = self.running_mean, self.running_var
            return F.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)
        return super().forward(x)

    def _by_some(self, x: Tensor, share: Tensor) -> Tensor:
        """Normalises by the statistics of the rows that have a share, of which there are two."""
        values = x.float() if x.dtype in (torch.bfloat16, torch.float16) else x
        share = share.to(values.dtype)
        mean = (values * share).sum(0)
        centred = values - mean
        variance = (centred.square() * share).sum(0)
        if self.track_running_stats:
            self._track(mean.detach(), variance.detach(), share.count_nonzero())
        out = centred * (variance + self.eps).rsqrt() * self.weight + self.bias
        return out.to(x.dtype)

    def _track(self, mean: Tensor, variance: Tensor, rows: Tensor) -> None:
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.num_batches_tracked is not None
        assert self.momentum is not None
        self.num_batches_tracked.add_(1)
        self.running_mean.lerp_(mean, self.momentum)
        self.running_var.lerp_(variance * (rows / (rows - 1)), self.momentum)

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
