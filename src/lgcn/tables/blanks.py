"""Text whose cells are separated by runs of blanks and tabs, as a stream with one blank each."""

from __future__ import annotations

import io
from typing import Any

from lgcn.errors import DataError

MAX_LINE = 1 << 24  # bytes
_PIECE = 1 << 20


class SingleBlanks(io.BufferedIOBase):
    """The bytes of a file, with one blank for each run of blanks and tabs, and none at line ends.

    Lines stay lines, so that their numbers are those of the file.

    Args:
        file: What to read, in an encoding that extends ASCII.
        name: Its name, for messages.
    """

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name
        self._rest = b""  # bytes of a line that is not complete
        self._ready = b""
        self._place = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        wanted = -1 if size is None else size
        parts: list[bytes] = []
        while wanted != 0:
            if self._place == len(self._ready) and not self._fill():
                break
            stop = len(self._ready) if wanted < 0 else self._place + wanted
            parts.append(self._ready[self._place : stop])
            self._place += len(parts[-1])
            wanted -= len(parts[-1]) if wanted > 0 else 0
        return b"".join(parts)

    def read1(self, size: int = -1) -> bytes:
        return self.read(size if size >= 0 else _PIECE)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _fill(self) -> bool:
        """Makes some whole lines ready; gives whether there are any."""
        end = 0
        while end == 0:
            piece = self._file.read(_PIECE)
            if not piece:
                end = len(self._rest)
                break
            self._rest += piece
            end = max(self._rest.rfind(b"\n"), self._rest.rfind(b"\r", 0, -1)) + 1
            if end == 0 and len(self._rest) > MAX_LINE:
                raise DataError(f"{self._name}: a line must have at most {MAX_LINE} bytes")
        self._ready, self._rest, self._place = _single(self._rest[:end]), self._rest[end:], 0
        return end > 0


def _single(lines: bytes) -> bytes:
    """Whole lines with single blanks."""
    lines = lines.replace(b"\t", b" ")
    while b"  " in lines:
        lines = lines.replace(b"  ", b" ")
    for end in (b"\n", b"\r"):
        lines = lines.replace(b" " + end, end).replace(end + b" ", end)
    return lines.strip(b" ")
