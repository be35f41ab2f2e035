"""All facts about the data sets, one entry per data set.

To add a data set, write its loader in a file of this folder and add an entry to `DATASETS`.
Nothing here imports torch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets import option_types as types
from lgcn.datasets.digits import load_digits
from lgcn.datasets.graph_sets import check_graph_files, load_graph_files
from lgcn.datasets.heterophilous import heterophilous_files, load_heterophilous
from lgcn.datasets.npz import NPZ_OPTIONS
from lgcn.datasets.option_types import OptionType
from lgcn.datasets.planetoid import load_planetoid, planetoid_files
from lgcn.datasets.ppi import load_ppi, load_ppi_rederived, ppi_files, ppi_rederived_files
from lgcn.datasets.synthetic import synthetic
from lgcn.partition.manifest import check_partition
from lgcn.store.checked_files import read_header
from lgcn.tables.early_checks import check_graph_tables, check_tables

if TYPE_CHECKING:
    from lgcn.graph import Graph


def _no_files(root: str | Path | None) -> list[Path]:
    return []


@dataclass(frozen=True)
class Dataset:
    """What there is to know about a data set.

    Args:
        description: One line.
        load: Makes the graph, or the set of graphs. Its arguments, apart from `root`, are the data
            set's options.
        stored: The options that a file such as `run.json` may set, and their types. Anyone may
            have written the file, so that no option that switches a check off is among them.
        files: Where its files are on this machine. (default: it needs none)
        needs: Options without a default. (default: none)
        flags: How the command line gives the options in `needs`. (default: not at all)
        signature: The function that has the options, if it is not `load` itself and takes
            long to import. (default: `load`)
        check: Called with all options in `needs`: raises what can be known to be wrong with the
            options before data are read. It may also have an argument `root`. (default: nothing is
            checked)
    """

    description: str
    load: Callable[..., Any]
    stored: Mapping[str, OptionType]
    files: Callable[[str | Path | None], list[Path]] = _no_files
    needs: tuple[str, ...] = ()
    flags: str = ""
    signature: Callable[[], Callable[..., Any]] | None = None
    check: Callable[..., object] = field(default=lambda **options: None)

    def check_options(self, root: str | Path | None, options: Mapping[str, Any]) -> None:
        """Raises what can be known to be wrong with the options before data are read."""
        if "root" in inspect.signature(self.check).parameters:
            self.check(root=root, **options)
        else:
            self.check(**options)

    def options(self) -> list[str]:
        """The names of the arguments of `load`, perhaps with `root`."""
        function = self.load if self.signature is None else self.signature()
        return list(inspect.signature(function).parameters)


def _from_tables(edges: Any, nodes: Any, **options: Any) -> Graph:
    from lgcn.tables.from_tables import from_tables  # imports pyarrow

    return from_tables(edges, nodes, **options)


def _signature_of_tables() -> Callable[..., Any]:
    from lgcn.tables.from_tables import from_tables

    return from_tables


def _from_graph_tables(edges: Any, graphs: Any, nodes: Any = None, **options: Any) -> Any:
    from lgcn.tables.graphs_from_tables import graphs_from_tables  # imports pyarrow

    return graphs_from_tables(edges, nodes, graphs, **options)


def _signature_of_graph_tables() -> Callable[..., Any]:
    from lgcn.tables.graphs_from_tables import graphs_from_tables

    return graphs_from_tables


def _from_store(path: str | Path) -> Graph:
    # Always verified: options can come from a file. open_store() can skip that.
    from lgcn.store.open_store import open_store  # imports pyarrow

    return open_store(path).graph


def _from_partition(path: str | Path) -> Any:
    from lgcn.partition import open_partition  # imports torch

    return open_partition(path)


def _check_store(path: str | Path) -> None:
    read_header(Path(path))


_NORMALIZE = {"normalize_features": types.flag}


def _planetoid(name: str, description: str) -> Dataset:
    return Dataset(
        description, partial(load_planetoid, name), _NORMALIZE, partial(planetoid_files, name)
    )


def _heterophilous(name: str, description: str) -> Dataset:
    return Dataset(
        f"{description}; neighbours often differ, ten published splits",
        partial(load_heterophilous, name),
        {"split": types.number},
        partial(heterophilous_files, name),
    )


# Options of tables of one graph and of several. Not encoder and label_names: a run folder keeps
# these in separate files.
_TABLES = {
    **dict.fromkeys(("edges", "nodes"), types.texts),
    **dict.fromkeys(("id_column", "split_column"), types.text_or_none),
    **dict.fromkeys(("source_column", "target_column"), types.text_or_none),
    **dict.fromkeys(("weight_column", "label_separator"), types.text_or_none),
    **dict.fromkeys(("delimiter", "name"), types.text_or_none),
    "sample_weight_column": types.text_or_none,
    **dict.fromkeys(("label_column", "ignore_columns"), types.texts),
    **dict.fromkeys(("numeric_columns", "categorical_columns"), types.texts),
    **dict.fromkeys(("text_columns", "list_columns", "na_values"), types.texts),
    **dict.fromkeys(("decimal", "date_order"), types.text),
    **dict.fromkeys(("val", "test"), types.number_or_none),
    **dict.fromkeys(("encoding", "task"), types.text),
    "split_seed": types.number,
    "directed": types.flag,
}

# A set of graphs in files, by whatever name: `lgcn train --graphs MUTAG`.
GRAPH_OPTIONS = {
    **dict.fromkeys(("fold", "target"), types.number_or_none),
    **dict.fromkeys(("val", "test"), types.number_or_none),
    "split_seed": types.number,
}

DATASETS = {
    "digits": Dataset(
        "handwritten digits joined with their nearest neighbours; needs no file",
        load_digits,
        {"n_neighbors": types.number, **types.RANDOM_SPLIT},
    ),
    "synthetic": Dataset(
        "random graph of any size with planted classes; needs no file",
        synthetic,
        {
            **dict.fromkeys(("num_nodes", "mean_degree", "num_features"), types.number),
            **dict.fromkeys(("num_classes", "homophily", "skew", "noise"), types.number),
            **dict.fromkeys(("labels_per_class", "num_val", "seed"), types.number),
        },
    ),
    "cora": _planetoid("cora", "citation graph, 2708 nodes, 7 classes, public split"),
    "citeseer": _planetoid("citeseer", "citation graph, 3327 nodes, 6 classes, public split"),
    "pubmed": _planetoid("pubmed", "citation graph, 19717 nodes, 3 classes, public split"),
    "ppi": Dataset(
        "24 protein graphs, 121 labels, inductive split", load_ppi, _NORMALIZE, ppi_files
    ),
    "ppi-rederived": Dataset(
        "the graphs of ppi with labels re-derived from annotations: scores are not PPI scores",
        load_ppi_rederived,
        _NORMALIZE,
        ppi_rederived_files,
    ),
    "minesweeper": _heterophilous("minesweeper", "grid of a game, 10000 nodes, mine or not"),
    "tolokers": _heterophilous("tolokers", "crowd workers, 11758 nodes, banned or not"),
    "store": Dataset(
        "a graph of any size on disk, by lgcn import or lgcn generate: lgcn train --graph STORE",
        _from_store,
        {"path": types.text},
        needs=("path",),
        flags="--graph",
        check=_check_store,
    ),
    "partition": Dataset(
        "a graph of any size in parts, by lgcn partition: lgcn train --graph PARTITION",
        _from_partition,
        {"path": types.text},
        needs=("path",),
        flags="--graph",
        check=check_partition,
    ),
    "tables": Dataset(
        "your own edge and node tables: lgcn train --edges FILE --nodes FILE --label-column NAME",
        _from_tables,
        {
            **_TABLES,
            **dict.fromkeys(("features", "edge_columns"), types.texts),
            **dict.fromkeys(("header", "node_header"), types.flag_or_none),
            "labels_per_class": types.number_or_none,
            "unknown_nodes": types.text,
        },
        needs=("edges", "nodes"),
        flags="--edges and --nodes",
        signature=_signature_of_tables,
        check=check_tables,
    ),
    "graphs": Dataset(
        "many graphs with a label each, in TU's layout: lgcn train --graphs NAME_OR_PATH",
        load_graph_files,
        {"path": types.text, **GRAPH_OPTIONS},
        needs=("path",),
        flags="--graphs",
        check=check_graph_files,
    ),
    "graph_tables": Dataset(
        "your own tables of many graphs: lgcn train --graphs FILE --edges FILE --nodes FILE",
        _from_graph_tables,
        {**_TABLES, "graphs": types.texts, "graph_column": types.text},
        needs=("edges", "graphs"),
        flags="--edges and --graphs",
        signature=_signature_of_graph_tables,
        check=check_graph_tables,
    ),
}


def graph_set(path: Path, name: str) -> Dataset:
    """The data set of many graphs in files, given by its name or path.

    Args:
        path: Where it is.
        name: What it was called.
    """
    return Dataset(
        f"graphs in {path}",
        partial(load_graph_files, name),
        GRAPH_OPTIONS,
        lambda _: [path],
        check=partial(check_graph_files, name),
    )


def at_path(path: str) -> Dataset:
    """The data set of a store, given by its path."""
    store = DATASETS["store"]
    return Dataset(
        store.description,
        partial(_from_store, path),
        {},
        check=lambda **options: _check_store(path),
    )


def check_options(dataset: str, options: Mapping[str, Any]) -> None:
    """Raises ValueError if a file such as `run.json` sets options that it must not.

    Args:
        dataset: The data set; one that is not known by name is an `.npz` file or a store.
        options: Its options in the file.
    """
    if not types.text(dataset):
        raise ValueError(f"dataset must be a name or a path, got {dataset!r:.80}")
    allowed = DATASETS[dataset].stored if dataset in DATASETS else NPZ_OPTIONS
    for name, value in options.items():
        if name not in allowed:
            raise ValueError(
                f"a file must not set the option {name!r:.80} of the data set {dataset!r:.80}"
            )
        if not allowed[name](value):
            raise ValueError(f"dataset_options: {name} must not be {value!r:.80}")
