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
OtherDataset = Annotated[
    str | None, typer.Option(help="Another data set than the run was trained on.")
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `lgcn train` wrote.")]
