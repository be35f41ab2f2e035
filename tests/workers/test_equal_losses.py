"""One, two and four workers do the same steps: the number of workers changes only rounding."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .data import Data, parts_of, small_graph, whole_of
from .trainings import Outcome, run_training

SETTINGS = ("max_epochs=2",)


def in_parts(folder: Path) -> Data:
    return parts_of(small_graph(), folder)


def in_one_piece(folder: Path) -> Data:
    return whole_of(small_graph(), folder)


def outcomes(data: Data, folder: Path, settings: tuple[str, ...]) -> list[Outcome]:
    found = [
        run_training(data, folder / str(size) / "run", size, settings=settings)
        for size in (1, 2, 4)
    ]
    assert all(outcome.finished for outcome in found), [outcome.text for outcome in found]
    return found


def check(found: list[Outcome]) -> None:
    one, *others = found
    assert len(one.losses()) >= 2
    for other in others:
        assert other.losses() == pytest.approx(one.losses(), abs=1e-5)
        for entry, wanted in zip(other.history, one.history, strict=True):
            assert entry == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("data", [in_parts, in_one_piece])
def test_losses_are_equal(data: Callable[[Path], Data], tmp_path: Path):
    check(outcomes(data(tmp_path / "data"), tmp_path, SETTINGS))


@pytest.mark.slow
@pytest.mark.parametrize("data", [in_parts, in_one_piece])
@pytest.mark.parametrize(
    "more",
    [
        ("views=2", "agreement=0.5"),
        ("class_weight=balanced",),
        ("batch_norm=running",),
        ("evaluate_on=sampled", "subgraphs_per_epoch=7"),
    ],
    ids=lambda more: more[0],
)
def test_losses_are_equal_with_other_settings(
    data: Callable[[Path], Data], more: tuple[str, ...], tmp_path: Path
):
    check(outcomes(data(tmp_path / "data"), tmp_path, SETTINGS + more))
