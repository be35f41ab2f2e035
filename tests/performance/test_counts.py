"""The counts of fixed workloads are those of the committed baseline.

A count that grows is a step back. One that falls is a gain, which only stays one if the baseline
has it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from . import baseline
from .counting import count
from .counting_gpu import count_on_gpu
from .workloads import ON_BOTH, WORKLOADS


def check(device: str, name: str, counts: dict[str, Any]) -> None:
    stored = baseline.read(device)
    found = baseline.differences(stored["workloads"].get(name), counts)
    if found:
        lines = "\n  ".join(found)
        was, now = stored["with"], baseline.counted_with(device)
        versions = "" if was == now else f" The baseline is of {was}, this is {now}."
        command = baseline.UPDATE + (f" --device {device}" if device != "cpu" else "")
        pytest.fail(
            f"{name} on {device}:\n  {lines}\nIf that is meant, write the baseline anew: "
            f"{command}.{versions}",
            pytrace=False,
        )


@pytest.mark.parametrize("name", WORKLOADS["cpu"])
def test_counts_on_the_cpu_are_those_of_the_baseline(name: str) -> None:
    check("cpu", name, count(WORKLOADS["cpu"][name]("cpu")))


def test_the_baseline_has_the_workloads_and_no_others() -> None:
    assert baseline.read("cpu")["workloads"].keys() == WORKLOADS["cpu"].keys()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", ON_BOTH)
def test_counts_on_a_gpu_are_those_of_the_baseline(name: str) -> None:
    if not baseline.path("cuda").exists():
        pytest.skip(f"no baseline for a GPU yet: {baseline.UPDATE} --device cuda")
    gpu, here = baseline.read("cuda")["with"]["gpu"], torch.cuda.get_device_name()
    if gpu != here:  # cuDNN chooses other kernels
        pytest.skip(f"the baseline is of another GPU: {gpu}, not {here}")
    check("cuda", name, count_on_gpu(WORKLOADS["cuda"][name]("cuda")))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", [name for name in ON_BOTH if name.startswith("LGConv")])
def test_on_a_gpu_a_layer_waits_for_nothing(name: str) -> None:
    assert count_on_gpu(WORKLOADS["cuda"][name]("cuda"))["waits"] == 0
