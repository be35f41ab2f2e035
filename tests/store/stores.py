"""What the tests of stores share: altered headers, and the type of `random_graph`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgcn import Graph
from lgcn.store.format import header_digest

RandomGraph = Callable[..., Graph]


def alter(path: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Changes the header, with a checksum that fits."""
    header = json.loads((path / "header.json").read_text())
    change(header)
    if sign:
        header["sha256"] = header_digest(header)
    (path / "header.json").write_text(json.dumps(header))
