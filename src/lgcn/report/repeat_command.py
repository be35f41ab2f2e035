"""The command line that repeats a training."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from lgcn.training.settings import TOP, Settings


def repeat_command(settings: Settings, out: str = "runs/again") -> str | None:
    """The `lgcn train` that repeats a run with these settings.

    Settings that are the preset's are left out. `None` if the run does not name its data, because
    it was trained in Python on a graph in memory.

    Args:
        settings: Those of the run, with all automatic choices made.
        out: The folder that the command names. (default: `"runs/again"`)
    """
    if settings.dataset == "tables" and "nodes" not in settings.dataset_options:
        return None
    usual = Settings.create(
        dataset=settings.dataset,
        preset=settings.preset,
        labels=settings.labels,
        model=settings.model.name,
    ).flat()
    words = ["lgcn", "train", *_source(settings)]
    if settings.preset not in (None, "default"):
        words += ["--preset", str(settings.preset)]
    for name, value in settings.flat().items():
        if name in ("dataset", "dataset_options", "preset", "model"):
            continue
        if name == "seed":
            words += ["--seed", str(value)]
        elif value != usual.get(name) or (name == "labels" and value != "auto"):
            words += ["--set", f"{name}={_value(value)}"]
    if settings.model.name != "lgcn":
        words += ["--set", f"model={settings.model.name}"]
    return shlex.join([*words, "--out", out])


def _source(settings: Settings) -> list[str]:
    """The flags that name the data."""
    options: Mapping[str, Any] = settings.dataset_options
    if settings.dataset == "store":
        return ["--graph", str(options["path"])]
    if settings.dataset != "tables":
        words = ["--dataset", settings.dataset]
        for name, value in options.items():
            words += ["--set", f"dataset_options.{name}={_value(value)}"]
        return words
    words = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            words.append(flag)
        elif value is False:
            words.append(flag.replace("--", "--no-", 1))
        else:
            for part in value if isinstance(value, list | tuple) else [value]:
                words += [flag, "none" if part is None else str(part)]
    return words


def _value(value: Any) -> str:
    """A value as `--set` reads it."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def shown_settings(settings: Settings) -> dict[str, dict[str, str]]:
    """All settings as text, by group; those that belong to no group come first."""
    groups: dict[str, dict[str, str]] = {"run": {}}
    for name, value in settings.to_dict().items():
        if name in TOP:
            groups["run"][name] = _value(value)
        else:
            groups[name] = {key: _value(inner) for key, inner in value.items()}
    return groups
