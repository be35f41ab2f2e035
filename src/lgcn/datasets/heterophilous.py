"""minesweeper and tolokers: graphs in which neighbours often differ, with ten published splits.

The files are those of "A critical look at the evaluation of GNNs under heterophily" (Platonov et
al. 2023), one `NAME.npz` each. Both have two classes and are scored by ROC AUC.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets.locate import find_files, missing_files
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.limits import MAX_CLASSES
from lgcn.utils.numbers import whole_number

if TYPE_CHECKING:
    from lgcn.graph import Graph

SPLITS = ("train", "val", "test")
SUBFOLDERS = ("heterophilous",)


def load_heterophilous(name: str, root: str | Path | None = None, *, split: int = 0) -> Graph:
    """Loads one of the graphs with one of its published splits.

    Args:
        name: `"minesweeper"` or `"tolokers"`.
        root: See `lgcn.datasets.load_dataset`. (default: none)
        split: Number of the split, from 0 to 9. (default: 0)
    """
    (path,) = heterophilous_files(name, root)
    masks = [f"{part}_masks" for part in SPLITS]
    arrays = read_npz(path, ("node_features", "node_labels", "edges", *masks))
    x = check_array(arrays["node_features"], "node_features", path, (None, None))
    y = check_array(
        arrays["node_labels"],
        "node_labels",
        path,
        (len(x),),
        integer=True,
        low=0,
        high=MAX_CLASSES - 1,
    )
    edges = check_array(
        arrays["edges"], "edges", path, (None, 2), integer=True, low=0, high=len(x) - 1
    )
    splits = [check_array(arrays[mask], mask, path, (None, len(x))) for mask in masks]
    number = whole_number("split", split, 0, min(map(len, splits)) - 1)
    import torch

    from lgcn.graph import Graph

    chosen: dict[str, Any] = {
        f"{part}_mask": torch.from_numpy(found[number].astype(bool))
        for part, found in zip(SPLITS, splits, strict=True)
    }
    return Graph.from_edge_index(
        torch.from_numpy(edges.T.astype("int64")),
        x=torch.from_numpy(x.astype("float32")),
        y=torch.from_numpy(y.astype("int64")),
        name=name,
        **chosen,
    )


def heterophilous_files(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the file of a graph is on this machine."""
    names = [f"{name}.npz"]
    found = find_files(names, root, SUBFOLDERS)
    if found is None:
        raise missing_files(name, names, root, SUBFOLDERS)
    return found
