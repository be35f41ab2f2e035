"""Where the command line writes: results to standard output, everything else to standard error.

Names of files, columns, nodes and classes come from files that anyone may have written. Control
characters in them could move the cursor, hide text or change the terminal. They are shown as
escapes, such as `\\x1b`.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.text import Text

from lgcn.utils.visible_text import has_control, visible


class SafeConsole(Console):
    """A console that shows control characters as escapes."""

    def render_str(self, text: str, *args: Any, **options: Any) -> Text:
        return super().render_str(visible(text), *args, **options)  # before it is laid out

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            if segment.control is None and has_control(segment.text):
                segment = Segment(visible(segment.text), segment.style)
            yield segment


out = SafeConsole(highlight=False)
err = SafeConsole(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """Prints one JSON object on one line."""
    sys.stdout.write(json.dumps(value) + "\n")


def print_line(text: str, console: Console | None = None) -> None:
    """Prints a line as it is: not as markup, and not wrapped.

    Args:
        text: The line.
        console: Where to print it. (default: standard output)
    """
    (out if console is None else console).print(escape(text), soft_wrap=True)


def print_note(text: str) -> None:
    """Prints what the user should know to standard error."""
    err.print(f"[yellow]Note:[/yellow] {escape(text)}", soft_wrap=True)


def percent(value: float | None) -> str:
    """A share as a percentage, `-` if there is none."""
    return "-" if value is None else f"{100 * value:.1f} %"
