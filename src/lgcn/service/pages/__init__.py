"""The page at `/`, the page of the API and the report. All files come with the package."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from lgcn.service.guard import COOKIE, REPORT
from lgcn.service.problems import RequestError
from lgcn.service.report_page import PATIENCE, Report

if TYPE_CHECKING:
    from lgcn.service.app import Service
    from lgcn.service.guard import Guard

TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
ASSETS = ("page.css", "page.js", "api.js", "parts.js", "icon.svg")
# The report has its scripts and styles inside. A sandbox keeps them away from this service: the run
# folder may come from a stranger.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: "
    "blob:; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts allow-downloads allow-popups"
)


def add_routes(app: FastAPI, service: Service, guard: Guard) -> None:
    """Adds the pages.

    Args:
        app: The application.
        service: The run and its worker.
        guard: Gives the cookie that lets a browser open the report.
    """
    hidden: dict[str, Any] = {"include_in_schema": False}
    content = {name: _file(name) for name in (*ASSETS, "page.html", "api.html")}
    served = service.served
    report = Report(served.run.folder, served.data, served.memory)

    @app.get("/", **hidden)
    async def page() -> Response:
        return _response(content, "page.html")

    @app.get("/docs", **hidden)
    async def api() -> Response:
        return _response(content, "api.html")

    @app.get("/favicon.ico", **hidden)
    async def icon() -> Response:
        return _response(content, "icon.svg")

    @app.get("/assets/{name}", **hidden)
    async def asset(name: str) -> Response:
        if name not in ASSETS:
            raise RequestError("no such file", status=404)
        return _response(content, name)

    @app.post("/session", tags=["operation"], summary="Let this browser open the report")
    async def session(request: Request) -> Response:
        """Sets a cookie for /report. A link cannot send a token."""
        response = Response(status_code=204)
        if guard.token is not None:
            response.set_cookie(
                COOKIE,
                guard.cookie(),
                path=REPORT,
                httponly=True,
                samesite="strict",
                secure=request.url.scheme == "https",
            )
        return response

    @app.get(REPORT, tags=["friendly"], summary="The report of the run, as a page")
    async def the_report() -> Response:
        """What `lgcn report` writes."""
        found = await report.html()
        if found is None:
            return Response(PATIENCE, 202, {"Refresh": "1"}, media_type="text/html")
        headers = {"Content-Security-Policy": REPORT_POLICY}
        return Response(found, media_type="text/html", headers=headers)


def _file(name: str) -> bytes:
    return files("lgcn.service.pages").joinpath(name).read_bytes()


def _response(content: dict[str, bytes], name: str) -> Response:
    return Response(content[name], media_type=TYPES[name.rpartition(".")[2]])
