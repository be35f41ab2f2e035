"""Files of JSON lines: one record per line, sorted by a key, at most one record per key.

A file is replaced in one step, so a process that is killed leaves the old file or the new one. A
lock on the folder lets several processes add records to the same file.
"""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lgcn.errors import DataError
from lgcn.utils.files import atomic, cannot_write, lock, open_plain, parse_json

Record = Mapping[str, Any]
# The part of a record that identifies it; values that can be compared. Any of UNKEYED is raised for
# a record that has no such part.
Key = Callable[[Any], tuple[Any, ...]]
UNKEYED = (KeyError, TypeError, AttributeError, ValueError)
LOCK_WAIT = 0.01  # seconds


class Lines(NamedTuple):
    """The records of a file by key, and the numbers of the damaged lines."""

    records: dict[tuple[Any, ...], Any]
    damaged: list[int]


def read_lines(path: Path, key: Key) -> Lines:
    """Reads a file; a missing one has no records. Of several records with a key, the last counts.

    Raises:
        DataError: The file cannot be read at all.
    """
    found = Lines({}, [])
    try:
        with open_plain(path) as file:
            lines = file.read().split(b"\n")
    except FileNotFoundError:
        return found
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = parse_json(line)
            found.records[key(record)] = record
        except UNKEYED:
            found.damaged.append(number)
    return found


def put_lines(path: Path, records: Iterable[Record], key: Key) -> None:
    """Adds records to a file; each replaces the one with its key. Damaged lines are removed."""
    with locked(path):
        merged = read_lines(path, key).records
        merged |= {key(record): record for record in records}
        lines = [json.dumps(merged[place]) + "\n" for place in sorted(merged)]
        with atomic(path) as temporary:
            temporary.write_text("".join(lines), encoding="utf-8")


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Waits until no other process has locked the folder of a file, which is made if needed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.parent, os.O_RDONLY)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        while lock(handle) is False:
            time.sleep(LOCK_WAIT)
        yield
    finally:
        os.close(handle)
