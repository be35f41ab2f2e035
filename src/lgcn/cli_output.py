"""Where the command line writes: results to standard output, all else to standard error."""

import json
import sys
from typing import Any

from rich.console import Console

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
