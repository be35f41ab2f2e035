"""Temperature scaling: it finds a known temperature and never makes the labels less likely."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.training.calibration import (
    HIGHEST,
    LOWEST,
    confidence,
    expected_calibration_error,
    find_temperature,
    probabilities,
)


def drawn(true_temperature: float, multi_label: bool, nodes: int = 20_000) -> tuple[Tensor, Tensor]:
    """Scores, and labels drawn with the probabilities that they have at that temperature."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(nodes, 4, generator=generator)
    chances = probabilities(logits, multi_label, true_temperature)
    if multi_label:
        return logits, (torch.rand(nodes, 4, generator=generator) < chances).long()
    return logits, torch.multinomial(chances, 1, generator=generator).squeeze(1)


def loss(logits: Tensor, y: Tensor, temperature: float) -> float:
    scaled = logits.double() / temperature
    if y.dim() == 2:
        return float(F.binary_cross_entropy_with_logits(scaled, y.double()))
    return float(F.cross_entropy(scaled, y))


@pytest.mark.parametrize("multi_label", [False, True])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5, 8.0])
def test_it_finds_a_known_temperature(temperature: float, multi_label: bool) -> None:
    logits, y = drawn(temperature, multi_label)
    found = find_temperature(logits, y)
    assert found == pytest.approx(temperature, rel=0.05)
    # No temperature on a grid around it does better.
    best = min(loss(logits, y, t) for t in np.geomspace(LOWEST, HIGHEST, 200))
    assert loss(logits, y, found) <= best + 1e-6
    assert find_temperature(logits, y) == found


def test_calibration_lowers_the_error_of_a_model_that_is_too_sure() -> None:
    logits, y = drawn(4.0, multi_label=False)
    before = expected_calibration_error(probabilities(logits, False), y)
    after = expected_calibration_error(probabilities(logits, False, find_temperature(logits, y)), y)
    assert before > 0.2
    assert after < 0.02


@settings(max_examples=60)
@given(
    st.integers(0, 2**31),
    st.integers(1, 40),
    st.integers(2, 5),
    st.floats(0, 100),
    st.booleans(),
)
def test_the_loss_is_never_higher_than_before(
    seed: int, nodes: int, classes: int, scale: float, multi_label: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(nodes, classes, generator=generator)
    shape = (nodes, classes) if multi_label else (nodes,)
    y = torch.randint(0, 2 if multi_label else classes, shape, generator=generator)
    found = find_temperature(logits, y)
    assert LOWEST <= found <= HIGHEST
    assert loss(logits, y, found) <= loss(logits, y, 1.0) + 1e-12


def test_few_nodes_that_are_all_right_do_not_make_it_sure_of_everything() -> None:
    logits = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])
    few = find_temperature(logits, torch.tensor([0, 1, 0]))
    many = find_temperature(logits.repeat(1000, 1), torch.tensor([0, 1, 0]).repeat(1000))
    assert LOWEST < many < few < 1


def test_nothing_to_go_by_leaves_the_scores_as_they_are() -> None:
    assert find_temperature(torch.empty(0, 3), torch.empty(0, dtype=torch.long)) == 1.0
    assert find_temperature(torch.zeros(5, 3), torch.zeros(5, dtype=torch.long)) == 1.0


def test_the_order_of_the_classes_stays() -> None:
    logits, _ = drawn(1.0, multi_label=False, nodes=100)
    for temperature in (LOWEST, 1.0, HIGHEST):
        chances = probabilities(logits.double(), False, temperature)
        assert torch.equal(chances.argmax(dim=1), logits.argmax(dim=1))
        torch.testing.assert_close(chances.sum(dim=1), torch.ones(100, dtype=torch.double))


def test_probabilities_follow_the_kind_of_labels() -> None:
    logits = torch.tensor([[0.0, 0.0], [3.0, -1.0]])
    torch.testing.assert_close(probabilities(logits, False), torch.softmax(logits, dim=1))
    torch.testing.assert_close(probabilities(logits, True), torch.sigmoid(logits))


@pytest.mark.parametrize("temperature", [0.0, -1.0, 0.01, 21.0, float("nan"), float("inf")])
def test_an_impossible_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(UsageError, match=r"temperature must be from 0\.05 to 20\.0, got"):
        probabilities(torch.zeros(2, 2), False, temperature)


def test_the_error_by_hand() -> None:
    chances = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.3, 0.7]])
    # Bin of 0.9: one of two right, gap 0.4. Bin of 0.7: both right, gap 0.3.
    y = torch.tensor([0, 1, 1, 1])
    assert expected_calibration_error(chances, y) == pytest.approx(0.5 * 0.4 + 0.5 * 0.3)
    assert expected_calibration_error(chances, y, bins=1) == pytest.approx(abs(0.75 - 0.8))


def test_the_error_over_labels_counts_pairs() -> None:
    chances = torch.tensor([[0.9, 0.2], [0.9, 0.2]])
    # Sure by 0.9, 0.8, 0.9, 0.8; right: yes, yes, no, yes.
    y = torch.tensor([[1, 0], [0, 0]])
    assert expected_calibration_error(chances, y) == pytest.approx(0.5 * 0.4 + 0.5 * 0.2)


def test_the_error_of_certainty() -> None:
    certain = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    assert expected_calibration_error(certain, torch.tensor([0, 1])) == 0
    assert expected_calibration_error(certain, torch.tensor([1, 0])) == 1
    assert expected_calibration_error(torch.empty(0, 2), torch.empty(0, dtype=torch.long)) == 0


def test_confidence() -> None:
    chances = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]])
    assert confidence(chances, multi_label=False).tolist() == pytest.approx([0.5, 0.9])
    # The least certain of several labels: 0.5 in the first row, 0.9 in the second.
    assert confidence(chances, multi_label=True).tolist() == pytest.approx([0.5, 0.9])
    assert confidence(torch.tensor([[0.2, 0.4]]), multi_label=True).tolist() == pytest.approx([0.6])
