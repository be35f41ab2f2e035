"""The report of a run, made when it is first asked for."""

from __future__ import annotations

import asyncio
from pathlib import Path

from lgcn.service.problems import RequestError

NAME = "report.html"


class Report:
    """The report of a run.

    Args:
        folder: The run folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    async def html(self) -> bytes:
        """The report as a page."""
        path = self.folder / NAME
        if not path.is_file():
            raise RequestError("the run has no report yet; make one with `lgcn report`", status=404)
        return await asyncio.to_thread(path.read_bytes)
