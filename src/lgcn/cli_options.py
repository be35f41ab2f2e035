"""Flags that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output, nothing else.")
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the data files. Default: $LGCN_DATA, then the cache folder."),
]
GraphStore = Annotated[
    Path | None, typer.Option("--graph", help="Graph store, by `lgcn import` or `lgcn generate`.")
]
MemoryCeiling = Annotated[
    str | None, typer.Option(help="Memory that inference over the graph may take, e.g. 2GB.")
]
