"""`python -m lgcn` is the command `lgcn`; here the program is put together.

This is the only module that imports `lgcn.paper`, which adds its models, presets and the command
`reproduce`.
"""

import os
import sys
from types import ModuleType

from lgcn.workers.launcher import launched


def command_line() -> ModuleType:
    """The command line with all commands."""
    from lgcn.cli import app as cli
    from lgcn.cli.options import PAPER
    from lgcn.paper.command import reproduce

    cli.add_command(reproduce, PAPER)
    return cli


def main() -> None:
    """Runs the command line; Ctrl-C ends it with one line, even while it is being imported."""
    try:
        cli = command_line()
    except KeyboardInterrupt:
        sys.stderr.write("Error: stopped\n")
        os._exit(130)
    try:
        cli.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        # Everything is cleaned up. Python would take seconds to unload torch, and the threads of a
        # group of processes can abort while it does, which torchrun would take for a failure.
        if code == 130 or launched():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        raise


if __name__ == "__main__":
    main()
