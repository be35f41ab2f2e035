"""Names from data - ids, classes, columns, paths - as a page shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lgcn.utils.visible_text import visible

MAX_NAME = 80  # characters
Array = np.ndarray[Any, Any]


def shown_name(value: Any) -> str:
    """A name with escapes in place of control characters, shortened if it is long."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    text = visible(str(value)).replace("\n", "\\n").replace("\t", "\\t")
    return text if len(text) <= MAX_NAME else text[: MAX_NAME - 1] + "…"


def plain_number(value: float, digits: int = 4, sign: bool = False) -> str:
    """A number with so many significant digits, and no exponent unless it is huge or tiny.

    Args:
        value: The number.
        digits: How many digits are kept. (default: 4)
        sign: Whether a positive number gets a `+`. (default: `False`)
    """
    plus = "+" if sign else ""
    rounded = float(f"{value:.{digits}g}")
    if rounded == 0 or not 1e-6 <= abs(rounded) < 1e12:
        return f"{rounded:{plus}.{digits}g}"
    text = f"{rounded:{plus},.12f}"
    return text.rstrip("0").rstrip(".")


def count_of(number: int, what: str) -> str:
    """A count with its noun: `1 node`, `2,000 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def shown_ids(node_ids: Callable[[int, int], Any] | None, nodes: Array) -> list[str]:
    """The ids of nodes as they are shown; their numbers if they have none.

    Args:
        node_ids: Gives the ids of a range of nodes. (default: they have none)
        nodes: Their numbers, rising.
    """
    if node_ids is None:
        return [str(node) for node in nodes.tolist()]
    found: list[str] = []
    # Ranges are read, not single nodes: each read of a store's ids has a cost.
    for block in np.split(nodes, np.flatnonzero(np.diff(nodes // BLOCK)) + 1):
        if len(block):
            start, stop = int(block[0]), int(block[-1]) + 1
            ids = node_ids(start, stop)
            if isinstance(ids, np.ndarray):
                found += [shown_name(ids[place]) for place in (block - start).tolist()]
            else:  # an Arrow array
                found += [shown_name(value) for value in ids.take(block - start).to_pylist()]
    return found


BLOCK = 2**14
