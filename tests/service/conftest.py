"""Runs of every kind, each trained once when it is first asked for, and clients of a service."""

import asyncio
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from lgcn import load_run

from .runs import train

pytest.importorskip("fastapi", reason="the service needs the extra serve")

from lgcn.service.app import make_app
from lgcn.service.limits import Limits
from lgcn.service.served_run import ServedRun


@pytest.fixture(scope="session")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the run folder of a case, see `runs.CASES`."""
    found: dict[str, Path] = {}

    def run(name: str) -> Path:
        if name not in found:
            found[name] = train(name, tmp_path_factory.mktemp("service"))
        return found[name]

    return run


@pytest.fixture(scope="session")
def served_run(run_of: Callable[[str], Path]) -> Callable[..., ServedRun]:
    """Opens the run of a case for the service."""
    found: dict[Any, ServedRun] = {}

    def served(name: str = "classes", **limits: Any) -> ServedRun:
        key = (name, *limits.items())
        if key not in found:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[key] = ServedRun(load_run(run_of(name)), Limits(**limits), name="mine")
        return found[key]

    return served


class Client:
    """A client of a service in this process.

    Args:
        app: The application.
    """

    def __init__(self, app: Any) -> None:
        self.app = app
        self.runner = asyncio.Runner()
        self.runner.run(self._start())

    async def _start(self) -> None:
        service = self.app.app.state.service
        service.worker.start()
        # Errors of the application itself are answers here, as for a client of a real server.
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        self.http = httpx.AsyncClient(transport=transport, base_url="http://localhost")

    def request(self, method: str, path: str, **more: Any) -> httpx.Response:
        return self.runner.run(self.http.request(method, path, **more))

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.request("GET", path, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        return self.request("POST", path, json=json, **more)

    def together(self, bodies: list[Any]) -> list[httpx.Response]:
        """Posts all bodies to /predict at once."""

        async def every() -> list[httpx.Response]:
            return await asyncio.gather(*(self.http.post("/predict", json=b) for b in bodies))

        return self.runner.run(every())

    def close(self) -> None:
        self.app.app.state.service.worker.stop()
        self.runner.run(self.http.aclose())
        self.runner.close()


@pytest.fixture
def client_of(served_run: Callable[..., ServedRun]) -> Iterator[Callable[..., Client]]:
    """Starts a service in this process."""
    clients: list[Client] = []

    def start(name: str = "classes", token: str | None = None, **limits: Any) -> Client:
        served = served_run(name, **limits)
        clients.append(Client(make_app(served, token=token, hosts=("localhost",))))
        return clients[-1]

    yield start
    for one in clients:
        one.close()


@pytest.fixture
def client(client_of: Callable[..., Client]) -> Client:
    """A service of the first case, with the default limits."""
    return client_of()
