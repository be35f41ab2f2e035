"""Functions of worlds whose gradients are differences, where they bend sharply."""

import torch

from lgcn.explain.secant import Differences

EXACT = {"rtol": 1e-12, "atol": 1e-8}


def test_layer_norms_are_exact_where_values_hardly_vary():
    # Their inverse deviation bends sharply near a variance of zero.
    differences = Differences(torch.tensor([0, 0]))
    base = torch.randn(2, 7, dtype=torch.double)
    for size in (1e-1, 1e-3, 1e-4):
        z = (size * base).requires_grad_()
        one, zero = torch.ones(7).double(), torch.zeros(7).double()
        out = differences.layer_norm(z, one, zero, 1e-5)
        weight = torch.arange(7).double()
        (slope,) = torch.autograd.grad((out[1] * weight).sum(), z)
        rise = ((out[0] - out[1]) * weight).sum().detach()
        torch.testing.assert_close((slope[1] * (z[0] - z[1]).detach()).sum(), rise, **EXACT)


def test_log_sum_exp_is_exact_where_one_world_has_far_larger_scores():
    differences = Differences(torch.tensor([0, 0, 1]))
    z = torch.tensor([[60.0, 0.0], [4.0, 0.0], [8.0, 0.0]]).double().requires_grad_()
    out = differences.log_sum_exp(z).squeeze(1)
    torch.testing.assert_close(out, z.logsumexp(1))
    (slope,) = torch.autograd.grad(out[2], z)
    change = (slope[2] * (z[2] - z[1]).detach()).sum()
    torch.testing.assert_close(change, (out[2] - out[1]).detach(), **EXACT)
