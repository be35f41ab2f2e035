"""Runs one case, tells failures apart, and shortens a failing case."""

import platform
import re
import time
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from .rules import Refused
from .source import Source
from .targets import target as target_of

REPOSITORY = Path(__file__).parents[2]
LONGEST = 600  # characters of an error that are kept


class Outcome(NamedTuple):
    """``refused`` in one clear line; ``where`` and ``error`` of a failure."""

    refused: bool = False
    where: str = ""
    error: str = ""


def run_case(target: str, buffer: bytes) -> Outcome:
    """Runs a case in this process."""
    try:
        target_of(target)(Source(buffer))
    except Refused:
        return Outcome(refused=True)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic in Rust code is not an Exception
        return Outcome(where=place(error), error=text_of(error))
    return Outcome()


def quiet() -> None:
    """Ignores the warnings of the library; a warning of NumPy is an error."""
    warnings.simplefilter("ignore")
    warnings.simplefilter("error", RuntimeWarning)


def place(error: BaseException) -> str:
    """The type of an error and the last lines of the package and of all code that it came from."""
    cause = error.__context__ if isinstance(error, AssertionError) else None
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    found = [type(error).__name__, f"{Path(last.filename).name}:{last.lineno}"]
    for frame in reversed(traceback.extract_tb((cause or error).__traceback__)):
        if "/lgcn/" in frame.filename:
            found.append(f"{frame.filename.rpartition('/lgcn/')[2]}:{frame.lineno}")
            break
    return " ".join(found)


def text_of(error: BaseException) -> str:
    """Type and message, shortened, without paths that differ between runs."""
    lines = "".join(traceback.format_exception_only(error)).strip().replace(str(REPOSITORY), ".")
    lines = re.sub(r"\S*/lgcn-fuzz-\w+/(\d+/)?", "", lines)
    return lines if len(lines) <= LONGEST else lines[:LONGEST] + "..."


def reduced(
    buffer: bytes, fails: Callable[[bytes], bool], seconds: float, tries: int = 2000
) -> bytes:
    """Fewer and smaller bytes that fail in the same way."""
    end = time.monotonic() + seconds
    best = buffer

    def better(candidate: bytes) -> bool:
        nonlocal best, tries
        if candidate == best or tries <= 0 or time.monotonic() > end:
            return False
        tries -= 1
        if fails(candidate):
            best = candidate
            return True
        return False

    length = len(best) // 2
    while length:  # cut off the end, in halves
        while len(best) > length and better(best[:-length]):
            pass
        length //= 2
    for size in (64, 16, 4, 1):
        at = len(best) - size
        while at >= 0:
            if not better(best[:at] + best[at + size :]):
                better(best[:at] + bytes(size) + best[at + size :])
            at -= size
    return best


def versions() -> dict[str, str]:
    """Of Python and of what matters for a case."""
    found = {"python": platform.python_version()}
    for name in ("lgcn", "numpy", "torch", "torch_geometric", "numba", "scipy", "pyarrow"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
