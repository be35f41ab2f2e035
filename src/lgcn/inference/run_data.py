"""Where the graph of a trained run comes from: its own data, or new data for the model.

Everything that can be checked without torch is checked in `RunData.source`, before torch is
imported, so that a mistake is reported at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from lgcn.datasets.graph_source import GraphSource, as_store, choose_source
from lgcn.errors import DataError, UsageError

if TYPE_CHECKING:
    from lgcn.graph import Graph, GraphSet
    from lgcn.training.model_spec import ModelSpec
    from lgcn.training.run_folder import Run
    from lgcn.training.settings import Settings
    from lgcn.training.split_file import Split
    from lgcn.utils.choices import Unit

# Options of tables that only matter in training.
_OF_TRAINING = (
    "ignore_columns",  # the encoder knows those it wants
    "sample_weight_column",
    "split_column",
    "labels_per_class",
    "val",
    "test",
    "split_seed",
)
# Options that say how cells are written.
_CELLS = ("decimal", "date_order", "na_values")
# By which arguments data are given.
_ARGUMENTS = {
    **{"tables": "edges= and nodes=", "store": "store=", "partition": "store="},
    **{"graphs": "graphs=", "graph_tables": "graphs= and edges="},
}
# Data that are not a user's tables.
_NOT_TABLES = ("graph", "dataset", "store", "root")


class NewData(TypedDict, total=False):
    """The graph to work on, one of several ways; without any, the one of the training.

    `graph` is a graph in memory, or whole graphs (`lgcn.GraphSet`); `dataset` the name of a data
    set or the path of an `.npz` file; `store` the folder of a graph store. `edges` and `nodes` are
    two tables; the rest says how to read them, see `lgcn.from_tables`. `graphs` is a set of whole
    graphs, see `lgcn.load_graphs`, or with `edges` and `nodes` the table of graphs, see
    `lgcn.graphs_from_tables`. `root` is the folder of a data set's files.
    """

    graph: Graph | GraphSet
    dataset: str | None
    store: str | Path | None
    graphs: Any
    graph_column: str
    fold: int
    root: str | Path | None
    edges: Any
    nodes: Any
    label_column: str | Sequence[str]
    label_separator: str
    id_column: str
    source_column: str
    target_column: str
    weight_column: str
    decimal: str
    date_order: str
    na_values: str | Sequence[str]
    directed: bool
    unknown_nodes: str
    delimiter: str
    encoding: str
    header: bool
    node_header: bool
    features: Any


class Labels(Enum):
    """Whether the labels of new tables are read."""

    REQUIRED = "required"
    IF_PRESENT = "if present"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Loaded:
    """A graph for a trained model.

    Attributes:
        graph: The graph with features as the model takes them.
        given: The graph before the model's own features were added.
        node_ids: Gives the ids of the nodes from `start` up to `stop`; `None` if they have none.
        graphs: The whole graphs, with features as the model takes them, if these are predicted.
            Each node of `graph` and `given` then stands for a graph, and has no edges.
        directed: Whether edges count one way only; `None` if that is not known.
        cells: How the cells of new tables are written, as options of `lgcn.from_tables`.
    """

    graph: Graph
    given: Graph
    node_ids: Callable[[int, int], Any] | None
    directed: bool | None = None
    cells: Mapping[str, Any] = field(default_factory=dict)
    graphs: GraphSet | None = None


class RunData:
    """Finds and loads the graph that a run works on.

    Args:
        run: The run folder.
        settings: The settings of the training.
        spec: What the model was built for.
    """

    def __init__(self, run: Run, settings: Settings, spec: ModelSpec) -> None:
        self.run = run
        self.settings = settings
        self.spec = spec

    def source(self, data: NewData, labels: Labels) -> GraphSource | None:
        """Where the graph comes from, checked; `None` if it is in memory."""
        if data.get("graph") is not None:
            others = [f"{name}=" for name in data if name != "graph"]
            if others:
                raise UsageError(f"give one of graph= and {others[0]}, not both")
            return None
        tables = {name: value for name, value in data.items() if name not in _NOT_TABLES}
        are_new = are_tables(data)
        root = data.get("root")
        own = GraphSource(self.settings.dataset, self.settings.dataset_options, root)
        given = choose_source(
            data.get("dataset"),
            store=data.get("store"),
            root=root,
            **(tables if are_new or "graphs" in tables else {}),
        )
        source = own if given is None else given
        if source.dataset == "graphs" and "path" not in source.options:
            raise UsageError(f"{self.run.folder} does not name its graphs; give graphs= or graph=")
        other_set = source.dataset == "graphs" and source.options["path"] != own.options.get("path")
        if (
            source.dataset == own.dataset and not other_set
        ):  # the other options of the training still hold
            options = {**own.options, **source.options}
            if are_new and "features" not in tables:
                options.pop("features", None)  # those are of other nodes
            source = replace(source, options=options)
        source = as_store(source)
        if source.dataset in ("tables", "graph_tables"):
            options = {**source.options, **({} if are_new else tables)}
            options = self._table_options(options, labels if are_new else None)
            source = replace(source, options=options)
        elif tables and source.dataset != "graphs":
            raise UsageError(f"{next(iter(tables))}= is for tables, and needs edges= and nodes=")
        try:
            source.check()
        except (DataError, UsageError) as error:
            if given is None and source.missing_path is not None:
                argument = _ARGUMENTS.get(source.dataset, "dataset=")
                error.args = (
                    f"{error}. {self.run.folder} was trained on it; if it has moved, "
                    f"give {argument}",
                )
            raise
        if source.is_partition:
            raise UsageError(
                f"{source.options['path']} is a graph in parts, which only lgcn predict, embed and "
                "evaluate read, and lgcn.inference.run_on_parts in Python. Give the graph store "
                "that it was cut from with store="
            )
        return source

    def load(self, data: NewData, source: GraphSource | None) -> Loaded:
        """The graph, which fits the model."""
        from lgcn.graph import GraphSet

        graph: Any
        if source is None:
            graph = data["graph"]
        elif source.dataset in ("tables", "graph_tables"):
            known: dict[str, Any] = {"encoder": self.run.encoder()}
            if self.spec.edge_channels:
                known["edge_encoder"] = self.run.edge_encoder()
            graph = source.load(**known, label_names=self.spec.label_names)
        else:
            graph = source.load()
        if isinstance(graph, GraphSet):
            return self._whole_graphs(graph)
        if self.spec.unit == "graph":
            raise UsageError(f"the model predicts whole graphs, and {graph.name} is one graph")
        given, graph = graph, self.spec.prepare(graph)
        self.spec.check(graph)
        if source is not None and source.dataset == "store":
            from lgcn.store.open_store import open_store

            store = open_store(source.options["path"], verify=False)  # loading verified it
            return Loaded(graph, given, store.node_ids, store.header["directed"])
        ids = graph.node_ids
        node_ids = None if ids is None else lambda start, stop: ids[start:stop]
        if source is None or source.dataset != "tables":
            return Loaded(graph, given, node_ids)
        cells = {key: source.options[key] for key in _CELLS if key in source.options}
        return Loaded(graph, given, node_ids, source.options.get("directed", False), cells)

    def _whole_graphs(self, given: GraphSet) -> Loaded:
        if self.spec.unit != "graph":
            raise UsageError(
                f"the model predicts nodes of one graph, got {given.num_graphs} whole graphs"
            )
        graphs = self.spec.prepare_graphs(given)
        self.spec.check_graphs(graphs)
        ids = graphs.targets.node_ids
        node_ids = None if ids is None else lambda start, stop: ids[start:stop]
        return Loaded(graphs.targets, given.targets, node_ids, graphs=graphs)

    def load_labels(self, data: NewData, source: GraphSource | None, *, needed: bool) -> Loaded:
        """The graph with its labels; without, if new tables have labels that cannot be read.

        Args:
            data, source: The data.
            needed: Whether labels that cannot be read are an error.
        """
        if needed or not are_tables(data):
            return self.load(data, source)
        try:
            return self.load(data, source)
        except DataError as error:
            loaded = self.load(data, self.source(data, Labels.IGNORED))
            warnings.warn(f"the predictions have no column of true labels: {error}", stacklevel=5)
            return loaded

    def split(self, graph: Graph, data: NewData, source: GraphSource | None) -> Split | None:
        """The split of the training, or that of another graph; new tables and sets have none."""
        if self.has_no_split(data, source):
            return None
        from lgcn.training.split_file import SPLITS, split_of

        split = self.run.split(graph.num_nodes) if self.is_own(data, source) else None
        if split is None:
            has_split = any(graph.mask(name) is not None for name in SPLITS)
            return split_of(graph) if has_split else None
        changed = _what_changed(graph, split, self.spec.unit)
        if changed is not None:
            warnings.warn(f"the predictions have no column of the split: {changed}", stacklevel=5)
            return None
        return split

    def check_unchanged(self, graph: Graph, data: NewData, source: GraphSource | None) -> None:
        """Raises UsageError if the graph of the training is not what it was.

        Its split would be another one, and scores of test nodes would be those of nodes that the
        model was trained on.
        """
        split = self.run.split(graph.num_nodes) if self.is_own(data, source) else None
        changed = None if split is None else _what_changed(graph, split, self.spec.unit)
        if changed is not None:
            raise UsageError(
                f"{changed}. Scores would mix {self.spec.unit}s that the model was trained on with "
                f"others. Train again, restore the data, or give new data with "
                f"{_ARGUMENTS.get(self.settings.dataset, 'dataset=')}"
            )

    def has_no_split(self, data: NewData, source: GraphSource | None) -> bool:
        """Whether the data are new tables or a new set of graphs, of which all are to be scored."""
        other_set = source is not None and source.dataset == "graphs"
        return are_tables(data) or (other_set and not self.is_own(data, source))

    def is_own(self, data: NewData, source: GraphSource | None) -> bool:
        """Whether the graph is that of the training."""
        if source is None or are_tables(data):
            return False
        own = as_store(GraphSource(self.settings.dataset, self.settings.dataset_options))
        if own.dataset == "graphs" and "path" not in own.options:  # they were in memory
            return False
        same = all(source.options.get(key) == value for key, value in own.options.items())
        return source.dataset == own.dataset and (own.dataset == "tables" or same)

    def _table_options(self, options: dict[str, Any], labels: Labels | None) -> dict[str, Any]:
        """The options with which tables are read for the model.

        Args:
            options: All that is known of the tables.
            labels: Whether to read labels of new tables; `None` for the tables of the training.
        """
        from lgcn.tables.early_checks import OF_FEATURES

        # Nodes of whole graphs may have no features of their own.
        has_features = self.settings.dataset != "graph_tables" or self.spec.given_features > 0
        if has_features and not self.run.has_encoder:
            raise UsageError(
                f"{self.run.folder} was not trained on tables, so it cannot read any. Give a graph "
                "with the same features: a data set or an .npz file by dataset=, or a store by "
                "store="
            )
        if "nodes" not in options:
            raise UsageError(f"{self.run.folder} does not name its tables; give edges= and nodes=")
        dropped = [*OF_FEATURES, "edge_columns"]  # the encoders know
        if labels is not None:
            dropped += _OF_TRAINING
        if labels is Labels.IF_PRESENT and not _has_labels(options):
            labels = Labels.IGNORED
        if labels is Labels.IGNORED:
            dropped += ["label_column", "label_separator", "task"]
        elif self.spec.task != "multilabel":  # a store's run does not name the task of tables
            options["task"] = self.spec.task
        return {key: value for key, value in options.items() if key not in dropped}


def are_tables(data: NewData) -> bool:
    """Whether the new data are tables."""
    return "edges" in data or "nodes" in data


def _what_changed(graph: Graph, stored: Split, unit: Unit) -> str | None:
    """How the graph differs from that of the training, as far as its split tells."""
    from lgcn.training.split_file import SPLITS, split_of

    before = len(stored["train"])
    if before != graph.num_nodes:
        return f"{graph.name} had {before} {unit}s in training, and has {graph.num_nodes} now"
    now = split_of(graph)
    if all(np.array_equal(now[name], stored[name]) for name in SPLITS):
        return None
    return (
        f"{graph.name} has changed since the training: its rows have another order, or "
        f"other {unit}s have labels"
    )


def _has_labels(options: Mapping[str, Any]) -> bool:
    """Whether the node table has the label columns."""
    from lgcn.tables.early_checks import text_format
    from lgcn.tables.open_table import open_table

    role = "graphs" if "graphs" in options else "nodes"
    columns = open_table(options[role], role, **text_format(options, "nodes")).columns
    wanted = options.get("label_column", [])
    return set([wanted] if isinstance(wanted, str) else wanted) <= set(columns)
