"""JSON with other values in it, and safetensors files with other headers."""

import json
from typing import Any

from .source import ENDS, Source

STRINGS = ("", "x", "rowptr", "dtype", "\x1b[2J", "\ud800", "\n", "../x", "/etc/passwd", "é" * 200)
NUMBERS = (0, 1, -1, 2, 0.5, -0.5, 1e308, -1e-320, 10**400, *ENDS[-12:])
# What Python's parser accepts or writes although it is not JSON, and deep nesting.
RAW = (
    *("NaN", "-Infinity", "1e999", "[" * 20_000, "[" * 500 + "]" * 500, '{"a":' * 3000, "9" * 6000),
    *('"\\ud800"', "{", "", "[[]]", "{}", "null", "true"),
)
_PLACE = "\x00fuzz\x00"


def json_value(source: Source, depth: int = 2) -> Any:
    kind = source.below(8)
    if kind <= 2 or (depth == 0 and kind > 4):
        return source.choice(NUMBERS)
    if kind == 3:
        return source.choice((None, True, False))
    if kind == 4:
        return source.choice(STRINGS) if source.flag() else source.text()
    if kind <= 6:
        return [json_value(source, depth - 1) for _ in range(source.below(4))]
    return {source.choice(STRINGS): json_value(source, depth - 1) for _ in range(source.below(4))}


def altered_json(source: Source, value: Any) -> str:
    """The text of ``value`` with another value at some place, or with a key more or less."""
    changed = json.loads(json.dumps(value))
    raw = None
    for _ in range(source.choice((1, 1, 1, 2))):
        holder, key = _place(source, changed)
        if holder is None:
            changed = json_value(source)
            continue
        kind = source.below(8)
        if kind == 7 and raw is None:
            raw = source.choice(RAW)
            holder[key] = _PLACE
        elif kind == 6:
            del holder[key]
        elif kind == 5 and isinstance(holder, dict):
            holder[source.choice(STRINGS)] = json_value(source)
        elif kind == 4 and isinstance(holder[key], int | float):
            holder[key] = source.choice(NUMBERS)
        elif kind == 3 and isinstance(holder, list):
            holder.insert(key, json_value(source))
        else:
            holder[key] = json_value(source)
    text = json.dumps(changed)
    return text if raw is None else text.replace(json.dumps(_PLACE), raw, 1)


def _place(source: Source, value: Any) -> tuple[Any, Any]:
    """A list or dict inside ``value``, and one of its keys; (None, None) for all of it."""
    holder: Any = None
    key: Any = None
    while isinstance(value, list | dict) and value and (holder is None or source.below(4)):
        keys = list(value) if isinstance(value, dict) else range(len(value))
        holder, key = value, source.choice(keys)
        value = value[key]
    return (None, None) if source.rarely() else (holder, key)


def altered_safetensors(source: Source, content: bytes) -> bytes:
    """The same tensors under a header that was changed, or with one of them renamed."""
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    if source.below(3) == 0 and isinstance(header, dict) and header:
        name = source.choice(list(header))
        part, _, rest = name.partition(".")
        names = (f"{part}.zz.k", f"zz.{rest}", part, f"{part}.", f"{part}.-1.step", f"{name}.x")
        header[source.choice((*names, "", source.text()))] = header.pop(name)
        text = json.dumps(header)
    else:
        text = altered_json(source, header)
    coded = text.encode("utf-8", errors="replace")
    size = len(coded) if not source.rarely() else source.choice((0, 2**40, 2**63, len(coded) - 1))
    return size.to_bytes(8, "little") + coded + data
