"""Runs the service: socket, signals, log."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn

from lgcn.errors import UsageError

# Seconds that open requests get when the service stops.
GRACE = 1
MAX_CONNECTIONS = 1000


def bound_socket(host: str, port: int) -> socket.socket:
    """A socket at an address, taken before the long work of loading a run.

    Args:
        host: Name or address of this machine.
        port: The port; 0 for one that is free.
    """
    where = f"host={host} and port={port}"
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(f"host must be a name or address of this machine, got {host!r}") from None
    family, kind, protocol, _, address = found[0]
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as error:
        sock.close()
        if error.errno == errno.EADDRINUSE:
            raise UsageError(
                f"port {port} of {host} is in use by another program. Choose another port, or "
                "port=0 for any that is free"
            ) from None
        if error.errno == errno.EACCES:
            raise UsageError(f"port {port} needs rights that you lack; use 1024 or more") from None
        raise UsageError(f"cannot listen at {where}: {error.strerror or error}") from None
    return sock


def is_loopback(sock: socket.socket) -> bool:
    """Whether only programs on this machine reach the socket."""
    return ipaddress.ip_address(sock.getsockname()[0]).is_loopback


def address(sock: socket.socket) -> str:
    """The address of the service for a browser."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class _Server(uvicorn.Server):  # type: ignore[misc]
    """Leaves signals to `serve`; uvicorn would raise them again after the end."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve(app: Any, sock: socket.socket, *, on_ready: Callable[[], None] | None = None) -> None:
    """Answers requests until Ctrl-C or SIGTERM; a second one does not wait for open requests.

    Args:
        app: The application, see `lgcn.service.app.make_app`.
        sock: Where it listens, see `bound_socket`.
        on_ready: Called once it answers. (default: none)
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    logging.getLogger("uvicorn").setLevel(logging.CRITICAL)  # one log, ours
    server = _Server(config)

    def stop(*_: Any) -> None:
        server.force_exit = server.should_exit
        server.should_exit = True

    async def run() -> None:
        loop = asyncio.get_running_loop()
        previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number, handler in previous.items():
            if handler != signal.SIG_IGN:
                loop.add_signal_handler(number, stop)
        serving = asyncio.create_task(server.serve(sockets=[sock]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        if on_ready is not None and not serving.done():
            on_ready()
        await serving
        for number, handler in previous.items():
            if handler != signal.SIG_IGN:
                loop.remove_signal_handler(number)
                signal.signal(number, handler)

    asyncio.run(run())
