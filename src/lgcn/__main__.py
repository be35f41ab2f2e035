"""``python -m lgcn`` is the command ``lgcn``."""

import os
import sys


def main() -> None:
    """Runs the command line; Ctrl-C ends it in one line also while it is being imported."""
    try:
        from lgcn.cli import app as cli
    except KeyboardInterrupt:
        sys.stderr.write("Error: stopped\n")
        os._exit(130)
    try:
        cli.main()
    except SystemExit as end:
        if end.code == 130:  # all is cleaned up; Python would take seconds to unload torch
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(130)
        raise


if __name__ == "__main__":
    main()
