"""The committed counts, and what differs from them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).parent / "baseline"
UPDATE = "python -m tests.performance"


def path(device: str) -> Path:
    return FOLDER / f"{device}.json"


def read(device: str) -> dict[str, Any]:
    """The counts of each workload, and what they were counted with."""
    found: dict[str, Any] = json.loads(path(device).read_text("utf-8"))
    return found


def write(device: str, workloads: Mapping[str, Any]) -> None:
    record = {"with": counted_with(device), "workloads": workloads}
    FOLDER.mkdir(exist_ok=True)
    path(device).write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", "utf-8")


def counted_with(device: str) -> dict[str, str]:
    """What may change counts besides lgcn."""
    found = {"torch": torch.__version__.partition("+")[0]}
    if device == "cuda":
        found["gpu"] = torch.cuda.get_device_name()
    return found


def differences(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> list[str]:
    """What grew, then what fell, as lines; none if the counts are equal."""
    if before is None:
        return ["not in the baseline yet"]
    old, new = dict(_flat(before)), dict(_flat(now))
    lines: dict[str, list[str]] = {"grew": [], "fell": []}
    for name in sorted(old.keys() | new.keys()):
        was, is_now = old.get(name, 0), new.get(name, 0)
        if was != is_now:
            verb = "grew" if is_now > was else "fell"
            lines[verb].append(f"{name} {verb}: {was:,} before, {is_now:,} now")
    return lines["grew"] + lines["fell"]


def _flat(counts: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """A sum in front of the parts: "operators" and then "operators aten::mm"."""
    for name, value in counts.items():
        if isinstance(value, Mapping):
            yield name, sum(value.values())
            yield from ((f"{name} {part}", number) for part, number in value.items())
        else:
            yield name, value
