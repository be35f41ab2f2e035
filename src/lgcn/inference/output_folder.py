"""Folders with one Parquet file per part of a graph."""

from __future__ import annotations

import re
from pathlib import Path

from lgcn.errors import UsageError
from lgcn.utils.files import is_stream

# Endings of single files, which a user may give out of habit.
_SINGLE = (".csv", ".tsv", ".parquet", ".npy", ".npz", ".json")
_PART = re.compile(r"part-(\d{4,})\.parquet")


def check_output_folder(path: str | Path, what: str, num_parts: int) -> Path:
    """The folder, if the files of all parts can be written there.

    Args:
        path: The folder. It may exist, with files of an earlier call for as many parts.
        what: What goes into it, for messages.
        num_parts: The number of parts.
    """
    folder = Path(path)
    if is_stream(folder) or folder.is_file() or folder.suffix.lower() in _SINGLE:
        raise UsageError(
            f"path must be a folder for {what} of a graph in parts, with one Parquet file per part,"
            f" got {folder}. Give a folder, such as {folder.with_suffix('').name or 'out'}"
        )
    for name in sorted(one.name for one in folder.iterdir()) if folder.is_dir() else ():
        number = _PART.fullmatch(name)
        if number is None or int(number[1]) >= num_parts:
            raise UsageError(
                f"path must be a new folder, or one with {what} of {num_parts} parts, but "
                f"{folder} has {name}. Give another folder"
            )
    return folder


def file_of_part(folder: Path, number: int) -> Path:
    """The file of a part."""
    return folder / f"part-{number:04d}.parquet"
