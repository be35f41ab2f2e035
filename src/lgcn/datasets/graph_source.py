"""Which graph or graphs to work on: a data set, a store or tables, checked before it is loaded.

Nothing here imports torch, so that a mistake is reported at once.
"""

from __future__ import annotations

import glob
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lgcn.datasets.graph_sets import find_graph_set, is_bare
from lgcn.datasets.npz import find_npz
from lgcn.errors import UsageError
from lgcn.partition.manifest import is_partition
from lgcn.store.format import is_store
from lgcn.tables.early_checks import TEXT, is_path

TABLES = ("nodes", "edges", "graphs", "features")  # the options that name files
IN_FOLDERS = ("store", "partition")
OF_GRAPHS = ("graphs", "graph_tables")  # data sets of many graphs


@dataclass(frozen=True)
class GraphSource:
    """A graph by the name of its data set and its options, as `lgcn.load_dataset` takes them.

    Args:
        dataset: The data set; `"store"` and `"tables"` are a user's own graphs, `"graphs"` and
            `"graph_tables"` sets of graphs.
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

    def load(self, **more: Any) -> Any:
        """Loads the graph: an `lgcn.Graph`, or of `is_graph_set` an `lgcn.GraphSet`.

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
        path = self.options.get("path")
        named: list[Any] = {
            "tables": tables,
            "graph_tables": tables,
            "graphs": [path] if isinstance(path, str | Path) and not is_bare(path) else [],
            **{kind: [path] for kind in IN_FOLDERS},
        }.get(self.dataset, [self.dataset] if self.dataset.endswith(".npz") else [])
        paths = [Path(path) for path in named if isinstance(path, str | Path)]
        return next((path for path in paths if not path.exists()), None)

    @property
    def is_own(self) -> bool:
        """Whether it is a user's own: tables, a store, an `.npz` file, or graphs given by path."""
        if self.dataset == "graphs":
            return not is_bare(self.options.get("path", ""))
        own = ("tables", "graph_tables", *IN_FOLDERS)
        return self.dataset in own or self.dataset.endswith(".npz")

    @property
    def is_graph_set(self) -> bool:
        """Whether there are many graphs with a label each: `load` then gives an `lgcn.GraphSet`."""
        return self.dataset in OF_GRAPHS

    @property
    def is_partition(self) -> bool:
        """Whether the graph is in parts: `load` then gives an `lgcn.partition.Partition`."""
        return self.dataset == "partition"

    @property
    def title(self) -> str:
        """A short name: that of the table of graphs or nodes, the store or the data set."""
        given = (self.options.get(key) for key in ("graphs", "nodes", "path"))
        named = next(filter(None, given), self.dataset)
        first = str(named[0] if isinstance(named, list | tuple) else named)
        if self.dataset == "graphs" and is_bare(first):  # which may have points in it
            return first
        return re.sub(r"[*?\[\]]+", "", Path(first).stem) or "tables"


def choose_source(
    dataset: str | None = None,
    *,
    store: str | Path | None = None,
    root: str | Path | None = None,
    **tables: Any,
) -> GraphSource | None:
    """The graph that the arguments name, one way or another; `None` if they name none.

    Args:
        dataset: Name of a data set, path of an `.npz` file or of a graph store.
        store: Folder of a graph store.
        root: See `GraphSource`.
        **tables: `edges` and `nodes`, and the other arguments of `lgcn.from_tables`. Or `graphs`:
            with `edges` or `nodes` a table, and the arguments of `lgcn.graphs_from_tables`; alone
            the name or path of a set of graphs, and the options of `lgcn.load_graphs`.
    """
    given = {"dataset=": dataset is not None, "store=": store is not None}
    given["your own edges= and nodes="] = bool(tables)
    named = [name for name, is_given in given.items() if is_given]
    if len(named) > 1:
        raise UsageError(f"give one of {' and '.join(named)}, not both")
    if tables.get("graphs") is not None:
        return _of_graphs(tables, root)
    if tables:
        return GraphSource("tables", _two_tables(tables), root)
    if store is not None:
        kind = "partition" if is_partition(store) else "store"
        return GraphSource(kind, {"path": _absolute(store)}, root)
    return None if dataset is None else as_store(GraphSource(dataset, {}, root))


def as_store(source: GraphSource) -> GraphSource:
    """The source, as a graph store or a set of graphs if its data set is the path of one."""
    from lgcn.datasets import dataset_names

    if source.dataset in dataset_names():
        return source
    for kind, looks_so in (("store", is_store), ("partition", is_partition)):
        if looks_so(source.dataset):
            return GraphSource(kind, {"path": _absolute(source.dataset)}, source.root)
    name = source.dataset
    is_npz = name.endswith(".npz") or find_npz(name, source.root) is not None
    if not is_npz and find_graph_set(name, source.root) is not None:
        return GraphSource("graphs", {"path": _name_or_path(name), **source.options}, source.root)
    return source


def _of_graphs(given: Mapping[str, Any], root: str | Path | None) -> GraphSource:
    """A set of graphs in files of its own, or in tables."""
    if "edges" in given or "nodes" in given:
        return GraphSource("graph_tables", _with_paths({"edges": None, **given}), root)
    graphs = given["graphs"]
    if not isinstance(graphs, str | Path) or Path(graphs).suffix.lower() in (*TEXT, ".parquet"):
        raise UsageError(
            "graphs= names a table, which needs edges= too, and nodes= if nodes have features. "
            "Else give the name, folder or zip file of a set of graphs"
        )
    options = {name: value for name, value in given.items() if name != "graphs"}
    return GraphSource("graphs", {"path": _name_or_path(graphs), **options}, root)


def _name_or_path(name: str | Path) -> str:
    """A name to look up, unless there is such a folder here; else an absolute path."""
    return str(name) if is_bare(name) and not Path(name).exists() else _absolute(name)


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
    return _with_paths(tables)


def _with_paths(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The options of tables with absolute paths."""
    paths: dict[str, Any] = {}
    for role in TABLES:
        if is_path(tables.get(role)):
            files = [_absolute(path) for path in _each(tables[role])]
            paths[role] = files if isinstance(tables[role], list | tuple) else files[0]
    return {**tables, **paths}


def _each(files: Any) -> list[str | Path]:
    return list(files) if isinstance(files, list | tuple) else [files]


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().absolute())
