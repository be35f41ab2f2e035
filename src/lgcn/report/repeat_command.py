"""The command line that repeats a training."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from lgcn.training.settings import TOP, Settings

# The option that names the data, without which they were in memory.
NAMED_BY = {"tables": "nodes", "graphs": "path", "graph_tables": "graphs"}
# Of `lgcn train --graphs NAME`.
SET_FLAGS = ("path", "fold", "target", "val", "test", "split_seed")
# What `lgcn train --graphs` chooses by itself.
OF_SETS = {"preset": "graphs", "model": "graph_lgcn", "positions": "none"}


def repeat_command(settings: Settings, out: str = "runs/again") -> str | None:
    """The `lgcn train` that repeats a run with these settings.

    Settings that are the preset's are left out. `None` if the run does not name its data, because
    it was trained in Python on a graph in memory.

    Args:
        settings: Those of the run, with all automatic choices made.
        out: The folder that the command names. (default: `"runs/again"`)
    """
    named_by = NAMED_BY.get(settings.dataset)
    if named_by is not None and named_by not in settings.dataset_options:
        return None
    options = settings.dataset_options if settings.dataset == "graphs" else {}
    usual = Settings.create(
        dataset=settings.dataset,
        dataset_options=options,  # presets know sets of graphs by name
        preset=settings.preset,
        labels=settings.labels,
        model=settings.model.name,
    ).flat()
    source = _source(settings)
    chosen = {"preset": "default", "model": "lgcn"} if source[0] != "--graphs" else OF_SETS
    words = ["lgcn", "train", *source]
    if settings.preset not in (None, chosen["preset"]):
        words += ["--preset", str(settings.preset)]
    for name, value in settings.flat().items():
        if name in ("dataset", "dataset_options", "preset", "model"):
            continue
        if name == "seed":
            words += ["--seed", str(value)]
        elif value == chosen.get(name):
            continue
        elif value != usual.get(name) or (name == "labels" and value != "auto"):
            words += ["--set", f"{name}={_value(value)}"]
    if settings.model.name != chosen["model"]:
        words += ["--set", f"model={settings.model.name}"]
    return shlex.join([*words, "--out", out])


def _source(settings: Settings) -> list[str]:
    """The flags that name the data."""
    options: Mapping[str, Any] = settings.dataset_options
    if settings.dataset == "store":
        return ["--graph", str(options["path"])]
    if settings.dataset == "graphs" and options.keys() <= set(SET_FLAGS):
        words = ["--graphs", str(options["path"])]
        for name in SET_FLAGS[1:]:
            if options.get(name) is not None:
                words += [f"--{name.replace('_', '-')}", str(options[name])]
        return words
    if settings.dataset not in ("tables", "graph_tables"):
        words = ["--dataset", settings.dataset]
        for name, value in options.items():
            words += ["--set", f"dataset_options.{name}={_value(value)}"]
        return words
    # A set of graphs is known by its first flag.
    words = ["--graphs", str(options["graphs"])] if settings.dataset == "graph_tables" else []
    for name, value in options.items():
        if name == "graphs":
            continue
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
