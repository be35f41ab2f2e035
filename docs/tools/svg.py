"""A few SVG shapes, enough for the pictures of the documentation.

A picture is a light card with its own background, so that it reads the same on a light and on a
dark page. Lettering is large: on a phone a card is shown at little more than half its size.
"""

from html import escape
from typing import Any

INK, MUTED, LINE, PAPER = "#1f2933", "#5b6875", "#b8c2cc", "#fbfcfd"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"


class Picture:
    """Collects shapes and writes them as one SVG with a title for screen readers."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.width, self.height, self.title = width, height, title
        self.parts: list[str] = []

    def add(self, tag: str, text: str | None = None, **attributes: Any) -> None:
        """One element; ``stroke_width`` becomes ``stroke-width``, and numbers are rounded."""
        named = {key.replace("_", "-"): value for key, value in attributes.items()}
        shown = "".join(f' {key}="{_plain(value)}"' for key, value in named.items())
        self.parts.append(f"<{tag}{shown}/>" if text is None else f"<{tag}{shown}>{text}</{tag}>")

    def line(self, start: Any, end: Any, color: str = LINE, width: float = 2, **more: Any) -> None:
        (x1, y1), (x2, y2) = start, end
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, stroke=color, stroke_width=width, **more)

    def circle(
        self, center: Any, radius: float, fill: str, edge: str = INK, width: float = 2
    ) -> None:
        x, y = center
        self.add("circle", cx=x, cy=y, r=radius, fill=fill, stroke=edge, stroke_width=width)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        edge: str = "none",
        thick: float = 2,
        radius: float = 5,
    ) -> None:
        self.add(
            "rect",
            x=x,
            y=y,
            width=width,
            height=height,
            rx=radius,
            fill=fill,
            stroke=edge,
            stroke_width=thick,
        )

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: int = 18,
        color: str = INK,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        self.add(
            "text",
            escape(words),
            x=x,
            y=y,
            font_size=size,
            fill=color,
            text_anchor=anchor,
            dominant_baseline="central",
            font_weight=600 if bold else 400,
        )

    def arrow(self, start: Any, end: Any, color: str = MUTED) -> None:
        """A horizontal arrow to the right."""
        x2, y = end
        self.line(start, (x2 - 8, y), color, 3)
        self.add("path", d=f"M{x2 - 12} {y - 8} L{x2} {y} L{x2 - 12} {y + 8} Z", fill=color)

    def __str__(self) -> str:
        size = f"{self.width} {self.height}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{self.width}" '
            f'height="{self.height}" role="img" font-family="{FONT}">'
        )
        card = (
            f'<rect x="1" y="1" width="{self.width - 2}" height="{self.height - 2}" rx="14" '
            f'fill="{PAPER}" stroke="{LINE}" stroke-width="1"/>'
        )
        title = f"<title>{escape(self.title)}</title>"
        return "\n".join([head, title, card, *self.parts, "</svg>"]) + "\n"


def _plain(value: Any) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else escape(str(value))
