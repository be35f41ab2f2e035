"""Files that predictions and embeddings are written to, checked before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lgcn.errors import UsageError
from lgcn.utils.files import is_stream


def check_output(
    path: str | Path, what: str, suffixes: Sequence[str], streams: Sequence[str] = ()
) -> str:
    """The format of a file, as its ending in lower case, if it can be written.

    Args:
        path: The file.
        what: What goes into it, for messages.
        suffixes: The endings that it may have.
        streams: Those of them that a pipe or a device such as `/dev/stdout` takes. Without an
            ending it gets the first of them. (default: none, it must be a file)
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if is_stream(path):
        suffix = suffix or next(iter(streams), "")
        if not streams:
            raise UsageError(f"path must be a file for {what}, got the pipe or device {path}")
        if suffix not in streams:
            raise UsageError(
                f"path must end in {_or(streams)} if it is a pipe or device, got {path}"
            )
        return suffix
    if suffix not in suffixes:
        raise UsageError(f"path must end in {_or(suffixes)} for {what}, got {path}")
    if path.is_dir():
        raise UsageError(f"path must be a file for {what}, got the folder {path}")
    return suffix


def _or(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"
