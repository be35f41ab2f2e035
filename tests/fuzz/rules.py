"""The rule for input that is wrong: one clear line, and nothing else."""

from collections.abc import Callable
from typing import Any

from lgcn.errors import LGCNError

LONGEST_MESSAGE = 2000  # of an error; a cell of a megabyte must not fill the screen


class Refused(Exception):
    """The case was refused in one clear line, which ends it well."""


def check_message(message: str) -> None:
    """Fails where an error is not one line. Escape codes in it are the command line's to escape."""
    assert message, "an error without a message"
    assert "\n" not in message, f"a message of several lines: {message[:500]!r}"
    assert len(message) < LONGEST_MESSAGE, f"{len(message)} characters: {message[:500]!r}"


def refuses(*wanted: type[Exception]) -> Any:
    """Turns errors of these types into :class:`Refused`, once their message was checked."""
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
    """For what is read from files, whose errors are the library's own."""
    return refuses(LGCNError)


def argument_errors() -> Any:
    """For arguments of library functions."""
    return refuses(LGCNError, ValueError)


def wrong(call: Callable[[], Any]) -> None:
    """Fails unless the call is refused in one clear line."""
    with argument_errors():
        result = call()
    raise AssertionError(f"accepted, though it must be refused: {result!r:.300}")
