"""Clients that keep a service busy over loopback: each sends a request when it has its answer.

The client is a few lines over asyncio streams, so that it takes less time than what it measures.
"""

import asyncio
import ipaddress
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_REQUESTS = 5_000_000  # of one load, whatever the time


@dataclass
class Load:
    """What clients saw.

    Attributes:
        seconds: How long they were busy.
        statuses: How often each HTTP status was answered.
        latency: Seconds of each answer with status 200, by the kind of request.
        retry_after: Refusals that said when to try again.
    """

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latency: dict[str, list[float]] = field(default_factory=dict)
    retry_after: int = 0

    def summary(self) -> dict[str, Any]:
        """Rates and percentiles."""
        every = sorted(one for part in self.latency.values() for one in part)
        kinds = {name: percentiles(sorted(part)) for name, part in sorted(self.latency.items())}
        return {
            "seconds": round(self.seconds, 1),
            "requests": sum(self.statuses.values()),
            "per_second": round(len(every) / self.seconds, 1) if self.seconds else 0.0,
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            **percentiles(every),
            "by_kind": kinds if len(kinds) > 1 else {},
        }


def percentiles(ordered: list[float]) -> dict[str, float | None]:
    """The 50th and 99th percentile of sorted seconds, in milliseconds."""
    found = {}
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99)):
        place = min(len(ordered) - 1, int(share * len(ordered)))
        found[name] = round(1e3 * ordered[place], 2) if ordered else None
    return found


# Gives the kind of the next request, its path and its body.
NextRequest = Callable[[], tuple[str, str, dict[str, Any]]]


def run_load(host: str, port: int, clients: int, seconds: float, request: NextRequest) -> Load:
    """Keeps clients busy for some seconds.

    Args:
        host, port: The service, on this machine.
        clients: How many send requests at a time.
        seconds: How long.
        request: Makes the requests.
    """
    if not ipaddress.ip_address(host).is_loopback:
        raise ValueError(f"host must be a loopback address, got {host}")
    return asyncio.run(_run(host, port, clients, seconds, request))


async def _run(host: str, port: int, clients: int, seconds: float, request: NextRequest) -> Load:
    load, start = Load(), time.perf_counter()
    end = start + seconds
    await asyncio.gather(*(_client(host, port, end, request, load) for _ in range(clients)))
    load.seconds = time.perf_counter() - start
    return load


async def _client(host: str, port: int, end: float, request: NextRequest, load: Load) -> None:
    reader = writer = None
    try:
        while time.perf_counter() < end and sum(load.statuses.values()) < MAX_REQUESTS:
            if writer is None:
                reader, writer = await asyncio.open_connection(host, port)
            assert reader is not None
            kind, path, body = request()
            content = json.dumps(body).encode()
            head = (
                f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n"
            )
            start = time.perf_counter()
            writer.write(head.encode() + content)
            status, headers = _head(await reader.readuntil(b"\r\n\r\n"))
            await reader.readexactly(int(headers["content-length"]))
            load.statuses[status] += 1
            load.retry_after += "retry-after" in headers
            if status == 200:
                load.latency.setdefault(kind, []).append(time.perf_counter() - start)
            else:
                await asyncio.sleep(0.01)  # a client that is refused does not insist at once
            if headers.get("connection") == "close":
                writer.close()
                writer = None
    finally:
        if writer is not None:
            writer.close()


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = text.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines if line)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}
