"""Options that several commands share, and the panels of `lgcn --help`."""

from pathlib import Path
from typing import Annotated

import typer

# The panels of `lgcn --help`, in this order.
MODEL = "Train and use a model"
DATA = "Data"
SETTINGS = "Settings and machine"
PAPER = "The paper"

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object to standard output and nothing else.")
]
Root = Annotated[
    Path | None,
    typer.Option(help="Folder of the data files. Default: $LGCN_DATA, then the cache folder."),
]
GraphStore = Annotated[
    Path | None,
    typer.Option("--graph", help="Graph store written by `lgcn import` or `lgcn generate`."),
]
MemoryLimit = Annotated[
    str | None,
    typer.Option(
        help="Memory that inference on the graph may use, such as 2GB. Default: no limit."
    ),
]
DatasetName = Annotated[
    str, typer.Argument(help="Data set by name, or path of an .npz file or graph store.")
]
OtherDataset = Annotated[
    str | None,
    typer.Option(help="Data set by name or .npz path. Default: the one of the training."),
]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder that `lgcn train` wrote.")]
StoreFolder = Annotated[Path, typer.Argument(metavar="STORE", help="Folder of the graph store.")]
FeatureType = Annotated[
    str, typer.Option(help="Number type of stored features: float32, float16, bfloat16 or uint8.")
]
OverwriteStore = Annotated[
    bool, typer.Option("--overwrite", help="Replace the store if it exists.")
]
