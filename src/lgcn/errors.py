"""The errors that users can meet, and helpers for their messages.

Invalid arguments of library functions raise a plain `ValueError`. The classes here are for what
comes from outside a call: files, settings and runs. The command line prints their message and
returns their exit code. Any other exception is reported as a bug.
"""

import difflib
import re
from collections.abc import Iterable

# The remedy if the files of a run cannot be used.
START_AGAIN = "Start again with --overwrite, or with another --out"


class LGCNError(Exception):
    """Base of the errors below. `exit_code` is what the command line returns."""

    exit_code = 1


class UsageError(LGCNError, ValueError):
    """The user asked for something that does not exist or is inconsistent."""

    exit_code = 2


class DataError(LGCNError):
    """Data are missing, damaged or not of the expected kind."""


class WriteError(DataError):
    """A file could not be written. An earlier file is unchanged."""


class CheckpointError(LGCNError):
    """A run folder is missing, damaged, or does not fit the given model or graph."""


class TrainingDiverged(LGCNError):
    """The loss is no longer a finite number."""


class Interrupted(LGCNError):
    """The user stopped the command, by Ctrl-C or a signal."""

    exit_code = 130


class TrainingInterrupted(Interrupted):
    """The user stopped the run; its state is saved."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint for an unknown name: the closest known name, or all of them."""
    names = [str(one) for one in known]
    by_lower = {one.lower(): one for one in reversed(names)}  # the first of several wins
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else f"known: {', '.join(names)}"


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of the machine, not of a GPU, ran out.

    NumPy and Arrow raise MemoryError, torch's CPU allocator RuntimeError.
    """
    torch_says = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    return isinstance(error, MemoryError) or torch_says


def first_line_of(error: BaseException) -> str:
    """The first line of an error message, shortened."""
    return _short((str(error).splitlines() or [""])[0], error)


def one_line(error: BaseException) -> str:
    """An error message in one line, shortened."""
    text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return _short(re.sub(r"\s+", " ", text), error)


def _short(text: str, error: BaseException) -> str:
    text = text.strip().rstrip(".") or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."
