"""Presets: settings that belong together, in plain TOML files.

A file has one or more entries ``[[settings]]``. Each is complete: settings that it omits have the
default of `lgcn.training.groups`. ``datasets`` lists the data sets that an entry is for; an
entry without it is for all others. ``labels = "few"`` or ``"many"`` restricts an entry to graphs
with few or many training nodes per class. The values are in the groups ``[settings.model]``,
``[settings.sampling]``, ``[settings.optimisation]`` and ``[settings.evaluation]``; settings
outside of groups, such as ``time_limit``, precede them.

Your own tables use ``default.toml``. Other packages add folders of presets with
`register_presets`. If a preset is in several folders, the entries of all of them count.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from lgcn.errors import UsageError, did_you_mean
from lgcn.training.models import and_the_papers

_packages = [__name__]


def register_presets(package: str) -> None:
    """Adds the ``*.toml`` files of a package to the presets.

    Args:
        package: Its name, such as ``lgcn.paper.presets``.
    """
    if package not in _packages:
        _packages.append(package)


def preset_names() -> list[str]:
    """The names of all presets."""
    return sorted(_files())


def preset_values(name: object, dataset: object, labels: object = "few") -> dict[str, Any]:
    """The settings of a preset for a data set, by flat names.

    Args:
        name: The preset.
        dataset: The data set.
        labels: ``"many"`` if many of its nodes are labelled. (default: ``"few"``)
    """
    entry = _entry(_read(name), dataset, "many" if labels == "many" else "few")
    outside = {
        key: value
        for key, value in entry.items()
        if key not in ("datasets", "labels") and not isinstance(value, dict)
    }
    return outside | {
        "model" if (group, key) == ("model", "name") else key: value
        for group in entry
        if isinstance(entry[group], dict)
        for key, value in entry[group].items()
    }


def depends_on_labels(name: str, dataset: str) -> bool:
    """Whether a preset has other settings for many labels than for few."""
    entries = _read(name)
    return _entry(entries, dataset, "few") is not _entry(entries, dataset, "many")


def _entry(entries: list[Mapping[str, Any]], dataset: object, labels: str) -> Mapping[str, Any]:
    own = [entry for entry in entries if dataset in entry.get("datasets", ())]
    others = [
        entry
        for entry in entries
        if "datasets" not in entry and entry.get("labels", labels) == labels
    ]
    return (own or others)[0]


def _files() -> dict[str, list[Any]]:
    """The files of each preset."""
    found: dict[str, list[Any]] = {}
    for package in _packages:
        for file in resources.files(package).iterdir():
            if file.name.endswith(".toml"):
                found.setdefault(file.name.removesuffix(".toml"), []).append(file)
    return found


def _read(name: object) -> list[Mapping[str, Any]]:
    known = _files()
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(name, sorted(known))
        raise UsageError(f"unknown preset {name!r}; {hint}{and_the_papers()}")
    return [entry for file in known[name] for entry in _parsed(file)]


@cache
def _parsed(file: Any) -> list[Mapping[str, Any]]:
    entries: list[Mapping[str, Any]] = tomllib.loads(file.read_text("utf-8"))["settings"]
    return entries
