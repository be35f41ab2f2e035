"""Data sets by name, each as one :class:`lgcn.Graph`; one file per source."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lgcn.datasets.digits import load_digits
from lgcn.datasets.locate import missing_files
from lgcn.datasets.npz import HALF, find_npz, load_half, load_npz, npz_names
from lgcn.datasets.planetoid import load_planetoid, planetoid_files
from lgcn.datasets.ppi import load_ppi, load_ppi_rederived, ppi_files, ppi_rederived_files
from lgcn.datasets.synthetic import synthetic
from lgcn.errors import UsageError
from lgcn.graph.splits import random_split
from lgcn.store.checked_files import read_header
from lgcn.store.format import is_store
from lgcn.tables.early_checks import check_tables

if TYPE_CHECKING:
    from lgcn.graph import Graph

__all__ = [
    "check_dataset",
    "dataset_files",
    "dataset_names",
    "describe",
    "load_dataset",
    "npz_names",
    "random_split",
    "synthetic",
]


class _Dataset(NamedTuple):
    description: str
    load: Callable[..., Graph]
    files: Callable[[str | Path | None], list[Path]]


def _no_files(root: str | Path | None) -> list[Path]:
    return []


def _from_tables(edges: Any, nodes: Any, **options: Any) -> Graph:
    from lgcn.tables.from_tables import from_tables  # imports pyarrow

    return from_tables(edges, nodes, **options)


def _from_store(path: str | Path) -> Graph:
    # Always verified: options can come from a file. open_store() can leave it out.
    from lgcn.store.open_store import open_store  # imports pyarrow

    return open_store(path).graph


DATASETS = {
    "digits": _Dataset(
        "handwritten digits joined with their nearest neighbours; needs no file",
        load_digits,
        _no_files,
    ),
    "synthetic": _Dataset(
        "random graph of any size with planted classes; needs no file", synthetic, _no_files
    ),
    "cora": _Dataset(
        "citation graph, 2708 nodes, 7 classes, public split",
        partial(load_planetoid, "cora"),
        partial(planetoid_files, "cora"),
    ),
    "citeseer": _Dataset(
        "citation graph, 3327 nodes, 6 classes, public split",
        partial(load_planetoid, "citeseer"),
        partial(planetoid_files, "citeseer"),
    ),
    "pubmed": _Dataset(
        "citation graph, 19717 nodes, 3 classes, public split",
        partial(load_planetoid, "pubmed"),
        partial(planetoid_files, "pubmed"),
    ),
    "ppi": _Dataset("24 protein graphs, 121 labels, inductive split", load_ppi, ppi_files),
    "ppi-rederived": _Dataset(
        "the graphs of ppi with labels re-derived from annotations: scores are not PPI scores",
        load_ppi_rederived,
        ppi_rederived_files,
    ),
    "store": _Dataset(
        "a graph of any size on disk, by lgcn import or lgcn generate: lgcn train --graph STORE",
        _from_store,
        _no_files,
    ),
    "tables": _Dataset(
        "your own edge and node tables: lgcn train --edges FILE --nodes FILE --label-column NAME",
        _from_tables,
        _no_files,
    ),
}


def dataset_names() -> list[str]:
    """The names that :func:`load_dataset` knows; ``.npz`` files come on top (:func:`npz_names`)."""
    return list(DATASETS)


def describe(name: str, root: str | Path | None = None) -> str:
    """One line on a data set."""
    return _dataset(name, root).description


def dataset_files(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the files of a data set are on this machine; empty for those that need none.

    Nothing is downloaded: a :class:`lgcn.errors.DataError` says what is missing.
    """
    return _dataset(name, root).files(root)


def load_dataset(name: str, root: str | Path | None = None, **options: Any) -> Graph:
    """Loads a data set.

    Args:
        name: One of :func:`dataset_names`, the path of an ``.npz`` file (:mod:`lgcn.datasets.npz`
            has its layout), or the name of such a file in one of the data folders. With ``-half``
            at its end, such a graph has half of its labelled nodes to train on, and a quarter each
            to validate and to test, instead of 20 training nodes a class.
        root: A folder to look for files in, before ``$LGCN_DATA`` and the user's cache.
            (default: none)
        **options: Those of the data set's own function, for example ``normalize_features``.
    """
    return _with_options(name, root, options).load(**options)


def check_dataset(name: str, root: str | Path | None = None, **options: Any) -> None:
    """Refuses what :func:`load_dataset` would refuse before it reads data, without importing torch.

    That is a name that does not exist, an option that the data set does not have, and a file, a
    store or a column of a table that is not there.

    Args:
        name, root, **options: See :func:`load_dataset`.
    """
    if name == "tables" and {"edges", "nodes"} <= options.keys():
        check_tables(**options)
        return
    _with_options(name, root, options)
    store = options.get("path") if name == "store" else name if is_store(name) else None
    if store is not None:
        read_header(Path(store))


def _with_options(name: str, root: str | Path | None, options: Mapping[str, Any]) -> _Dataset:
    """The data set, if it has the options."""
    dataset = _dataset(name, root)
    valid = list(inspect.signature(_signature_of(dataset.load)).parameters)
    if "root" in valid:
        valid.remove("root")
        dataset = dataset._replace(load=partial(dataset.load, root=root))
    for option in options:
        if option not in valid:
            raise UsageError(
                f"{name} has no option {option!r}{_suggest(option, valid)}. "
                f"It has: {', '.join(map(repr, valid))}"
            )
    for option in {"tables": ("edges", "nodes"), "store": ("path",)}.get(name, ()):
        if option not in options:
            flags = "--edges and --nodes" if name == "tables" else "--graph"
            raise UsageError(
                f"the data set {name!r} needs the option {option}, got none; the command line has "
                f"{flags} for it"
            )
    return dataset


def _signature_of(load: Callable[..., Graph]) -> Callable[..., Any]:
    """The function that has the options of a data set."""
    if load is not _from_tables:
        return load
    from lgcn.tables.from_tables import import_tables

    return import_tables


def _dataset(name: str, root: str | Path | None) -> _Dataset:
    if name in DATASETS:
        return DATASETS[name]
    if is_store(name):
        return DATASETS["store"]._replace(load=partial(_from_store, name))
    load: Callable[..., Graph] = load_npz
    path = find_npz(name, root)
    if path is None and name.endswith(HALF):
        path, load = find_npz(name.removesuffix(HALF), root), load_half
    if path is None and name.endswith(".npz"):
        raise missing_files(name, [name], root, ("npz",))
    if path is None:
        names = [*(n for n in DATASETS if n not in ("store", "tables")), *npz_names(root)]
        raise UsageError(
            f"there is no data set {name!r}{_suggest(name, names)}. Choose one of "
            f"{', '.join(names)}, or give the path of an .npz file or of a graph store"
        )
    return _Dataset(f"graph in {path}", partial(load, path), lambda _: [path])


def _suggest(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word.lower(), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
