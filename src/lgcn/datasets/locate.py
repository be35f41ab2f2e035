"""Where the files of a data set can be on this machine.

The folders are, in this order: `root` from the caller, `$LGCN_DATA`, and the cache, which is
also where downloads go.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lgcn.errors import DataError


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/lgcn` or `~/.cache/lgcn`; on Windows `%LOCALAPPDATA%/lgcn`.

    If the user has no home folder, as in some containers, it is among the temporary files.
    """
    variable = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    base = os.environ.get(variable)
    if base:
        return Path(base) / "lgcn"
    try:
        return Path.home() / ".cache" / "lgcn"
    except RuntimeError:
        return Path(tempfile.gettempdir()) / "lgcn"


def data_folders(root: str | Path | None = None) -> list[Path]:
    """The folders to search, in order."""
    variable = os.environ.get("LGCN_DATA")
    given = [Path(folder).expanduser() for folder in (root, variable) if folder]
    return [*given, cache_folder()]


def find_files(
    names: Sequence[str], root: str | Path | None = None, subfolders: Sequence[str] = ()
) -> list[Path] | None:
    """Paths of the files `names` in the first folder that has them all, or `None`.

    Args:
        names: File names.
        root: See `data_folders`. (default: none)
        subfolders: Looked into after each folder itself. (default: none)
    """
    for folder in data_folders(root):
        for place in (folder, *(folder / subfolder for subfolder in subfolders)):
            paths = [place / name for name in names]
            if all(path.is_file() for path in paths):
                return paths
    return None


def missing_files(
    dataset: str,
    names: Sequence[str],
    root: str | Path | None = None,
    subfolders: Sequence[str] = (),
    *,
    advice: str = "",
) -> DataError:
    """The error to raise if `find_files` found nothing."""
    inside = f" (or in their {', '.join(f'{s}/' for s in subfolders)})" if subfolders else ""
    folders = "".join(f"\n  {folder}" for folder in data_folders(root))
    return DataError(
        f"the files of {dataset} are not on this machine. "
        f"Looked for {', '.join(names)} together in one of these folders{inside}:{folders}\n"
        "Set LGCN_DATA or give root: the folder that holds them"
        + (f", {advice}." if advice else ".")
    )
