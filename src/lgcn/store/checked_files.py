"""Reading the files of a store, none of which is trusted before it is checked."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lgcn.errors import DataError
from lgcn.store.format import (
    DTYPES,
    FIELDS,
    FORMAT,
    HEADER,
    OFFSETS,
    Array,
    check_header,
    file_of,
    header_digest,
)
from lgcn.utils.files import parse_json
from lgcn.utils.limits import MAX_CLASSES, MAX_INT32, MAX_JSON, MAX_NODES
from lgcn.utils.stored_json import fields

PIECE = 1 << 22  # bytes that are hashed and looked at together
_READ = 1 << 18


def read_header(folder: Path) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays it lists, types and shapes checked against each other."""
    path = folder / HEADER
    if not folder.is_dir():
        raise DataError(f"there is no store at {folder}: no such folder")
    if not path.exists():
        raise DataError(f"there is no store at {folder}: it has no {HEADER}")
    with open_file(path) as (handle, size):
        if size > MAX_JSON:
            raise DataError(f"{path} must have at most {MAX_JSON} bytes, got {size}")
        with os.fdopen(os.dup(handle), "rb") as file:
            text = file.read(size)  # which asks for the memory at once
    try:
        stored = parse_json(text, finite=True)
    except ValueError as error:
        raise DataError(f"{path} is damaged or no header: {error!s:.200}") from None
    got = stored.get("format") if isinstance(stored, dict) else type(stored).__name__
    if type(got) is not int or got != FORMAT:
        raise DataError(
            f"{path} must be the header of a store of format {FORMAT}, got {got!r:.80}; this "
            "version of lgcn reads no other"
        )
    fields(stored, str(path), *FIELDS)
    if stored["sha256"] != header_digest(stored):
        raise DataError(f"{path} was altered: its checksum does not fit")
    return stored, check_header(stored, str(path))


@contextmanager
def open_file(path: Path) -> Iterator[tuple[int, int]]:
    """(descriptor, size) of a plain file. A link could point anywhere, a pipe would wait."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags)
    except FileNotFoundError:
        raise DataError(f"{path} is missing; the store is not complete") from None
    except OSError as error:
        link = " (a store must not have links)" if path.is_symlink() else ""
        raise DataError(f"cannot open {path}{link}: {error.strerror}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise DataError(f"{path} must be a plain file")
        yield handle, status.st_size
    finally:
        os.close(handle)


def check_size(path: Path, size: int, array: Array) -> None:
    if size != array.num_bytes:
        state = "cut short" if size < array.num_bytes else "too long"
        raise DataError(
            f"{path} is {state}: it must have {array.num_bytes} bytes ({array.dtype}, shape "
            f"{list(array.shape)}), got {size}. Write the store again"
        )


class _Piece(NamedTuple):
    digest: bytes
    first: int
    last: int
    problem: str | None


def digests(folder: Path, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> dict[str, str]:
    """Reads all files in threads, checks the values that are used as an index, and hashes them.

    A checksum is the SHA-256 of the SHA-256 digests of the file's pieces of `PIECE` bytes, so
    that any number of threads can work on one file. Memory is one piece per thread.
    """
    names = header["label_names"]
    limits = _limits(header, arrays, None if names is None else len(names))
    jobs = [
        (name, start)
        for name, array in arrays.items()
        for start in range(0, max(array.num_bytes, 1), PIECE)
    ]

    def look(job: tuple[str, int]) -> _Piece:
        name, start = job
        array = arrays[name]
        with open_file(file_of(folder, name)) as (handle, size):
            check_size(file_of(folder, name), size, array)
            buffer = bytearray(min(PIECE, size - start))
            digest = _read(handle, start, buffer, file_of(folder, name))
        values = np.frombuffer(buffer, DTYPES[array.dtype])
        first, last = (int(values[0]), int(values[-1])) if name in OFFSETS else (0, 0)
        return _Piece(digest, first, last, limits[name](values) if name in limits else None)

    hashes = {name: hashlib.sha256() for name in arrays}
    before = dict.fromkeys(OFFSETS, 0)
    with ThreadPoolExecutor(num_threads(), thread_name_prefix="lgcn-store") as pool:
        try:
            for (name, start), piece in zip(jobs, pool.map(look, jobs), strict=True):
                hashes[name].update(piece.digest)
                problem = piece.problem
                if name in OFFSETS:
                    if start == 0 and piece.first != 0:
                        problem = f"it must start with 0, got {piece.first}"
                    elif piece.first < before[name]:
                        problem = "it must not decrease"
                    before[name] = piece.last
                if problem is not None:
                    raise DataError(f"{file_of(folder, name)} is damaged: {problem}")
        finally:
            pool.shutdown(cancel_futures=True)
    for name, target in OFFSETS.items():
        if name in arrays:
            check_end(folder, name, before[name], arrays[target].shape[0] - (name == "ptr"))
    return {name: value.hexdigest() for name, value in hashes.items()}


def check_end(folder: Path, name: str, last: int, length: int) -> None:
    if last != length:
        raise DataError(
            f"{file_of(folder, name)} is damaged: it must end with {length}, the number of "
            f"entries it points into, got {last}"
        )


def _read(handle: int, start: int, buffer: bytearray, path: Path) -> bytes:
    """Fills the buffer from the file, and hashes it while it is in the cache."""
    digest, view, done = hashlib.sha256(), memoryview(buffer), 0
    while done < len(buffer):
        count = os.preadv(handle, [view[done : done + _READ]], start + done)
        if count == 0:
            raise DataError(f"{path} is cut short")
        digest.update(view[done : done + count])
        done += count
    return digest.digest()


Check = Callable[[Any], str | None]


def _limits(
    header: Mapping[str, Any], arrays: Mapping[str, Array], num_classes: int | None
) -> dict[str, Check]:
    """For each array with limits on its values, a function that says what is wrong with them."""
    nodes, features = header["num_nodes"], header["num_features"]
    found: dict[str, Check] = {name: _rises for name in OFFSETS}
    found |= {"col": _between(0, nodes), "x_col": _between(0, features)}
    found |= dict.fromkeys(("edge_weight", "degree", "x_scale", "x_offset"), _finite)
    found |= {f"{split}_mask": _truths for split in ("train", "val", "test")}
    if "y" in arrays:
        matrix = header["multi_label"]
        high = 2 if matrix else MAX_CLASSES if num_classes is None else num_classes
        numbers = arrays["y"].dtype == "float64"
        found["y"] = _numbers_or_nan if numbers else _between(0 if matrix else -1, high)
    found["sample_weight"] = _weights
    # How large they may be, the store of a part does not say: `lgcn.partition` checks that.
    found |= {"n_id": _between(0, MAX_NODES), "owner": _between(0, MAX_INT32)}
    return found


def _rises(values: Any) -> str | None:
    return None if bool((values[1:] >= values[:-1]).all()) else "it must not decrease"


def _between(low: int, high: int) -> Check:
    def check(values: Any) -> str | None:
        if values.size and not low <= int(values.min()) <= int(values.max()) < high:
            return (
                f"its values must lie between {low} and {high - 1}, got {values.min()} to "
                f"{values.max()}"
            )
        return None

    return check


def _finite(values: Any) -> str | None:
    return None if bool(np.isfinite(values).all()) else "its values must be finite numbers"


def _numbers_or_nan(values: Any) -> str | None:
    return "its values must be finite numbers, or NaN" if bool(np.isinf(values).any()) else None


def _weights(values: Any) -> str | None:
    sound = bool((np.isfinite(values) & (values >= 0)).all())
    return None if sound else "its values must be finite numbers of at least 0"


def _truths(values: Any) -> str | None:
    # Only the bytes 0 and 1 are booleans, though NumPy accepts any.
    found = values.view(np.uint8)
    return None if found.size == 0 or found.max() <= 1 else "a mask must have zeros and ones only"


def num_threads() -> int:
    """The number of processors this process may use, at most eight."""
    affinity = getattr(os, "sched_getaffinity", None)
    return min(8, len(affinity(0)) if affinity else os.cpu_count() or 1)
