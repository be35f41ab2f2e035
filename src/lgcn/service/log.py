"""The log of the service: plain lines on standard error."""

from __future__ import annotations

import logging
import sys


def plain_lines(*, quiet: bool) -> None:
    """Writes one line per request, and failures with their traceback, to standard error.

    Args:
        quiet: Leave out the lines of requests.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    log = logging.getLogger("lgcn.service")
    log.handlers = [handler]
    log.propagate = False
    log.setLevel(logging.ERROR if quiet else logging.INFO)
