"""Sets of graphs: TU data sets by name or path, and lists of graphs in memory.

A set lies in a folder or a zip file (`lgcn.datasets.tu`) or in an `.npz` file
(`lgcn.datasets.graph_npz`). `NAME_splits.json` beside it, or in the folder, has published splits: a
list of folds, each with the numbers of the graphs for `train`, `validation` and `test`, from 0.
"""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets.graph_npz import read_graph_npz
from lgcn.datasets.locate import data_folders
from lgcn.datasets.tu import TUFiles, read_tu
from lgcn.errors import DataError, UsageError, did_you_mean
from lgcn.utils.files import read_json
from lgcn.utils.numbers import whole_number

if TYPE_CHECKING:
    from lgcn.graph import GraphSet

SUBFOLDER = "tu"
ENDINGS = (".zip", ".npz")
SPLITS = ("train", "validation", "test")
SHARE = 0.1  # of the graphs, for validation and for test


def load_graphs(source: Any, *, root: str | Path | None = None, **options: Any) -> GraphSet:
    """Loads many graphs, each with a label, as one `lgcn.GraphSet`.

    Edges are undirected unless you say otherwise. Duplicates are merged, and self-loops are left
    out. Graphs without nodes or edges are kept, and a warning says how many there are. Loading
    accepts one graph, and graphs of one class if it has a number; training needs more.

    ```python
    lgcn.load_graphs("PROTEINS", fold=0)
    lgcn.load_graphs("folder/of/my-set", val=0.2, test=0.2)
    lgcn.load_graphs([nx.cycle_graph(5), nx.star_graph(4)], y=["ring", "star"])
    ```

    Args:
        source: A data set in TU's layout or in the `.npz` layout of `lgcn.datasets.graph_npz`: its
            name (looked up in `root`, `$LGCN_DATA` and the user's cache, and in `tu/` of each), a
            folder, or a file; or a list of PyG's `Data`, of NetworkX graphs, or of
            [`lgcn.Graph`][lgcn.Graph].
        root: A folder to look for the name in first. (default: none)
        **options: `val` and `test`, the shares of the labelled graphs for validation and test (0.1
            each), and `split_seed` (0) for a random, stratified split.

            Of a data set: `fold`, the number of a published split in `NAME_splits.json`, instead of
            a random one; `target`, the column of `NAME_graph_attributes.txt` to predict, where
            there are several.

            Of a list: `y`, the labels (default: `data.y`, or `graph.graph["y"]`); `ids`, your ids
            of the graphs; `name`; `task`, as in [`lgcn.from_tables`][lgcn.from_tables]; and of
            NetworkX graphs `label`, the graph attribute with the label, `features`, `weight` and
            `directed` as in [`lgcn.from_networkx`][lgcn.from_networkx]. `encoder` and
            `label_names` are those of a trained model.
    """
    if isinstance(source, str | Path):
        _check_known(options, load_graph_files)
        return load_graph_files(source, root, **options)
    from lgcn.tables.graph_lists import graphs_from_list  # imports pyarrow

    _check_known(options, graphs_from_list)
    return graphs_from_list(source, **options)


def _check_known(options: Iterable[str], load: Callable[..., Any]) -> None:
    parameters = inspect.signature(load).parameters.values()
    known = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            raise UsageError(f"load_graphs has no option {option!r}; {did_you_mean(option, known)}")


def load_graph_files(
    path: str | Path,
    root: str | Path | None = None,
    *,
    fold: int | None = None,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    target: int | None = None,
) -> GraphSet:
    """Loads a set of graphs from files; see `load_graphs`, whose options these are.

    Args:
        path: Its name, folder or file.
        root, fold, val, test, split_seed, target: See `load_graphs`.
    """
    from lgcn.tables.notes import notes_on_graphs

    graphs = read_graph_files(
        path, root, fold=fold, val=val, test=test, split_seed=split_seed, target=target
    )
    for note in notes_on_graphs(graphs):
        warnings.warn(note, stacklevel=3)
    return graphs


def read_graph_files(
    path: str | Path,
    root: str | Path | None = None,
    *,
    fold: int | None = None,
    val: float | None = None,
    test: float | None = None,
    split_seed: int = 0,
    target: int | None = None,
) -> GraphSet:
    """Like `load_graph_files`, without warnings about graphs that have no nodes or no edges.

    Args:
        path, root, fold, val, test, split_seed, target: See `load_graph_files`.
    """
    place = check_graph_files(path, root, fold=fold, val=val, test=test)
    in_arrays = place.suffix == ".npz"
    if in_arrays and target is not None:
        raise UsageError(f"target must be omitted: {place.name} has labels, not numbers")
    graphs = read_graph_npz(place) if in_arrays else read_tu(place, target=target)
    if fold is not None:
        masks = _fold(_splits_file(place, graphs.name), fold, graphs.num_graphs)
        return graphs.with_targets(**masks)
    if graphs.y is None:
        return graphs
    from lgcn.graph.splits import fraction_split

    shares = [SHARE if share is None else share for share in (val, test)]
    train, val_, test_ = fraction_split(graphs.y, None, shares[0], shares[1], split_seed)
    return graphs.with_targets(train_mask=train, val_mask=val_, test_mask=test_)


def check_graph_files(
    path: str | Path,
    root: str | Path | None = None,
    *,
    fold: int | None = None,
    val: float | None = None,
    test: float | None = None,
    **_: Any,
) -> Path:
    """Where a set of graphs is; raises what can be known to be wrong before it is read.

    Args:
        path, root, fold, val, test: See `load_graph_files`.
    """
    place = find_graph_set(path, root)
    if place is None:
        raise _missing(str(path), root)
    name = place.stem if place.suffix == ".npz" else TUFiles(place).name
    if fold is not None:
        whole_number("fold", fold, 0)
        if val is not None or test is not None:
            raise UsageError("give one of fold, and val and test: a fold is a published split")
        if not _splits_file(place, name).is_file():
            raise DataError(
                f"fold needs the file {_splits_file(place, name)}, which does not exist. Omit fold "
                "for a random split"
            )
    return place


def find_graph_set(name: str | Path, root: str | Path | None = None) -> Path | None:
    """The folder or file of a set of graphs, by its path, or by its name in the data folders."""
    path = Path(name).expanduser()
    if _is_set(path):
        return path
    if is_bare(name):
        for folder in data_folders(root):
            for place in (folder, folder / SUBFOLDER):
                for candidate in (place / str(name), *(place / f"{name}{e}" for e in ENDINGS)):
                    if _is_set(candidate):
                        return candidate
    return None


def graph_set_names(root: str | Path | None = None) -> list[str]:
    """Names of the sets of graphs in the `tu` folders on this machine."""
    folders = [folder / SUBFOLDER for folder in data_folders(root)]
    found = [path for folder in folders if folder.is_dir() for path in folder.iterdir()]
    return sorted(
        {path.stem if path.suffix in ENDINGS else path.name for path in found if _is_set(path)}
    )


def is_bare(name: str | Path) -> bool:
    """Whether it is a name to look up, not a path."""
    text = str(name)
    has_folder = any(sign in text for sign in (os.sep, os.altsep) if sign)
    return not has_folder and not text.startswith(("~", ".")) and not text.endswith(ENDINGS)


def _is_set(path: Path) -> bool:
    if path.suffix in ENDINGS and path.is_file():
        return True
    if not path.is_dir():
        return False
    try:
        TUFiles(path)
    except DataError:
        return False
    return True


def _missing(name: str, root: str | Path | None) -> DataError:
    path = Path(name).expanduser()
    if path.is_dir():
        return _error_of(path)
    if path.is_file():
        return DataError(f"{path} must be a folder, or a file that ends in {' or '.join(ENDINGS)}")
    if not is_bare(name):
        return DataError(f"the graphs {name} do not exist, neither as a folder nor as a file")
    folders = ", ".join(map(str, data_folders(root)))
    known = graph_set_names(root)
    hint = f" ({did_you_mean(name, known)})" if known else ""
    return DataError(
        f"there are no graphs {name!r}{hint}. Looked for {name}.zip, {name}.npz and a folder "
        f"{name} in these folders, and in {SUBFOLDER}/ of each: {folders}"
    )


def _error_of(folder: Path) -> DataError:
    """Why a folder is no set of graphs."""
    try:
        TUFiles(folder)
    except DataError as error:
        return error
    return DataError(f"{folder} is no set of graphs")


def _splits_file(place: Path, name: str) -> Path:
    """The file of published splits: in the folder of a set, else beside it."""
    inside = place / f"{name}_splits.json"
    return inside if inside.is_file() else place.parent / f"{name}_splits.json"


def _fold(path: Path, fold: int, num_graphs: int) -> dict[str, Any]:
    """Masks of the graphs for training, validation and test."""
    import torch

    folds = read_json(path)
    if not isinstance(folds, list) or not all(isinstance(one, dict) for one in folds):
        raise DataError(
            f"{path} must hold a list of folds, each an object with {', '.join(SPLITS)}"
        )
    if not folds:
        raise DataError(f"{path} must hold at least one fold, got none")
    chosen = folds[whole_number("fold", fold, 0, len(folds) - 1)]
    times = np.zeros(num_graphs, np.int64)
    masks = {}
    for split, mask in zip(SPLITS, ("train_mask", "val_mask", "test_mask"), strict=True):
        numbers = chosen.get(split)
        if not isinstance(numbers, list) or not all(
            isinstance(n, int) and not isinstance(n, bool) and 0 <= n < num_graphs for n in numbers
        ):
            raise DataError(
                f"{path}, fold {fold}: {split} must be a list of graph numbers from 0 to "
                f"{num_graphs - 1}"
            )
        counts = np.bincount(np.array(numbers, np.int64), minlength=num_graphs)
        times += counts
        masks[mask] = torch.from_numpy(counts > 0)
    if (times > 1).any():
        raise DataError(
            f"{path}, fold {fold}: a graph must be in one split, and once, got graph "
            f"{int(times.argmax())} {times.max()} times"
        )
    return masks
