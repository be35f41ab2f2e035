"""Data sets by name, each as one `lgcn.Graph`.

`lgcn.datasets.registry` has one entry per data set, and one file per source loads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets.graph_sets import find_graph_set, graph_set_names
from lgcn.datasets.locate import missing_files
from lgcn.datasets.npz import HALF, NPZ_OPTIONS, find_npz, load_half, load_npz, npz_names
from lgcn.datasets.registry import DATASETS, Dataset, at_path, graph_set
from lgcn.datasets.synthetic import synthetic
from lgcn.errors import UsageError, did_you_mean
from lgcn.graph.splits import random_split
from lgcn.partition.manifest import is_partition
from lgcn.store.format import is_store

if TYPE_CHECKING:
    from lgcn.graph import Graph

__all__ = [
    "DATASETS",
    "check_dataset",
    "dataset_files",
    "dataset_names",
    "describe",
    "load_dataset",
    "npz_names",
    "random_split",
    "synthetic",
]


def dataset_names() -> list[str]:
    """The names that `load_dataset` knows, apart from those of `.npz` files (`npz_names`)."""
    return list(DATASETS)


def describe(name: str, root: str | Path | None = None) -> str:
    """One line about a data set."""
    return _dataset(name, root).description


def dataset_files(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the files of a data set are on this machine; empty for those that need none.

    Nothing is downloaded: a [`DataError`][lgcn.errors.DataError] says what is missing.
    """
    return _dataset(name, root).files(root)


def load_dataset(name: str, root: str | Path | None = None, **options: Any) -> Graph:
    """Loads a data set.

    Args:
        name: A name that `lgcn data list` shows, such as `"cora"`; the path of a graph store or of
            an `.npz` file; or the name of an `.npz` file in one of the data folders. With `-half`
            at the end of an `.npz` name, half of the labelled nodes are for training and a quarter
            each for validation and test, instead of 20 training nodes per class. The name or path
            of a set of graphs gives an [`lgcn.GraphSet`][lgcn.GraphSet], see
            [`load_graphs`][lgcn.load_graphs].
        root: A folder to look for files in, before `$LGCN_DATA` and the user's cache.
            (default: none)
        **options: Options of the data set, for example `normalize_features`.
    """
    graph: Graph = _with_options(name, root, options).load(**options)  # or a set of graphs
    return graph


def check_dataset(name: str, root: str | Path | None = None, **options: Any) -> None:
    """Raises what `load_dataset` would raise before it reads data, without importing torch.

    That is a name that does not exist, an option that the data set does not have, and a file, a
    store or a column of a table that does not exist.

    Args:
        name, root, **options: See `load_dataset`.
    """
    dataset = _dataset(name, root)
    # Options of tables can be checked without their loader, which takes long to import.
    if dataset.signature is None or not set(dataset.needs) <= options.keys():
        _with_options(name, root, options)
    dataset.check_options(root, options)


def _with_options(name: str, root: str | Path | None, options: Mapping[str, Any]) -> Dataset:
    """The data set, if it has the options."""
    dataset = _dataset(name, root)
    valid = dataset.options()
    if "root" in valid:
        valid.remove("root")
        dataset = replace(dataset, load=partial(dataset.load, root=root))
    for option in options:
        if option not in valid:
            raise UsageError(f"{name} has no option {option!r}; {did_you_mean(option, valid)}")
    for option in dataset.needs:
        if option not in options:
            raise UsageError(
                f"the data set {name!r} needs the option {option}, got none; the command line has "
                f"{dataset.flags} for it"
            )
    return dataset


def _dataset(name: str, root: str | Path | None) -> Dataset:
    if name in DATASETS:
        return DATASETS[name]
    if is_store(name):
        return at_path(name)
    if is_partition(name):
        raise UsageError(
            f"{name} is a graph in parts, of which this command reads none. Give the graph store "
            "it was cut from"
        )
    load: Callable[..., Graph] = load_npz
    path = find_npz(name, root)
    if path is None and name.endswith(HALF):
        path, load = find_npz(name.removesuffix(HALF), root), load_half
    if path is None and name.endswith(".npz"):
        raise missing_files(name, [name], root, ("npz",))
    several = find_graph_set(name, root) if path is None else None
    if several is not None:
        return graph_set(several, name)
    if path is None:
        by_path = [known for known, dataset in DATASETS.items() if dataset.needs]
        names = [*(known for known in DATASETS if known not in by_path), *npz_names(root)]
        names += graph_set_names(root)
        raise UsageError(
            f"there is no data set {name!r}; {did_you_mean(name, names)} (the path of an .npz file "
            "or of a graph store works as well)"
        )
    return Dataset(f"graph in {path}", partial(load, path), NPZ_OPTIONS, lambda _: [path])
