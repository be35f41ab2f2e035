"""What the counts see, and how they differ from the baseline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import pytest
import torch
from torch import Tensor

from lgcn import LGConv
from lgcn.ops import k_largest_values

from .baseline import differences
from .counting import count
from .workloads import CHANNELS, K, graph, layer, without_gradients


def test_memory_is_what_operators_return() -> None:
    x = torch.ones(1000)

    def run() -> Tensor:
        y = x + 1  # 4000 bytes
        y.mul_(2)  # in place
        z = y.view(10, 100) * 2  # 4000 more
        del y
        return z + 1  # as many, when the first are free

    counts = count(run)
    assert (counts["allocations"], counts["bytes"], counts["peak_bytes"]) == (3, 12_000, 8_000)
    assert counts["operators"]["aten::add.Tensor"] == 2
    assert counts["waits"] == {}
    assert counts["kept_bytes"] == 0


def test_autograd_keeps_what_is_needed_once() -> None:
    x = torch.ones(1000, requires_grad=True)

    def run() -> None:
        (x * x).exp().sum().backward()  # x twice, and the output of exp

    assert count(run)["kept_bytes"] == 8_000


@pytest.mark.parametrize(
    ("read", "name"),
    [
        (lambda x: x.sum().item(), "aten::_local_scalar_dense"),
        (lambda x: bool((x > 0).all()), "aten::_local_scalar_dense"),
        (lambda x: x.nonzero(), "aten::nonzero"),
        (lambda x: x[x > 0], "aten::index.Tensor"),
        (lambda x: torch.equal(x, x + 1), "aten::equal"),
        (lambda x: x.tolist(), "tolist"),
        (lambda x: x.cpu(), "cpu"),
        (lambda x: x.long().repeat_interleave(x.long()), "aten::repeat_interleave.Tensor"),
    ],
)
def test_reading_numbers_is_a_wait(read: Callable[[Tensor], object], name: str) -> None:
    x = torch.ones(5)
    assert count(lambda: read(x))["waits"] == {name: 1}


def test_sizes_that_are_known_are_no_wait() -> None:
    x, counts = torch.ones(5), torch.full((5,), 2)

    def run() -> Tensor:
        return x[counts].repeat_interleave(counts, output_size=10)

    assert count(run)["waits"] == {}


def test_kernels_and_what_our_operators_do_inside_are_counted() -> None:
    data = graph("cpu")
    assert data.x is not None
    x = data.x.bfloat16()  # which the kernels have to convert
    counts = count(lambda: k_largest_values(x, data.rowptr, data.col, K))
    assert counts["kernels"] == {
        "ops.cpu.select.k_largest": 1,
        "ops.cpu.kernels.row_chunks": 1,
    }
    assert counts["operators"]["lgcn::k_largest"] == 1
    # The features in float32; the values in float32, then in bfloat16; and one byte for each place.
    size = data.num_nodes * CHANNELS
    assert counts["bytes"] == 4 * size + (4 + 2 + 1) * size * K
    assert counts["allocations"] == 4


def test_counts_depend_neither_on_the_run_nor_on_threads() -> None:
    run = layer("cpu", hidden=True, mean=True)
    first = count(run)
    assert count(run) == first
    threads = torch.get_num_threads(), numba.get_num_threads()
    try:
        torch.set_num_threads(2)
        numba.set_num_threads(2)
        assert count(run) == first
    finally:
        torch.set_num_threads(threads[0])
        numba.set_num_threads(threads[1])


def test_a_copy_of_the_grid_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    run = without_gradients("cpu")
    before = count(run)
    convolve = LGConv.convolve
    monkeypatch.setattr(LGConv, "convolve", lambda conv, grid: convolve(conv, grid.clone()))
    grid = 4 * 400 * (K + 1) * CHANNELS
    found = differences(before, count(run))
    assert f"bytes grew: {before['bytes']:,} before, {before['bytes'] + grid:,} now" in found
    assert any(line.startswith("operators aten::clone grew") for line in found)


@pytest.mark.parametrize(
    ("now", "lines"),
    [
        ({"bytes": 10, "kernels": {"a": 2, "b": 1}}, []),
        ({"bytes": 11, "kernels": {"a": 2, "b": 1}}, ["bytes grew: 10 before, 11 now"]),
        ({"bytes": 9, "kernels": {"a": 2, "b": 1}}, ["bytes fell: 10 before, 9 now"]),
        (
            {"bytes": 9, "kernels": {"a": 1, "c": 3}},
            [
                "kernels grew: 3 before, 4 now",
                "kernels c grew: 0 before, 3 now",
                "bytes fell: 10 before, 9 now",
                "kernels a fell: 2 before, 1 now",
                "kernels b fell: 1 before, 0 now",
            ],
        ),
    ],
)
def test_differences_name_the_count_before_and_now(now: dict[str, Any], lines: list[str]) -> None:
    assert differences({"bytes": 10, "kernels": {"a": 2, "b": 1}}, now) == lines


def test_a_new_workload_is_one_line() -> None:
    assert len(differences(None, {"bytes": 10, "kernels": {"a": 2}})) == 1
