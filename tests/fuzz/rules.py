"""The rule for wrong input: it is refused with one clear line, and nothing else."""

from collections.abc import Callable
from typing import Any

from lgcn.errors import LGCNError

LONGEST_MESSAGE = 2000  # of an error; a cell of a megabyte must not fill the screen


class Refused(Exception):
    """The input was refused with one clear line: the case passes."""


def check_message(message: str) -> None:
    """Fails if an error is not one line. (The command line escapes control characters.)"""
    assert message, "an error without a message"
    assert "\n" not in message, f"a message of several lines: {message[:500]!r}"
    assert len(message) < LONGEST_MESSAGE, f"{len(message)} characters: {message[:500]!r}"


def refuses(*wanted: type[Exception]) -> Any:
    """Checks the message of errors of these types, and turns them into :class:`Refused`."""
    return _Refuses(wanted)


class _Refuses:
    def __init__(self, wanted: tuple[type[Exception], ...]) -> None:
        self._wanted = wanted

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None and issubclass(kind, self._wanted):
            check_message(str(error))
            raise Refused(str(error)) from error


def file_errors() -> Any:
    """For reading files: only errors of the library."""
    return refuses(LGCNError)


def argument_errors() -> Any:
    """For arguments of library functions: also ValueError."""
    return refuses(LGCNError, ValueError)


def wrong(call: Callable[[], Any]) -> None:
    """Fails unless the call is refused with one clear line."""
    with argument_errors():
        result = call()
    raise AssertionError(f"accepted, though it must be refused: {result!r:.300}")
