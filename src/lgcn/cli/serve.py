"""`lgcn serve`: answer requests for predictions over HTTP."""

import functools
import importlib.util
import os
from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.cli.options import GraphStore, MemoryLimit, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, print_line, print_note
from lgcn.cli.table_flags import OF_NEW_TABLES, OF_WHOLE_GRAPHS, takes_tables
from lgcn.cli.words import flag_names
from lgcn.errors import DataError, UsageError
from lgcn.utils.progress import step_progress

TOKEN = "LGCN_TOKEN"
NEEDED = {"fastapi": "fastapi", "uvicorn": "uvicorn", "prometheus_client": "prometheus-client"}
LIMITS = "Limits"


def _limit(help_: str) -> Any:
    return typer.Option(help=help_, rich_help_panel=LIMITS)


@functools.partial(takes_tables, only=OF_NEW_TABLES, leave_out=OF_WHOLE_GRAPHS)
def serve(
    run: RunFolder,
    host: Annotated[
        str, typer.Option(help="Address to listen at; 0.0.0.0 for all of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen at; 0 for any free one.")] = 8000,
    name: Annotated[
        str | None, typer.Option(help="Name of the model. Default: that of the run folder.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help=f"File with a token that requests must have as `Authorization: Bearer TOKEN`. "
            f"Default: ${TOKEN}, else none is needed."
        ),
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option("--no-token", help="Let other machines use the service without a token."),
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Another host name that requests may use, such as that of a proxy. Repeatable."
        ),
    ] = None,
    dataset: OtherDataset = None,
    store: GraphStore = None,
    memory: MemoryLimit = None,
    root: Root = None,
    max_body: Annotated[str, _limit("Size of a request's body.")] = "1MB",
    max_nodes: Annotated[int, _limit("Nodes per request.")] = 1000,
    max_edges: Annotated[int, _limit("Edges of new nodes per request.")] = 10_000,
    max_neighbours: Annotated[
        int, _limit("Nodes that the predictions of a request may depend on.")
    ] = 200_000,
    timeout: Annotated[float, _limit("Seconds per request.")] = 10.0,
    queue: Annotated[
        int, _limit("Requests that may wait; more are answered with status 429.")
    ] = 128,
    max_batch: Annotated[int, _limit("Requests that are computed together.")] = 32,
    threads: Annotated[
        int, _limit("Threads that compute an answer; more help with large neighbourhoods only.")
    ] = 1,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no line per request.")] = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Answer requests for predictions and explanations over HTTP, with a page to try it.

    Only programs on this machine can use it unless --host says otherwise. Needs the extra `serve`.
    """
    missing = [package for module, package in NEEDED.items() if not _there(module)]
    if missing:
        raise UsageError(
            f'serve needs {" and ".join(missing)}. Install them: pip install "lgcn[serve]"'
        )
    from lgcn.inference.trained_run import load_run
    from lgcn.service.limits import Limits

    sizes: dict[str, Any] = {"max_body": max_body, "max_nodes": max_nodes, "max_edges": max_edges}
    sizes |= {"max_neighbours": max_neighbours, "timeout": timeout, "queue": queue}
    limits = Limits(**sizes, max_batch=max_batch, threads=threads)
    if not 0 <= port <= 65535:
        raise UsageError(f"port must be from 0 to 65535, got {port}")
    token = _token(token_file)
    trained = load_run(run)
    data: dict[str, Any] = {"dataset": dataset, "store": store, "root": root, **tables}
    with flag_names(store="--graph"):
        trained.check_data(**data)
    from lgcn.service.server import address, bound_socket, is_loopback

    sock = bound_socket(host, port)
    with sock:
        if not is_loopback(sock) and token is None and not no_token:
            raise UsageError(
                f"host={host} lets other machines use the service, and there is no token. Give "
                f"one in ${TOKEN} or by token_file, or --no-token if that is intended"
            )
        with flag_names(store="--graph"), step_progress(err) as on_progress:
            from lgcn.service.served_run import ServedRun

            served = ServedRun(
                trained,
                limits,
                name=name,
                memory=memory,
                on_progress=on_progress,
                **data,
            )
            served.warm_up()
        from lgcn.service.app import make_app
        from lgcn.service.guard import LOOPBACK
        from lgcn.service.log import plain_lines
        from lgcn.service.server import serve as answer

        hosts = (*LOOPBACK, host, *(allow_host or ())) if is_loopback(sock) else None
        if served.refusal is not None:
            print_note(f"new nodes cannot be predicted: {served.refusal}")
        if not is_loopback(sock):
            print_note("requests and answers are not encrypted; put a proxy with TLS in front")
        plain_lines(quiet=quiet)

        def ready() -> None:
            print_line(f"serving {served.name} at {address(sock)} (Ctrl-C stops it)", err)

        answer(make_app(served, token=token, hosts=hosts), sock, on_ready=ready)
        print_line("stopped", err)


def _there(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _token(path: Path | None) -> str | None:
    """The token in a file or in the environment; `None` if there is none."""
    found = os.environ.get(TOKEN)
    if path is not None:
        try:
            found = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"cannot read token_file {path}: {error}") from None
        if not found:
            raise DataError(f"{path} must hold a token, and it is empty")
    if found and (not found.isascii() or not found.isprintable() or " " in found):
        raise UsageError("the token must have printable ASCII characters and no blanks")
    return found or None
