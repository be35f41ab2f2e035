"""Counts anew and writes the baseline.

``python -m tests.performance [--device cpu|cuda]`` in the root of the repository.
"""

from __future__ import annotations

import argparse

from . import baseline
from .counting import count
from .counting_gpu import count_on_gpu
from .workloads import WORKLOADS


def main() -> None:
    parser = argparse.ArgumentParser(prog=baseline.UPDATE, description=__doc__)
    parser.add_argument("--device", choices=tuple(WORKLOADS), default="cpu")
    device = parser.parse_args().device
    counted = {"cpu": count, "cuda": count_on_gpu}[device]
    found = {name: counted(make(device)) for name, make in WORKLOADS[device].items()}
    before = baseline.read(device)["workloads"] if baseline.path(device).exists() else {}
    for name, counts in found.items():
        for line in baseline.differences(before.get(name), counts):
            print(f"{name}: {line}")
    baseline.write(device, found)


if __name__ == "__main__":
    main()
