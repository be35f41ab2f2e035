"""How deep JSON is nested, for parsers that recurse."""

# mypy: disable-error-code="untyped-decorator"

from __future__ import annotations

from typing import Any

from lgcn.utils.jit import jit


@jit
def deepest(data: Any) -> Any:
    """How deep brackets are nested, and where. A quote that is open at the end of a line counts
    both ways, since the parser may see it either way.
    """
    deepest, place = 0, 0
    for ends_at_newline in (False, True):
        depth, inside, i = 0, False, 0
        while i < data.shape[0]:
            byte = data[i]
            if byte == 10 and ends_at_newline:
                depth, inside = 0, False
            elif inside:
                if byte == 92:  # a backslash
                    i += 1
                elif byte == 34:
                    inside = False
            elif byte == 34:
                inside = True
            elif byte == 91 or byte == 123:
                depth += 1
                if depth > deepest:
                    deepest, place = depth, i
            elif byte == 93 or byte == 125:
                depth -= 1
            i += 1
    return deepest, place
