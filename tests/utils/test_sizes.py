"""Amounts of memory as users write and read them."""

from typing import Any

import pytest

from lgcn.errors import UsageError
from lgcn.utils.sizes import format_memory, parse_memory


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("2GB", 2 * 10**9),
        (" 1.5 gib ", 3 * 2**29),
        ("512MB", 512 * 10**6),
        ("100k", 10**5),
        ("64MiB", 2**26),
        (".5T", 5 * 10**11),
        ("4096", 4096),
        (4096, 4096),
    ],
)
def test_sizes(value: Any, size: int) -> None:
    assert parse_memory(value) == size


@pytest.mark.parametrize(
    "value", ["", "GB", "2 apples", "-1GB", "1,5GB", "nan", 0, -4, True, 2.5, None, "0GB", "1e3"]
)
def test_what_is_no_size(value: Any) -> None:
    with pytest.raises(UsageError, match=r"scratch must be a size such as '2GB'.* got"):
        parse_memory(value, "scratch")


@pytest.mark.parametrize(
    ("size", "text"),
    [(12, "12 bytes"), (1000, "1 kB"), (1_230_000, "1.3 MB"), (4 * 10**9, "4 GB")],
)
def test_sizes_in_messages_are_enough(size: int, text: str) -> None:
    assert format_memory(size) == text
    if "bytes" not in text:
        assert parse_memory(text) >= size
