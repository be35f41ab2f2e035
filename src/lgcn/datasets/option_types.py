"""Types of the options of data sets, as far as a file may set them.

Anyone may have written the file, such as a run folder's `run.json`. So an option is a number, a
string or a flag, and each function here says whether a value is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OptionType = Callable[[Any], bool]
LONGEST_TEXT = 10_000  # characters of a path, a column name or a separator


def text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value


def text_or_none(value: Any) -> bool:
    return value is None or text(value)


def texts(value: Any) -> bool:
    """One string, or a list of them."""
    return text_or_none(value) or (isinstance(value, list) and all(map(text, value)))


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def flag_or_none(value: Any) -> bool:
    return value is None or flag(value)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_or_none(value: Any) -> bool:
    return value is None or number(value)


# The options of lgcn.graph.splits.random_split.
RANDOM_SPLIT = dict.fromkeys(("labels_per_class", "num_val", "split_seed"), number)
