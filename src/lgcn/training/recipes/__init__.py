"""Recipes: settings that belong together, in TOML files beside this one.

A file has the settings of the recipe in ``[settings]``, and what differs on a data set in
``[datasets.NAME]``, or in ``[datasets.other]`` where it has no section of its own. ``like`` names
another section to start from, and ``recipe`` another recipe whose ``[datasets.other]`` it takes.
What differs where many nodes are labelled is in ``[datasets.NAME.many_labels]``. ``base`` names
another recipe, which has all that the file does not set.
"""

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from typing import Any

from lgcn.errors import UsageError


def recipe_names() -> list[str]:
    """All recipes there are."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def default_recipe(model: str) -> str:
    """The recipe where none is named: the LGCN's defaults, or another model's own settings."""
    return "default" if model == "lgcn" or model not in recipe_names() else model


def recipe_settings(name: str, dataset: str, labels: str = "few") -> dict[str, Any]:
    """What a recipe sets on a data set.

    Args:
        name: The recipe.
        dataset: The data set.
        labels: ``"many"`` where many of its nodes are labelled. (default: ``"few"``)
    """
    content = _read(name)
    base = recipe_settings(content["base"], dataset, labels) if "base" in content else {}
    sections = content.get("datasets", {})
    own = _section(sections, dataset if dataset in sections else "other")
    if "recipe" in own:
        return recipe_settings(own["recipe"], "other", labels)
    many = own.pop("many_labels", {})
    return {**base, **content.get("settings", {}), **own, **(many if labels == "many" else {})}


def _read(name: str) -> dict[str, Any]:
    known = recipe_names()
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise UsageError(f"unknown recipe {name!r}; {hint}")
    return tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text("utf-8"))


def _section(sections: Mapping[str, Any], name: str) -> dict[str, Any]:
    own = dict(sections.get(name, {}))
    like = own.pop("like", None)
    return own if like is None else {**_section(sections, like), **own}
