"""The program `lgcn`: its commands, its signals, and how it reports errors."""

import os
import signal
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.markup import escape
from typer.core import TyperGroup

from lgcn.cli.compare import compare
from lgcn.cli.data import data_app
from lgcn.cli.embed import embed
from lgcn.cli.evaluate import evaluate
from lgcn.cli.explain import explain
from lgcn.cli.first_use import tell_of_compiling
from lgcn.cli.generate import generate
from lgcn.cli.import_ import import_
from lgcn.cli.options import DATA, MODEL, SETTINGS
from lgcn.cli.output import err, out, print_note
from lgcn.cli.partition import partition
from lgcn.cli.predict import predict
from lgcn.cli.report import report
from lgcn.cli.serve import serve
from lgcn.cli.settings import settings
from lgcn.cli.train import train
from lgcn.cli.warmup import warmup
from lgcn.cli.words import Command, in_flags
from lgcn.errors import Interrupted, LGCNError, first_line_of, ran_out_of_memory
from lgcn.workers.launcher import launched

# Idle OpenMP threads of torch and Numba spin by default, which makes training several times slower
# if another program uses a core. OpenMP reads this when torch is imported, hence here.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# The order in `lgcn --help`; other commands follow.
ORDER = (
    *("train", "predict", "evaluate", "report", "compare", "explain", "embed", "serve"),
    *("data", "import", "generate", "partition"),
    *("settings", "warmup"),
)


class _Commands(TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


# The library proper (torch, PyG, Numba) is imported inside the commands, after all checks that do
# not need it: `--help` answers at once, and a mistake is reported at once.
app = typer.Typer(
    name="lgcn",
    cls=_Commands,
    help="Learnable graph convolutional networks: classify the nodes of a graph.\n\n"
    "Start with your own tables:\n\n"
    "lgcn train --edges edges.csv --nodes nodes.csv --label-column topic --out run\n\n"
    "lgcn predict run --output predictions.csv",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def add_command(function: Callable[..., None], panel: str, name: str | None = None) -> None:
    """Adds a command to the program, once.

    Args:
        function: The command, with typer's annotations.
        panel: The panel of `lgcn --help` that lists it.
        name: Its name. (default: that of the function)
    """
    if all(command.callback is not function for command in app.registered_commands):
        app.command(name, cls=Command, rich_help_panel=panel)(function)


for _command in (train, predict, evaluate, report, compare, explain, embed, serve):
    add_command(_command, MODEL)
app.add_typer(data_app, name="data", rich_help_panel=DATA)
add_command(import_, DATA, "import")
add_command(generate, DATA)
add_command(partition, DATA)
for _command in (settings, warmup):
    add_command(_command, SETTINGS)


def _version(value: bool) -> None:
    if value:
        from lgcn import __version__

        out.print(f"lgcn {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line; every failure ends with one message and an exit code."""
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    tell_of_compiling()
    with _signals() as stopped:
        try:
            app()
        except (Exception, SystemExit, KeyboardInterrupt) as error:
            # A launcher that sees another process fail sends SIGTERM while this one reports.
            _ignore_signals()
            done = isinstance(error, SystemExit) and not error.code
            interrupted = stopped.is_set() and not isinstance(error, Interrupted) and not done
            if interrupted or isinstance(error, KeyboardInterrupt):
                error = Interrupted("stopped")  # whatever the interrupt broke
            if isinstance(error, SystemExit):
                raise
            raise SystemExit(_report(error)) from None


def _report(error: Exception) -> int:
    """Prints what went wrong on one line; gives the exit code."""
    if isinstance(error, BrokenPipeError):  # the reader has enough, as in `lgcn settings | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    if isinstance(error, LGCNError | OSError):  # OSError: no permission, a file in the way
        text = str(error)
    elif isinstance(error, RecursionError):
        text = "a file or setting is nested too deeply. Check the files that the command reads"
    elif ran_out_of_memory(error):
        text = f"not enough memory: {first_line_of(error)}. Use a smaller graph, k or batch"
    elif os.environ.get("LGCN_DEBUG"):
        raise error
    else:
        text = f"internal error, {type(error).__name__}: {first_line_of(error)}. {_bug_report()}"
    rank = f"rank {os.environ['RANK']}: " if launched() else ""
    err.print(f"[red]Error:[/red] {escape(rank + text)}", soft_wrap=True)
    return getattr(error, "exit_code", 1)


def _bug_report() -> str:
    """Writes the traceback of the current exception to a file, and says where."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="lgcn-error-", suffix=".txt", delete=False
        ) as file:
            file.write(f"{sys.argv}\n{traceback.format_exc()}")
    except OSError:
        return "This is a bug in lgcn; please report it. LGCN_DEBUG=1 shows the traceback"
    return f"This is a bug in lgcn; please report it with {file.name}, which has the traceback"


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM end a command in order; a second one ends the program at once.

    Training has its own handlers, which save its state (`lgcn.training.interrupts`).
    """
    stopped = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stopped
        return

    def handler(number: int, frame: Any) -> None:
        if stopped.is_set():
            os.write(2, b"Error: stopped\n")
            os._exit(Interrupted.exit_code)
        stopped.set()
        raise KeyboardInterrupt

    # A shell's background jobs ignore Ctrl-C.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN]
    previous = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield stopped
    finally:
        for number, old in previous.items():
            signal.signal(number, old)


def _ignore_signals() -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)


def _show_warning(message: Warning | str, *where: Any) -> None:
    """Shows a warning of the library to the user, without the place in the code.

    Of several processes, the first one speaks for all.
    """
    if launched() and os.environ["RANK"] != "0":
        return
    print_note(in_flags(str(message)))
