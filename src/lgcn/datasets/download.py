"""Downloads with a checksum."""

from __future__ import annotations

import hashlib
import http.client
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from lgcn.errors import DataError
from lgcn.utils.files import atomic

TIMEOUT_SECONDS = 30
CHUNK_BYTES = 1 << 16


def download(url: str, sha256: str, target: str | Path) -> Path:
    """Fetches `url` to `target`, which appears only once its SHA-256 is as expected.

    The bytes go to a temporary file next to `target`, which then takes its place in one step. So
    several processes can download at once, and an interruption leaves nothing behind. With
    `LGCN_OFFLINE=1` in the environment nothing is fetched.
    """
    target = Path(target)
    if os.environ.get("LGCN_OFFLINE", "") not in ("", "0"):
        raise DataError(
            f"cannot download {url}: LGCN_OFFLINE is set. Unset it, or put the file at {target}"
        )
    parts = urlsplit(url)
    # Plain http only to this machine itself.
    if parts.scheme != "https" and (parts.scheme, parts.hostname) != ("http", "127.0.0.1"):
        raise DataError(f"cannot download {url}: only https addresses are allowed")

    with atomic(target) as temporary:
        digest = hashlib.sha256()
        with temporary.open("wb") as file:
            for chunk in _chunks(url, target):
                digest.update(chunk)
                file.write(chunk)
        if digest.hexdigest() != sha256:
            raise DataError(
                f"{url} has SHA-256 {digest.hexdigest()}, expected {sha256}: the download was "
                "damaged or the file has changed. Nothing was kept; try again, or put the file "
                f"at {target} yourself"
            )
    return target


def _chunks(url: str, target: Path) -> Iterator[bytes]:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response:
            while chunk := response.read(CHUNK_BYTES):
                yield chunk
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DataError(
            f"cannot download {url} to {target}: {error}. Try again, or put the file there yourself"
        ) from error
