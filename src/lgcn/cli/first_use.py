"""What happens on a machine once: kernels are compiled for its processor."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lgcn
from lgcn.cli.output import print_note
from lgcn.workers.launcher import launched

NOTE = "compiling kernels for this processor, which takes some seconds, once"

_log = logging.getLogger("lgcn.compile")


class _Note(logging.Handler):
    """One note for all kernels of a command."""

    told = False

    def emit(self, record: logging.LogRecord) -> None:
        first = not launched() or os.environ["RANK"] == "0"  # it speaks for all processes
        if first and not self.told:
            self.told = True
            print_note(NOTE)


def tell_of_compiling() -> None:
    """Lets the first kernel that is compiled be announced on standard error."""
    _log.handlers = [_Note()]
    _log.setLevel(logging.INFO)
    _log.propagate = False


@contextmanager
def quiet_about_compiling(quiet: bool) -> Iterator[None]:
    """Takes that back while the block runs, if the user wants it quiet."""
    before, _log.disabled = _log.disabled, quiet
    try:
        yield
    finally:
        _log.disabled = before


@contextmanager
def first_step_ahead() -> Iterator[None]:
    """If there are no kernels yet, lets another process compile those of a training.

    Meanwhile, this one imports libraries and reads data.
    """
    from lgcn.utils import ahead
    from lgcn.utils.jit import worth_compiling_ahead  # Numba, but not torch

    kernels = Path(lgcn.__file__).parent / "ops" / "cpu" / "kernels.py"
    if not (ahead.several_cores() and worth_compiling_ahead(kernels, "k_largest")):
        yield
        return
    _log.info("compiling in another process")
    with ahead.compiling("lgcn.ops.cpu.first_step", package="lgcn.ops"):
        yield
