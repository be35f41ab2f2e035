"""Graphs in one `.npz` file of plain arrays.

| array | content |
|---|---|
| `edges` | [E, 2] pairs of nodes; taken as undirected |
| `labels` | [N] class of each node, -1 if it is unknown |
| `feat_indptr` | [N + 1] where each node's features start in `feat_indices` |
| `feat_indices` | feature numbers |
| `feat_values` | feature values; optional, all one if absent |
| `feat_shape` | number of nodes and number of features, in either order |
| `classes` | names of the classes; optional |
| `names` | [N] names of the nodes; optional |

A file without any of `feat_indptr`, `feat_indices` and `feat_shape` is a graph without features.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets import option_types
from lgcn.datasets.locate import data_folders, find_files
from lgcn.errors import DataError
from lgcn.graph.features import checked_csr, row_normalize, sparse_tensor
from lgcn.graph.splits import fraction_split, random_split
from lgcn.utils.arrays import check_array, read_npz
from lgcn.utils.limits import MAX_CLASSES
from lgcn.utils.numbers import real_number

if TYPE_CHECKING:
    from lgcn.graph import Graph

REQUIRED = ("edges", "labels")
FEATURES = ("feat_indptr", "feat_indices", "feat_shape")
HALF = "-half"
OPTIONAL = (*FEATURES, "feat_values", "classes", "names")
# The options that a file such as run.json may set.
NPZ_OPTIONS = {
    **option_types.RANDOM_SPLIT,
    "normalize_features": option_types.flag,
    "train_share": option_types.number_or_none,
}


def load_npz(
    path: str | Path,
    *,
    labels_per_class: int = 20,
    num_val: int = 500,
    train_share: float | None = None,
    split_seed: int = 0,
    normalize_features: bool = True,
) -> Graph:
    """Loads a graph from an `.npz` file with the layout above, with a random split.

    Args:
        path: The file; its name without ending becomes the graph's name.
        labels_per_class, num_val, split_seed: See `lgcn.graph.splits.random_split`.
        train_share: Share of the labelled nodes that are training nodes, instead of these numbers.
            Half of the others are validation nodes, half test nodes. (default: none)
        normalize_features: Divide each node's features by their sum. (default: `True`)
    """
    import torch

    from lgcn.graph import Graph

    path = Path(path)
    arrays = read_npz(path, REQUIRED, OPTIONAL)
    labels = check_array(
        arrays["labels"], "labels", path, (None,), integer=True, low=-1, high=MAX_CLASSES - 1
    )
    num_nodes = len(labels)
    if num_nodes == 0:
        raise DataError(f"{path}: labels must have one entry per node, got none")
    edges = check_array(
        arrays["edges"], "edges", path, (None, 2), integer=True, low=0, high=num_nodes - 1
    )
    x = None
    if any(name in arrays for name in FEATURES):
        features = _read_features(arrays, num_nodes, path)
        x = sparse_tensor(
            row_normalize(features) if normalize_features else features,
            f"the features in {path}",
        )
    label_names = None
    if "classes" in arrays:
        if arrays["classes"].size > MAX_CLASSES:
            raise DataError(
                f"{path}: classes must have at most {MAX_CLASSES} names, "
                f"got {arrays['classes'].size}"
            )
        label_names = tuple(_texts(arrays["classes"].ravel(), "classes", path))
        check_array(labels, "labels", path, (None,), low=-1, high=len(label_names) - 1)
    node_ids = arrays.get("names")
    if node_ids is not None and node_ids.shape != (num_nodes,):
        raise DataError(
            f"{path}: names must have one entry per node ({num_nodes}), "
            f"got shape {list(node_ids.shape)}"
        )
    if node_ids is not None:
        if node_ids.dtype.kind not in "iufbUS":
            raise DataError(f"{path}: names must be strings or numbers, got {node_ids.dtype}")
        _texts(node_ids, "names", path)
    if train_share is None:
        masks = random_split(labels, labels_per_class, num_val, split_seed)
    else:
        rest = (1 - real_number("train_share", train_share, 0, 1)) / 2
        masks = fraction_split(labels, val=rest, test=rest, seed=split_seed)
    train_mask, val_mask, test_mask = masks
    return Graph.from_edge_index(
        torch.from_numpy(edges.T.astype(np.int64)),
        num_nodes,
        x=x,
        y=torch.from_numpy(labels.astype(np.int64)),
        train_mask=train_mask,
        val_mask=val_mask,
        test_mask=test_mask,
        node_ids=node_ids,
        label_names=label_names,
        name=path.stem,
    )


def load_half(path: str | Path, *, split_seed: int = 0, normalize_features: bool = True) -> Graph:
    """The graph of a file NAME.npz as NAME-half: half of its labelled nodes are training nodes.

    Args:
        path, split_seed, normalize_features: See `load_npz`.
    """
    graph = load_npz(
        path, train_share=0.5, split_seed=split_seed, normalize_features=normalize_features
    )
    return replace(graph, name=graph.name + HALF)


def find_npz(name: str, root: str | Path | None = None) -> Path | None:
    """The file of a path, or of a bare name in one of the data folders."""
    if Path(name).suffix == ".npz" and Path(name).is_file():
        return Path(name)
    file_name = name if name.endswith(".npz") else f"{name}.npz"
    found = find_files([file_name], root, ("npz",))
    return found[0] if found else None


def npz_names(root: str | Path | None = None) -> list[str]:
    """Names of the `.npz` graphs in the `npz` folders on this machine."""
    folders = [folder / "npz" for folder in data_folders(root)]
    return sorted({path.stem for folder in folders for path in folder.glob("*.npz")})


def _texts(values: Any, name: str, path: Path) -> list[str]:
    """The values as strings. NumPy accepts any number as a character code, so they are checked."""
    try:
        if values.dtype.kind == "S":
            values = np.char.decode(values, "utf-8")
        texts = [str(value) for value in values]
        "".join(texts).encode()
    except (SystemError, ValueError, RuntimeError):
        raise DataError(f"{path}: {name} must hold strings of valid characters") from None
    return texts


def _read_features(arrays: dict[str, Any], num_nodes: int, path: Path) -> Any:
    absent = [name for name in FEATURES if name not in arrays]
    if absent:
        raise DataError(
            f"{path} must hold the arrays {', '.join(FEATURES)}, or none of them; "
            f"{', '.join(absent)} missing"
        )
    shape = check_array(arrays["feat_shape"], "feat_shape", path, (2,), integer=True, low=0)
    first, second = (int(length) for length in shape)
    if num_nodes not in (first, second):
        raise DataError(
            f"{path}: feat_shape must have the number of nodes ({num_nodes}), "
            f"got [{first}, {second}]"
        )
    num_features = second if first == num_nodes else first
    indices = arrays["feat_indices"]
    values = arrays.get("feat_values", np.ones(indices.shape, dtype=np.float32))
    return checked_csr(arrays["feat_indptr"], indices, values, (num_nodes, num_features), path)
