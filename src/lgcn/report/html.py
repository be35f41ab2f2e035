"""HTML and JSON for pages, in which everything that comes from data is escaped."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

MANY_ROWS = 30  # a table of more scrolls by itself
VOID = ("br", "hr", "input", "meta")


class Html(str):
    """Text that is HTML already and is not escaped again."""


def tag(name: str, *children: Any, **attributes: Any) -> Html:
    """An element. Strings are escaped unless they are `Html`; `None` is left out.

    Args:
        name: Its name.
        *children: Strings, numbers, elements, or sequences of them.
        **attributes: Underscores become hyphens; one at the end is dropped, as in `class_`. `True`
            is an attribute without a value, `False` and `None` are left out.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        attribute = key.rstrip("_").replace("_", "-")
        parts.append(f" {attribute}" if value is True else f' {attribute}="{escape(value)}"')
    parts.append(">")
    if name not in VOID:
        parts += [*_texts(children), f"</{name}>"]
    return Html("".join(parts))


def join(*children: Any) -> Html:
    """Elements and escaped strings one after the other."""
    return Html("".join(_texts(children)))


def escape(value: Any) -> str:
    return html.escape(str(value), quote=True)


def _texts(children: Iterable[Any]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Html):
            yield child
        elif isinstance(child, list | tuple):
            yield from _texts(child)
        else:
            yield escape(child)


def name(text: str) -> Html:
    """A name from data. Its direction of writing does not change that of the text around it."""
    return tag("bdi", text)


def table(
    heads: Sequence[Any],
    rows: Sequence[Sequence[Any]],
    *,
    caption: str,
    numbers: Sequence[int] = (),
    sortable: bool = False,
    row_heads: bool = True,
    hide_caption: bool = False,
) -> Html:
    """A table that scrolls sideways by itself where it is too wide.

    Args:
        heads: The heads of the columns.
        rows: The cells. A cell may be a pair of what is shown and the number to sort by.
        caption: What it shows.
        numbers: Places of the columns of numbers, which are aligned to the right.
        sortable: Whether a click on a head sorts it. (default: `False`)
        row_heads: Whether the first cell of a row is its head. (default: `True`)
        hide_caption: Whether only screen readers get the caption. (default: `False`)
    """

    def cell(place: int, value: Any) -> Html:
        key = None
        if isinstance(value, tuple):
            value, key = value
        options: dict[str, Any] = {"class_": "number"} if place in numbers else {}
        options["data_sort"] = key
        if place == 0 and row_heads:
            return tag("th", value, scope="row", **options)
        return tag("td", value, **options)

    def head(place: int, value: Any) -> Html:
        options: dict[str, Any] = {"class_": "number"} if place in numbers else {}
        shown = tag("button", value, type="button", class_="sort") if sortable else value
        return tag("th", shown, scope="col", **options)

    body = [tag("tr", [cell(i, value) for i, value in enumerate(row)]) for row in rows]
    content = tag(
        "table",
        tag("caption", caption, class_="hidden"),
        tag("thead", tag("tr", [head(i, value) for i, value in enumerate(heads)])),
        tag("tbody", body),
        class_="sortable" if sortable else None,
    )
    kind = "scroll tall" if len(rows) > MANY_ROWS else "scroll"
    scrolled = tag("div", content, class_=kind, tabindex="0", role="region", aria_label=caption)
    # A caption would scroll away with its table, so all see a paragraph above it.
    return scrolled if hide_caption else join(tag("p", caption, class_="caption"), scrolled)


def json_text(value: Any) -> Html:
    """JSON that can stand in a script element: nothing in it can end the element."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)
