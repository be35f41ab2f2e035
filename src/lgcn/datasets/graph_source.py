"""Which graph to work on: a data set, a graph store or two tables, checked before it is loaded.

Nothing here imports torch, so that a mistake is reported at once.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.partition.manifest import is_partition
from lgcn.store.format import is_store
from lgcn.tables.early_checks import is_path

if TYPE_CHECKING:
    from lgcn.graph import Graph


TABLES = ("nodes", "edges", "features")  # the options that name files
IN_FOLDERS = ("store", "partition")
WHOLE_GRAPHS = ("graphs", "graph_tables")


@dataclass(frozen=True)
class GraphSource:
    """A graph by the name of its data set and its options, as `lgcn.load_dataset` takes them.

    Args:
        dataset: The data set; `"store"` and `"tables"` are a user's own graphs.
        options: Options of the data set. (default: none)
        root: Folder of the data files. (default: `$LGCN_DATA`, then the cache folder)
    """

    dataset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    root: str | Path | None = None

    def check(self) -> None:
        """Raises an error if `load` would, as far as can be told without reading data."""
        from lgcn.datasets import check_dataset

        check_dataset(self.dataset, self.root, **self.options)

    def load(self, **more: Any) -> Graph:
        """Loads the graph.

        Args:
            **more: Further options of the data set.
        """
        from lgcn.datasets import load_dataset

        return load_dataset(self.dataset, self.root, **self.options, **more)

    @property
    def missing_path(self) -> Path | None:
        """The file or store of the user that is not where the options say, if any."""
        tables: list[Any] = [
            path
            for role in TABLES
            if is_path(self.options.get(role))
            for path in _each(self.options[role])
            if not glob.has_magic(str(path))
        ]
        named: list[Any] = {
            "tables": tables,
            **{kind: [self.options.get("path")] for kind in IN_FOLDERS},
        }.get(self.dataset, [self.dataset] if self.dataset.endswith(".npz") else [])
        paths = [Path(path) for path in named if isinstance(path, str | Path)]
        return next((path for path in paths if not path.exists()), None)

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own graph: tables, a store or an `.npz` file."""
        return self.dataset in ("tables", *IN_FOLDERS) or self.dataset.endswith(".npz")

    @property
    def is_whole_graphs(self) -> bool:
        """Whether whole graphs are predicted: `load` then gives an `lgcn.GraphSet`."""
        return self.dataset in WHOLE_GRAPHS

    @property
    def is_partition(self) -> bool:
        """Whether the graph is in parts: `load` then gives an `lgcn.partition.Partition`."""
        return self.dataset == "partition"

    @property
    def title(self) -> str:
        """A short name: that of the node table, the store or the data set."""
        named = self.options.get("nodes") or self.options.get("path") or self.dataset
        first = str(named[0] if isinstance(named, list | tuple) else named)
        return re.sub(r"[*?\[\]]+", "", Path(first).stem) or "tables"


def choose_source(
    dataset: str | None = None,
    *,
    store: str | Path | None = None,
    graphs: str | Path | Sequence[str | Path] | None = None,
    root: str | Path | None = None,
    **tables: Any,
) -> GraphSource | None:
    """The graph that the arguments name, one way or another; `None` if they name none.

    Args:
        dataset: Name of a data set, path of an `.npz` file or of a graph store.
        store: Folder of a graph store.
        graphs: Whole graphs: a set by name, folder or file, see `lgcn.load_graphs`; with `edges`,
            the table of graphs, see `lgcn.graphs_from_tables`.
        root: See `GraphSource`.
        **tables: `edges` and `nodes`, and the other arguments of `lgcn.from_tables`; with `graphs`,
            those of `lgcn.graphs_from_tables`, or the options of the set.
    """
    if graphs is not None:
        if dataset is not None or store is not None:
            other = "dataset=" if dataset is not None else "store="
            raise UsageError(f"give one of graphs= and {other}, not both")
        return _whole_graphs(graphs, tables, root)
    given = {"dataset=": dataset is not None, "store=": store is not None}
    given["your own edges= and nodes="] = bool(tables)
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"give one of {' and '.join(named)}, not both")
    if tables:
        return GraphSource("tables", _two_tables(tables), root)
    if store is not None:
        kind = "partition" if is_partition(store) else "store"
        return GraphSource(kind, {"path": _absolute(store)}, root)
    return None if dataset is None else as_store(GraphSource(dataset, {}, root))


def as_store(source: GraphSource) -> GraphSource:
    """The source, as a graph store if its data set is the path of one."""
    from lgcn.datasets import dataset_names

    if source.dataset in dataset_names():
        return source
    for kind, looks_so in (("store", is_store), ("partition", is_partition)):
        if looks_so(source.dataset):
            return GraphSource(kind, {"path": _absolute(source.dataset)}, source.root)
    return source


def _whole_graphs(
    graphs: str | Path | Sequence[str | Path], tables: Mapping[str, Any], root: str | Path | None
) -> GraphSource:
    """A set of whole graphs, or tables of them."""
    if "edges" in tables:
        if "fold" in tables:
            raise UsageError("fold= is for a set with published splits: give split_column= instead")
        files = {"graphs": graphs, "nodes": None, **tables}
        return GraphSource("graph_tables", {**files, **_paths(files, (*TABLES, "graphs"))}, root)
    from lgcn.datasets.graph_sets import is_bare

    several = _each(graphs)
    if len(several) != 1:
        raise UsageError(f"graphs= must be one set of graphs without edges=, got {len(several)}")
    path = str(several[0]) if is_bare(several[0]) else _absolute(several[0])
    return GraphSource("graphs", {"path": path, **tables}, root)


def _two_tables(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The options of tables, if they name both, with absolute paths.

    A run can then be resumed and used from any folder.
    """
    for missing, other in (("nodes", "edges"), ("edges", "nodes")):
        if missing not in tables:
            named = other if other in tables else next(iter(tables))
            raise UsageError(
                f"{named}= needs {missing}= too: edges and nodes are two tables, and nodes= has "
                "every node that edges= names. For a graph without edges, give edges=None"
            )
    return {**tables, **_paths(tables, TABLES)}


def _paths(tables: Mapping[str, Any], roles: Sequence[str]) -> dict[str, Any]:
    """The absolute paths of the tables that are files."""
    paths: dict[str, Any] = {}
    for role in roles:
        if is_path(tables.get(role)):
            files = [_absolute(path) for path in _each(tables[role])]
            paths[role] = files if isinstance(tables[role], list | tuple) else files[0]
    return paths


def _each(files: Any) -> list[str | Path]:
    return list(files) if isinstance(files, list | tuple) else [files]


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().absolute())
