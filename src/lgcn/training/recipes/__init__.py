"""Recipes: settings that belong together, in TOML files beside this one.

A file has the settings of the recipe in ``[settings]``, and what differs on a data set in
``[datasets.NAME]``, where ``like`` names another data set to start from. ``base`` names another
recipe, which has all that the file does not set.
"""

import difflib
import tomllib
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


def recipe_settings(name: str, dataset: str) -> dict[str, Any]:
    """What a recipe sets on a data set."""
    known = recipe_names()
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(known)}"
        raise UsageError(f"unknown recipe {name!r}; {hint}")
    content = tomllib.loads((resources.files(__name__) / f"{name}.toml").read_text("utf-8"))
    datasets = content.get("datasets", {})
    own = dict(datasets.get(str(dataset), {}))
    like = own.pop("like", None)
    base = recipe_settings(content["base"], dataset) if "base" in content else {}
    return {**base, **content.get("settings", {}), **datasets.get(like, {}), **own}
