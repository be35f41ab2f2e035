"""Writes the report of a run, or a comparison of runs, as one HTML file."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from lgcn.errors import UsageError, WriteError
from lgcn.report.sample import MAX_SAMPLE, SAMPLE
from lgcn.utils.files import atomic, cannot_write, is_stream
from lgcn.utils.numbers import whole_number

if TYPE_CHECKING:
    from lgcn.inference.run_data import NewData
    from lgcn.inference.trained_run import TrainedRun
    from lgcn.report.compare_page import WrittenComparison
    from lgcn.report.facts import Facts
    from lgcn.utils.progress import OnProgress

MIN_SAMPLE = 10
MAX_RUNS = 8  # as many as the palette has colours


class WrittenReport(NamedTuple):
    """A report that was written.

    Args:
        path: The file.
        size: Its bytes.
        facts: What it shows.
    """

    path: Path
    size: int
    facts: Facts


def write_report(
    run: TrainedRun | str | Path,
    path: str | Path | None = None,
    *,
    sample: int = SAMPLE,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
    **data: Unpack[NewData],
) -> WrittenReport:
    """Writes a report of a trained run: one HTML file that needs no network.

    Args:
        run: The run, or its folder.
        path: The file. (default: `report.html` in the run folder)
        sample: How many nodes, or whole graphs, are shown one by one, from 10 to 10,000. Scores
            and charts are about all of them. (default: 3000)
        memory, on_progress: See `lgcn.inference.trained_run.TrainedRun.predict`.
        **data: New data, see `lgcn.inference.run_data.NewData`. (default: the graph of the
            training)
    """
    from lgcn.inference.trained_run import load_run

    whole_number("sample", sample, MIN_SAMPLE, MAX_SAMPLE)
    if isinstance(run, str | Path):
        run = load_run(run)
    target = run.folder / "report.html" if path is None else Path(path)
    check_page_path(target)
    check_writable(target, follow=path is not None)
    run.check_data(**data)
    from lgcn.report.facts import collect
    from lgcn.report.report_page import report_page

    facts, scores = collect(run, sample=sample, memory=memory, on_progress=on_progress, **data)
    text = report_page(facts, scores)
    size = write_page(target, text, follow=path is not None)
    return WrittenReport(target, size, facts)


def write_comparison(
    runs: Sequence[str | Path],
    path: str | Path = "comparison.html",
    *,
    memory: str | int | None = None,
    on_progress: OnProgress | None = None,
) -> WrittenComparison:
    """Writes a page that puts runs side by side; the first one is what others are compared with.

    Args:
        runs: The run folders, two to eight.
        path: The file. (default: `"comparison.html"`)
        memory, on_progress: See `lgcn.inference.trained_run.TrainedRun.predict`.
    """
    from lgcn.inference.trained_run import load_run

    target = Path(path)
    check_page_path(target)
    if not 2 <= len(runs) <= MAX_RUNS:
        raise UsageError(f"a comparison takes 2 to {MAX_RUNS} runs, got {len(runs)}")
    check_writable(target)
    opened = [load_run(folder) for folder in runs]
    from lgcn.report.compare_facts import compare
    from lgcn.report.compare_page import WrittenComparison, comparison_page

    facts = compare(opened, memory=memory, on_progress=on_progress)
    size = write_page(target, comparison_page(facts))
    return WrittenComparison(target, size, facts)


def check_page_path(path: Path) -> None:
    """Raises UsageError if the file cannot be a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"path must end in .html, got {path}")
    if path.is_dir():
        raise UsageError(f"path must be a file, got the folder {path}")


def check_writable(path: Path, *, follow: bool = True) -> None:
    """Raises WriteError if the file cannot be written, before anything is computed for it.

    Args:
        path: The file.
        follow: Whether a link is followed. (default: `True`)
    """
    target = Path(os.path.realpath(path)) if follow else path.absolute()
    if is_stream(target):
        raise WriteError(f"cannot write {path}: it is a pipe or a device. Give a file name")
    # Folders that do not exist are made when the page is written.
    folder = next(parent for parent in target.parents if os.path.lexists(parent))
    try:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        # A file tells more than permissions do: the system of files may be read-only.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        if error.errno == errno.ENOENT:  # such as /proc
            reason = "no files can be made there"
        raise cannot_write(path, OSError(error.errno, reason, str(folder))) from error


def write_page(path: Path, text: str, *, follow: bool = True) -> int:
    """Writes a page completely or not at all; gives its size in bytes.

    Args:
        path: The file.
        text: The page.
        follow: Whether a link is followed: not in a run folder, which may come from a stranger.
    """
    content = text.encode("utf-8")
    options: dict[str, Any] = {"follow": follow}
    with atomic(path, **options) as temporary:
        temporary.write_bytes(content)
    return len(content)
