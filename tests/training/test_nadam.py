"""The released program's optimiser: TensorFlow's Nadam, which has no momentum schedule."""

from typing import Any

import numpy as np
import pytest
import torch

from lgcn.training.nadam import Nadam


def steps_by_hand(start: Any, grads: Any, lr: float, decay: float = 0.0) -> Any:
    x, m, v = start.astype(np.float64), np.zeros_like(start), np.zeros_like(start)
    for t, given in enumerate(grads, start=1):
        grad = given + decay * x
        m = 0.9 * m + 0.1 * grad
        v = 0.999 * v + 0.001 * grad**2
        rate = lr * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        x = x - rate * (0.9 * m + 0.1 * grad) / (np.sqrt(v) + 1e-8)
    return x


def steps(kind: Any, start: Any, grads: Any, **options: float) -> Any:
    x = torch.tensor(start, requires_grad=True)
    optimizer = kind([x], **options)
    for grad in grads:
        x.grad = torch.tensor(grad)
        optimizer.step()
    return x.detach().numpy()


START = np.array([1.0, -2.0, 0.5])
GRADS = np.array([[0.1, -1.0, 3.0], [0.2, 1.0, -0.5], [0.0, 2.0, 1.0], [-1.0, 0.3, 0.1]])


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_equal_those_computed_by_hand(decay: float):
    found = steps(Nadam, START, GRADS, lr=0.1, weight_decay=decay)
    np.testing.assert_allclose(found, steps_by_hand(START, GRADS, 0.1, decay), rtol=1e-9)


def test_weight_decay_changes_the_steps():
    plain = steps(Nadam, START, GRADS, lr=0.1)
    assert np.abs(plain - steps(Nadam, START, GRADS, lr=0.1, weight_decay=0.1)).max() > 1e-3


def test_it_is_not_torchs():
    torchs = steps(torch.optim.NAdam, START, GRADS, lr=0.1)
    assert np.abs(steps(Nadam, START, GRADS, lr=0.1) - torchs).max() > 1e-2


def test_it_finds_the_minimum_of_a_quadratic():
    x = torch.tensor([5.0, -3.0], requires_grad=True)
    optimizer = Nadam([x], lr=0.1)
    for _ in range(500):
        optimizer.zero_grad()
        ((x - 1) ** 2 * torch.tensor([1.0, 10.0])).sum().backward()
        optimizer.step()
    torch.testing.assert_close(x.detach(), torch.ones(2), atol=1e-2, rtol=0)


def test_parameters_without_gradient_stay():
    x = torch.ones(2, requires_grad=True)
    Nadam([x], lr=0.1, weight_decay=0.1).step()
    assert torch.equal(x.detach(), torch.ones(2))
