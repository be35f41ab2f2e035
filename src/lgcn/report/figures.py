"""Figures of a page: a chart, its caption, and a table with the numbers behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lgcn.report.charts import Spec
from lgcn.report.html import Html, join, table, tag


class Figures:
    """Collects the charts of a page, whose specifications go into its data.

    Attributes:
        specs: The specifications by the id of their element.
    """

    def __init__(self) -> None:
        self.specs: dict[str, Spec] = {}

    def figure(
        self,
        key: str,
        spec: Spec,
        *,
        label: str,
        heads: Sequence[Any],
        rows: Sequence[Sequence[Any]],
        caption: Any = None,
        width: int | None = None,
    ) -> Html:
        """A chart with its alternative: a label, and a table that can be opened.

        Args:
            key: Its id.
            spec: The chart.
            label: What it shows, for those who do not see it.
            heads, rows: The table of its numbers.
            caption: The text below it. (default: none)
            width: The most pixels that it takes. (default: all there are)
        """
        self.specs[key] = spec
        style = None if width is None else f"max-width: {width}px"
        numbers = tuple(range(1, len(heads)))
        inside = table(heads, rows, caption=label, numbers=numbers, hide_caption=True)
        return tag(
            "figure",
            tag("div", class_="chart", id=key, role="img", aria_label=label, style=style),
            tag("figcaption", caption) if caption is not None else None,
            tag("details", tag("summary", "The numbers as a table"), inside),
        )


def section(key: str, title: str, *content: Any, intro: Any = None) -> Html:
    """A part of the page with a heading that the contents lead to."""
    head = tag("h2", title, id=f"{key}-title")
    text = tag("p", intro, class_="intro") if intro is not None else None
    return tag("section", head, text, *content, id=key, aria_labelledby=f"{key}-title")


def absent(reason: str) -> Html:
    """Says why something is not there."""
    return tag("p", reason, class_="absent")


def percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{100 * value:.{digits}f} %"


def side_by_side(*parts: Html | None) -> Html:
    """Parts beside each other where there is room."""
    return tag("div", [part for part in parts if part is not None], class_="columns")


def cards(items: Sequence[tuple[Any, Any, Any]]) -> Html:
    """Large numbers: what it is, the number, and what to compare it with."""
    return tag(
        "dl",
        [
            tag(
                "div",
                tag("dt", what),
                tag("dd", join(tag("strong", number), " ", tag("span", more))),
            )
            for what, number, more in items
        ],
        class_="cards",
    )
