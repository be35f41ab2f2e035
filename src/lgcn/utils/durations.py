"""Durations such as ``10m``."""

import math
import re

from lgcn.errors import UsageError

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str | int | float, name: str = "a duration") -> float:
    """The seconds of a duration such as ``"90s"``, ``"10m"``, ``"1.5h"``; a number is seconds.

    Args:
        text: The duration.
        name: What it is called in the message of a UsageError. (default: ``"a duration"``)
    """
    if isinstance(text, str):
        found = re.fullmatch(r"\s*([0-9]+[.]?[0-9]*|[.][0-9]+)\s*([smhd]?)\s*", text.lower())
        seconds = float(found[1]) * SECONDS[found[2] or "s"] if found else math.nan
    else:
        seconds = math.nan if isinstance(text, bool) else float(text)
    if not 0 < seconds < math.inf:
        raise UsageError(
            f"{name} must be a positive number with s, m, h or d, such as 90s or 10m, "
            f"got {text!r:.40}"
        )
    return seconds


def format_duration(seconds: float) -> str:
    """A duration as people say it: ``24 ms``, ``42 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < 0.1:
        return f"{1000 * seconds:.0f} ms"
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
