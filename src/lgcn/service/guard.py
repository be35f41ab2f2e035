"""What happens before and after each route: host, token, body, time, headers, metrics, log.

It is plain ASGI, so that a body that is too large is refused before it is read.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from lgcn.service.problems import RequestError, shown

if TYPE_CHECKING:
    from lgcn.service.limits import Limits
    from lgcn.service.metrics import Metrics

log = logging.getLogger("lgcn.service")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

# These say nothing about the model.
OPEN = ("/", "/docs", "/openapi.json", "/v2/health/live", "/v2/health/ready", "/favicon.ico")
ASSETS = "/assets/"
REPORT, COOKIE = "/report", "lgcn_report"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Guard:
    """Checks requests before they reach the routes.

    Args:
        app: The routes.
        limits: Limits on the body and on time.
        metrics: Counts the requests.
        token: The bearer token that requests must have. (default: none is needed)
        hosts: Names of this machine that requests may use; a page of a stranger that resolves to
            this machine is thereby refused. (default: any)
    """

    def __init__(
        self,
        app: Any,
        limits: Limits,
        metrics: Metrics,
        token: str | None = None,
        hosts: tuple[str, ...] | None = None,
    ) -> None:
        self.app = app
        self.limits = limits
        self.metrics = metrics
        self.token = None if token is None else token.encode()
        self.hosts = None if hosts is None else tuple(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets
            return
        start, status = time.perf_counter(), 500

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = list(message.get("headers", ()))
                named = {name for name, _ in headers}
                more = [*HEADERS, (b"content-security-policy", POLICY)]
                more.append((b"cache-control", b"no-store"))
                message["headers"] = headers + [one for one in more if one[0] not in named]
            await send(message)

        try:
            self._check(scope)
            body = await self._read(scope, receive)
            await self.app(scope, _once(body, receive), answer)
        except RequestError as error:
            await refuse(error, scope["path"], answer)
        except Exception as error:  # the routes have answered it with status 500
            log.error("%s", f"{type(error).__name__}: {error}", exc_info=error)
        finally:
            seconds = time.perf_counter() - start
            path = getattr(scope.get("route"), "path", None)
            method = scope["method"] if scope["method"] in METHODS else "other"
            self.metrics.request(method, path or "other", status, seconds)
            client = (scope.get("client") or ("-",))[0]
            shown_path = quote(scope["path"][:200], safe="/:")  # no line breaks in the log
            log.info("%s %s %s %d %.1f ms", client, method, shown_path, status, 1e3 * seconds)

    def _check(self, scope: Scope) -> None:
        """Host and token."""
        headers = scope["headers"]
        if self.hosts is not None:
            host = _header(headers, b"host")
            if _host_name(host) not in self.hosts:
                raise RequestError(
                    f"this service does not answer for the host {shown(host)}", "Host", 421
                )
        path = scope["path"]
        if self.token is None or path in OPEN or path.startswith(ASSETS):
            return
        kind, _, given = _header(headers, b"authorization").partition(" ")
        right = hmac.compare_digest(given.strip().encode(), self.token)
        if kind.lower() == "bearer" and right:
            return
        if path == REPORT and scope["method"] == "GET" and self._has_cookie(headers):
            return
        what = "is wrong" if given else "is missing: send Authorization: Bearer TOKEN"
        raise RequestError(f"the token {what}", "Authorization", 401)

    def cookie(self) -> str:
        """What lets a browser open the report, which cannot send a token by itself."""
        key = self.token or b""
        return hmac.new(key, b"lgcn report", hashlib.sha256).hexdigest()

    def _has_cookie(self, headers: Any) -> bool:
        cookies = (part.strip().partition("=") for part in _header(headers, b"cookie").split(";"))
        return any(
            name == COOKIE and hmac.compare_digest(value.encode(), self.cookie().encode())
            for name, _, value in cookies
        )

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """The body, if it is not too large and of the right type."""
        headers, most = scope["headers"], self.limits.body_bytes
        too_large = RequestError(f"the body must have at most {most} bytes", "body", 413)
        length = _header(headers, b"content-length")
        if length.isdigit() and int(length[:20]) > most:
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError("the client is gone", status=400)
                    part = message.get("body", b"")
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            raise RequestError(
                f"the body did not arrive within {self.limits.timeout:g} seconds", "body", 408
            ) from None
        if scope["method"] == "POST" and size:
            kind = _header(headers, b"content-type").partition(";")[0].strip().lower()
            if kind != "application/json":
                raise RequestError(
                    f"the body must be JSON, with Content-Type: application/json, got "
                    f"{shown(kind) if kind else 'none'}",
                    "Content-Type",
                    415,
                )
        return b"".join(parts)


def _once(body: bytes, receive: Receive) -> Receive:
    """Gives the body that was read, and then what else arrives."""
    given = False

    async def read() -> MutableMapping[str, Any]:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return read


async def refuse(error: RequestError, path: str, send: Send) -> None:
    """Answers with an error."""
    body = json.dumps(error.content(path)).encode()
    headers = [(b"content-type", b"application/json")]
    headers.append((b"content-length", str(len(body)).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if error.status in (408, 413):  # the rest of the body is not read
        headers.append((b"connection", b"close"))
    if error.retry_after is not None:
        headers.append((b"retry-after", str(error.retry_after).encode()))
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _header(headers: Any, name: bytes) -> str:
    found: bytes = next((value for key, value in headers if key == name), b"")
    return found.decode("latin-1")


def _host_name(host: str) -> str:
    """A host without its port: `[::1]:8000` is `::1`."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if ":" in host else host.lower()
