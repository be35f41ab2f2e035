"""Batch norm is torch's; on blocks of rows it is tested with the layers (test_layerwise)."""

import pytest
import torch

from lgcn.nn.batch_norm import BatchNorm, counting_rows


@pytest.mark.parametrize("running", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_it_is_the_batch_norm_of_torch(running: bool, training: bool) -> None:
    x = torch.randn(20, 4) * 3 + 1
    own = BatchNorm(4, track_running_stats=running).train(training)
    torchs = torch.nn.BatchNorm1d(4, track_running_stats=running).train(training)
    assert torch.equal(own(x), torchs(x))
    assert list(own.state_dict()) == list(torchs.state_dict())


@pytest.mark.parametrize("running", [False, True])
def test_it_counts_some_rows_only(running: bool) -> None:
    torch.manual_seed(0)
    x, more = torch.randn(20, 4) * 3 + 1, torch.randn(7, 4) * 100
    share = torch.cat([torch.full((20,), 1 / 20), torch.zeros(7)])
    plain = BatchNorm(4, track_running_stats=running)
    padded = BatchNorm(4, track_running_stats=running)
    for _ in range(2):  # running averages of two batches
        inside, every = x.clone().requires_grad_(), torch.cat([x, more]).requires_grad_()
        with counting_rows(share):
            found = padded(every)[:20]
        expected = plain(inside)
        torch.testing.assert_close(found, expected)
        (gradient,) = torch.autograd.grad(found.sin().sum(), every)
        torch.testing.assert_close(
            gradient[:20], torch.autograd.grad(expected.sin().sum(), inside)[0]
        )
        assert torch.equal(gradient[20:], torch.zeros(7, 4))
    for name, value in plain.named_buffers():
        torch.testing.assert_close(padded.get_buffer(name), value)
    assert torch.equal(padded.eval()(x), padded(x))


def test_all_rows_count_again_afterwards() -> None:
    x, norm = torch.randn(6, 2), BatchNorm(2)
    expected = BatchNorm(2)(x)
    with pytest.raises(KeyError), counting_rows(torch.ones(6)):
        raise KeyError
    assert torch.equal(norm(x), expected)
