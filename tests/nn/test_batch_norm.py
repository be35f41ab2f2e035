"""Batch norm is torch's; on blocks of rows it is tested with the layers (test_layerwise)."""

import pytest
import torch

from lgcn.nn.batch_norm import BatchNorm


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_it_is_the_batch_norm_of_torch(running: bool, training: bool) -> None:
    x = torch.randn(20, 4) * 3 + 1
    own = BatchNorm(4, track_running_stats=running).train(training)
    torchs = torch.nn.BatchNorm1d(4, track_running_stats=running).train(training)
    assert torch.equal(own(x), torchs(x))
    assert list(own.state_dict()) == list(torchs.state_dict())
