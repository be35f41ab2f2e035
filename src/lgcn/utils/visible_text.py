"""Text from files that anyone may have written, made safe to show.

Control characters could move the cursor of a terminal, hide text or reverse it. They are shown as
escapes, such as `\\x1b`.
"""

import re

# Control characters except the line break and the tab; characters that change the direction of
# text; lone surrogates, which stand for bytes of a file name that are not text.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def visible(text: str) -> str:
    """The text with escapes in place of control characters."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def has_control(text: str) -> bool:
    """Whether `visible` would change the text."""
    return _CONTROL.search(text) is not None
