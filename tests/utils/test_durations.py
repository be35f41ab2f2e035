"""Durations as people write them."""

from typing import Any

import pytest

from lgcn.errors import UsageError
from lgcn.utils.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("1.5h", 5400), ("2 H", 7200), ("1d", 86400), ("45", 45), (3, 3)],
)
def test_durations(text: Any, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "0s", "5 minutes", 0, -1, float("nan"), True])
def test_what_is_no_duration(text: Any) -> None:
    with pytest.raises(UsageError, match=r"time_limit must be a positive number .* such as 90s"):
        parse_duration(text, "time_limit")


def test_as_text() -> None:
    found = [format_duration(seconds) for seconds in (0.024, 0.25, 42, 200, 3900)]
    assert found == ["24 ms", "0.2 s", "42 s", "3 min 20 s", "1 h 5 min"]
