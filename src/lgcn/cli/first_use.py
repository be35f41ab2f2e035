"""What happens on a machine once: kernels are compiled for its processor."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import lgcn
from lgcn.cli.output import print_note
from lgcn.errors import DataError
from lgcn.workers.launcher import launched

if TYPE_CHECKING:
    from lgcn.datasets.graph_source import GraphSource

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
def first_step_ahead(source: "GraphSource") -> Iterator[None]:
    """If there are no kernels yet, lets another process compile those of a training on this graph.

    Meanwhile, this one imports libraries and reads data.
    """
    from lgcn.utils import ahead

    if not (ahead.spare_core() and _kernels_are_missing(source)):
        yield
        return
    _log.info("compiling in another process")
    index_dtype = "int32" if source.dataset == "tables" else "int64"
    with ahead.compiling("lgcn.ops.cpu.first_step", index_dtype, package="lgcn.ops"):
        yield


def _kernels_are_missing(source: "GraphSource") -> bool:
    from lgcn.datasets import dataset_files
    from lgcn.datasets.graph_source import IN_FOLDERS, OF_GRAPHS

    if source.dataset in (*IN_FOLDERS, *OF_GRAPHS):  # these take other steps
        return False
    try:
        dataset_files(source.dataset, source.root)
    except DataError:  # they are downloaded, or the user is told at once that they are not there
        return False
    from lgcn.utils.jit import worth_compiling_ahead  # Numba, but not torch

    selection = Path(lgcn.__file__).parent / "ops" / "cpu" / "select.py"
    return worth_compiling_ahead(selection, "k_largest")
