"""Words in cells that stand for a missing value.

One list for features and labels. Codes such as `N/A` are missing in every column. Words such as
`unknown` can be a category or a class; they are missing only among numbers and dates.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

# Programs write these for a missing value or a failed formula; people write the signs by hand.
_CODES = (
    *("na", "n/a", "n.a.", "n. a.", "#n/a", "#n/a n/a", "#na", "<na>", "@na", "nan", "-nan", "nat"),
    *("null", "<null>", "(null)", "#null!", "\\n", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"),
    *("#div/0!", "#value!", "#ref!", "#name?", "#num!", "#error!"),
    *("-", "--", "---", "\N{EN DASH}", "\N{EM DASH}", "?", "??", "???", ".", "..", "..."),
)
_EXACT = ("", "NaN", "-NaN", "NaT", "None", "\\N")  # None: what Python writes, unlike the word
_WORDS = (
    *("none", "missing", "unknown", "undefined", "unavailable", "not available", "nil"),
    *("not applicable", "not known", "no data", "empty", "blank"),
)


def missing_words(na_values: Iterable[str] = (), *, signs: bool = False) -> frozenset[str]:
    """The cells, without blanks around them, that are missing in every column.

    Lower and upper case, and capitals at the start, count alike.

    Args:
        na_values: The user's words. (default: none)
        signs: Whether a plus sign is a value of the column; then a minus sign is one too.
            (default: `False`)
    """
    words = _cases((*_CODES, *na_values))
    return words - {"-"} if signs and "-" not in na_values else words


def missing_numbers(na_values: Iterable[str] = ()) -> frozenset[str]:
    """The cells that are missing among numbers and dates."""
    return _cases((*_CODES, *_WORDS, *na_values))


def _cases(words: Iterable[str]) -> frozenset[str]:
    return _cached_cases(tuple(words))


@lru_cache(64)
def _cached_cases(words: tuple[str, ...]) -> frozenset[str]:
    forms = (str, str.lower, str.upper, str.capitalize, str.title)
    return frozenset((*_EXACT, *(form(word.strip()) for word in words for form in forms)))
