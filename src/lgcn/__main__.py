"""``python -m lgcn`` is the command ``lgcn``: the core's commands, and those of the paper.

This is the only module that imports :mod:`lgcn.paper`, which adds its models, presets and the
command ``reproduce``.
"""

import os
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


@cache
def command_line() -> "Callable[[], Any]":
    """The function that runs the command line, with all commands."""
    from lgcn.cli import app as cli
    from lgcn.cli.words import Command
    from lgcn.paper import command

    cli.app.command(cls=Command)(command.reproduce)
    return cli.main


def main() -> None:
    """Runs the command line; Ctrl-C ends it in one line also while it is being imported."""
    try:
        run = command_line()
    except KeyboardInterrupt:
        sys.stderr.write("Error: stopped\n")
        os._exit(130)
    try:
        run()
    except SystemExit as end:
        if end.code == 130:  # all is cleaned up; Python would take seconds to unload torch
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)
        raise


if __name__ == "__main__":
    main()
