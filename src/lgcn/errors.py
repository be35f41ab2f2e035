"""The errors a user can meet, and nothing else.

Wrong arguments of library functions are plain ``ValueError``. The classes here are for what goes
wrong outside a call: files, configuration and runs. The command line turns them into a message and
an exit code; any other exception is a bug, which it reports as one.
"""

import difflib
import re
from collections.abc import Iterable

# The remedy where a run's files are of no use.
START_AGAIN = "Start again with --overwrite, or with another --out"


class LGCNError(Exception):
    """Base of the errors below. ``exit_code`` is what the command line returns."""

    exit_code = 1


class UsageError(LGCNError, ValueError):
    """The user asked for something that does not exist or does not fit together."""

    exit_code = 2


class DataError(LGCNError):
    """Data are missing, damaged, or not what their name promises."""


class WriteError(DataError):
    """A file could not be written; what was there before is unchanged."""


class CheckpointError(LGCNError):
    """A run folder is missing, damaged, or does not belong to the model or graph at hand."""


class TrainingDiverged(LGCNError):
    """The loss is no longer a finite number."""


class Interrupted(LGCNError):
    """The user stopped the command, by Ctrl-C or a signal."""

    exit_code = 130


class TrainingInterrupted(Interrupted):
    """The user stopped the run; its state is saved."""


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint for a name that nobody knows: the closest known one, or all of them."""
    names = [str(one) for one in known]
    by_lower = {one.lower(): one for one in reversed(names)}  # the first of several wins
    close = difflib.get_close_matches(str(name).lower(), by_lower, n=1)
    return f"did you mean {by_lower[close[0]]!r}?" if close else f"known: {', '.join(names)}"


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the machine's memory, not a GPU's, was too little.

    NumPy and Arrow raise MemoryError, torch's CPU allocator RuntimeError.
    """
    torch_says = isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
    return isinstance(error, MemoryError) or torch_says


def first_line_of(error: BaseException) -> str:
    """The first line of what an error says, shortened."""
    return _short((str(error).splitlines() or [""])[0], error)


def one_line(error: BaseException) -> str:
    """All that an error says in one line, shortened."""
    text = f"{error} is missing" if isinstance(error, KeyError) else str(error)
    return _short(re.sub(r"\s+", " ", text), error)


def _short(text: str, error: BaseException) -> str:
    text = text.strip().rstrip(".") or type(error).__name__
    return text if len(text) <= 300 else f"{text[:297]}..."
