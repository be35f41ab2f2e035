"""The report of a run: the one in its folder, else one that is made when it is first asked for."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from lgcn.service.problems import RequestError
from lgcn.utils.files import open_plain

log = logging.getLogger("lgcn.service")
NAME = "report.html"
SAMPLE = 1000  # nodes that are shown one by one
LARGEST = 200_000_000  # bytes of a report
WAIT = 5.0  # seconds after which a page says that it takes longer
PATIENCE = b"""<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Report</title></head>
<body><h1>The report is being made</h1><p>This page opens it as soon as it is there.</p></body>
</html>
"""


class Report:
    """The report of a run.

    Args:
        folder: The run folder.
        data: The graph, see `lgcn.inference.run_data.NewData`.
        memory: See `lgcn.inference.TrainedRun.predict`.
    """

    def __init__(
        self, folder: Path, data: Mapping[str, Any], memory: str | int | None = None
    ) -> None:
        self.folder = folder
        self.data = dict(data)
        self.memory = memory
        self._making: Future[bytes] | None = None

    async def html(self) -> bytes | None:
        """The report as a page; `None` if it is still being made."""
        stored = None if self.data else await asyncio.to_thread(self._stored)
        if stored is not None:
            return stored
        if self._making is None:
            self._making = Future()
            # A daemon: the service does not wait for it when it stops.
            threading.Thread(target=self._make, args=(self._making,), daemon=True).start()
        try:
            waiting = asyncio.wrap_future(self._making)
            return await asyncio.wait_for(asyncio.shield(waiting), WAIT)
        except TimeoutError:
            return None

    def _stored(self) -> bytes | None:
        """The report in the run folder, if there is one: a plain file, no link to another."""
        path = self.folder / NAME
        if path.is_symlink():  # the run folder may come from a stranger
            return None
        try:
            with open_plain(path) as file:
                content = file.read(LARGEST + 1)
        except (OSError, ValueError):
            return None
        return content if len(content) <= LARGEST else None

    def _make(self, future: Future[bytes]) -> None:
        from lgcn.inference.trained_run import load_run
        from lgcn.report import write_report

        try:
            with tempfile.TemporaryDirectory() as folder:
                # A run of its own: the worker uses the model of the service meanwhile.
                path = Path(folder) / NAME
                options: dict[str, Any] = {"sample": SAMPLE, "memory": self.memory}
                write_report(load_run(self.folder), path, **options, **self.data)
                future.set_result(path.read_bytes())
        except Exception as error:
            log.error("%s", f"no report: {error}", exc_info=error)
            future.set_exception(
                RequestError("the report cannot be made; the service's log says why", status=500)
            )
