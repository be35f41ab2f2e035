"""Amounts of memory as users write and read them."""

import re

from lgcn.errors import UsageError

_UNITS = {"": 0, "b": 0, "k": 1, "kb": 1, "m": 2, "mb": 2, "g": 3, "gb": 3, "t": 4, "tb": 4}
_BINARY = {"ki": 1, "kib": 1, "mi": 2, "mib": 2, "gi": 3, "gib": 3, "ti": 4, "tib": 4}


def parse_memory(value: str | int, option: str = "memory") -> int:
    """Converts a size such as `"2GB"` to a number of bytes.

    Args:
        value: Bytes as an int, or a number with a unit: kB, MB, GB and TB are powers of 1000, KiB,
            MiB, GiB and TiB powers of 1024.
        option: Name of the option in the error message. (default: `"memory"`)
    """
    wanted = f"{option} must be a size such as '2GB', '512MB' or '1.5GiB', got {value!r}"
    if isinstance(value, int) and not isinstance(value, bool):
        size = float(value)
    else:
        found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", str(value).lower())
        if not isinstance(value, str) or found is None:
            raise UsageError(wanted)
        number, unit = float(found[1]), found[2]
        if unit in _BINARY:
            size = number * 1024 ** _BINARY[unit]
        elif unit in _UNITS:
            size = number * 1000 ** _UNITS[unit]
        else:
            raise UsageError(f"{wanted}. The units are kB, MB, GB, TB, KiB, MiB, GiB and TiB")
    if not 1 <= size < 2**63:
        raise UsageError(wanted)
    return int(size)


def format_memory(size: float) -> str:
    """A number of bytes as text, rounded up, so that a user can pass it as a limit."""
    for unit, power in (("GB", 3), ("MB", 2), ("kB", 1)):
        if size >= 1000**power:
            tenths = -int(-size * 10 // 1000**power)
            return f"{tenths / 10:g} {unit}"
    return f"{size:.0f} bytes"
