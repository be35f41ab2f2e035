"""The selection on the CPU equals the reference, whichever way through the kernels it takes."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from lgcn.ops import reference
from lgcn.ops.cpu import launch, networks, select, simd

from ..graphs import assert_same

SPECIAL = (0.0, -0.0, torch.nan, -torch.nan, torch.inf, -torch.inf, 1e-40, -1e-40, 2e-40, 1.0, -1.0)
# Few features lie side by side with those of other rows; 17 and 40 fill no whole cache lines.
CHANNELS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 40)
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def graph(k: int, rng: np.random.Generator) -> tuple[Tensor, Tensor, int]:
    """Rows of every length that means something to the kernels, in random order."""
    around = [max(k + more, 0) for more in (-1, 0, 1)]
    degrees = rng.permutation([0, 0, 1, 1, 2, 7, 8, 9, 16, 63, 64, 65, 70, 300, *around, 2 * k + 3])
    sources = 40
    col = torch.from_numpy(rng.integers(0, sources, degrees.sum()))
    return torch.tensor([0, *np.cumsum(degrees)]), col, sources


def features(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> Tensor:
    """Random numbers; or few, many of them special, so that most are equal to others."""
    if kind == "normal":
        return torch.from_numpy(rng.normal(size=shape))
    if kind == "negative":
        return -torch.from_numpy(rng.random(shape).round(1))
    return torch.tensor(SPECIAL, dtype=torch.float64)[torch.from_numpy(rng.integers(0, 11, shape))]


def check(
    x: Tensor, rowptr: Tensor, col: Tensor, k: int, weight: Tensor | None, compete: bool, bits: int,
    own: Tensor | None, last: Tensor | None,
) -> None:  # fmt: skip
    arguments = (x, rowptr, col, k, weight, compete, bits, own, last)
    values, chosen = launch.k_largest(*arguments)
    expected, expected_chosen = reference.k_largest(*arguments)
    assert_same(values, expected)
    assert_same(chosen, expected_chosen)


@pytest.mark.parametrize("kind", ["normal", "negative", "special"])
@pytest.mark.parametrize("k", [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 64, 65, 100])
def test_every_k_selects_what_the_reference_selects(k: int, kind: str) -> None:
    rng = np.random.default_rng(k)
    rowptr, col, sources = graph(k, rng)
    for channels in CHANNELS:
        dtype = DTYPES[rng.choice(4, p=(0.7, 0.1, 0.1, 0.1))]
        x = features((sources, channels), kind, rng).to(dtype)
        bits = int(rng.choice([0, 16, 32]))
        weight = features((col.numel(),), "normal", rng).to(dtype)
        own = features((rowptr.numel() - 1, channels), kind, rng).to(dtype)
        check(
            x, rowptr, col, k,
            weight if bits and rng.random() < 0.5 else None,
            bool(rng.random() < 0.3),
            bits,
            own if rng.random() < 0.5 else None,
            2 * own if rng.random() < 0.5 else None,
        )  # fmt: skip


@pytest.mark.parametrize("bits", [0, 8])
@pytest.mark.parametrize("channels", [1, 3, 16, 21])
def test_results_stored_past_the_caches_are_the_same(
    channels: int, bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "STREAM_BYTES", 0)
    rng = np.random.default_rng(channels)
    degrees = rng.integers(0, 12, 700)
    rowptr = torch.tensor([0, *np.cumsum(degrees)])
    col = torch.from_numpy(rng.integers(0, 50, degrees.sum()))
    x = features((50, channels), "normal", rng).float()
    own = features((700, channels), "normal", rng).float()
    for k in (1, 5, 20):
        check(x, rowptr, col, k, None, False, bits, own, None)


def test_equal_values_are_taken_in_order_of_their_positions() -> None:
    for channels in (2, 20):
        x = torch.ones(300, channels)
        rowptr, col = torch.tensor([0, 300]), torch.arange(299, -1, -1)
        _, index = launch.k_largest(x, rowptr, col, 70, None, False, 0)
        assert index[0, :, -1].tolist() == list(range(299, 229, -1))


def test_a_late_neighbour_of_a_long_row_is_selected() -> None:
    for channels in (1, 33):
        x = torch.zeros(5000, channels)
        x[4321] = 1
        rowptr, col = torch.tensor([0, 5000]), torch.arange(5000)
        values, index = launch.k_largest(x, rowptr, col, 9, None, False, 0)
        assert index[0, :, 0].tolist() == [4321, *range(8)]
        assert values[0, :, 0].tolist() == [1, *[0] * 8]


def test_the_last_row_reads_no_entry_behind_the_last() -> None:
    x = torch.tensor([[1.0], [3.0], [2.0]])
    for count in range(1, 4):
        rowptr, col = torch.tensor([0, count]), torch.arange(count)
        _, index = launch.k_largest(x, rowptr, col, 2, None, False, 0)
        assert index.flatten().tolist() == [[0, -1], [1, 0], [1, 2]][count - 1]


def test_a_row_with_more_entries_than_positions_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(launch, "MAX_INT32", 4)
    x, col = torch.ones(3, 1), torch.zeros(6, dtype=torch.int64)
    launch.k_largest(x, torch.tensor([0, 3, 6]), col, 2, None, False, 0)
    with pytest.raises(ValueError, match=r"at most 4 entries.*got 5"):
        launch.k_largest(x, torch.tensor([0, 5, 6]), col, 2, None, False, 0)


def test_kernels_are_compiled_again_when_what_they_consist_of_changes() -> None:
    source = hashlib.sha256()
    for module in (simd, networks):
        source.update(Path(module.__file__).read_bytes())
    assert source.hexdigest()[:16] == select.NETWORKS_DIGEST
