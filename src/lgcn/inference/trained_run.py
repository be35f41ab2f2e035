"""A trained run together with data: its own, or new data that the model has never seen.

The command line, the estimator and Python programs share it. Everything that can be checked without
torch is checked before torch is imported, so that a mistake is reported at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from lgcn.datasets.graph_source import GraphSource, as_store, choose_source
from lgcn.errors import CheckpointError, DataError, UsageError
from lgcn.training.run_folder import Run
from lgcn.utils.numbers import real_number
from lgcn.utils.sizes import parse_memory

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor
    from torch.nn import Module

    from lgcn.explain.explanation import Explanation
    from lgcn.graph import Graph
    from lgcn.inference.evaluation import Evaluation
    from lgcn.inference.explanations import RunExplainer
    from lgcn.inference.predictions import Written
    from lgcn.tables.encoder import FeatureEncoder
    from lgcn.training.split_file import Split
    from lgcn.utils.progress import OnProgress

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
# Data that are not a user's tables.
_NOT_TABLES = ("graph", "dataset", "store", "root")


class NewData(TypedDict, total=False):
    """The graph to work on, one of several ways; without any, the one of the training.

    `graph` is a graph in memory, `dataset` the name of a data set or the path of an `.npz`
    file, `store` the folder of a graph store. `edges` and `nodes` are two tables; the rest
    says how to read them, see `lgcn.from_tables`. `root` is the folder of a data set's
    files.
    """

    graph: Graph
    dataset: str | None
    store: str | Path | None
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
class _Loaded:
    """A graph, and the function that gives the ids of a range of its nodes, if they have ids."""

    graph: Graph
    node_ids: Callable[[int, int], Any] | None


def load_run(folder: str | Path) -> TrainedRun:
    """Opens a folder that `lgcn train` or `lgcn.LGCNClassifier.save` wrote.

    ```python
    run = lgcn.load_run("runs/mine")
    run.predictions()  # of the graph it was trained on
    run.predictions(edges="new_edges.csv", nodes="new_nodes.csv")  # of new tables
    ```

    Args:
        folder: The run folder.
    """
    return TrainedRun(folder)


class TrainedRun:
    """A finished run, to be used on the graph of its training or on new data.

    Most methods take the data as keyword arguments, see `NewData`. Without any, they work on
    the graph that the model was trained on.

    Args:
        folder: The run folder.

    Attributes:
        folder: The run folder.
        settings: The settings of the training.
        spec: What the model was built for: features, classes and their names.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._run = Run(folder)
        self.settings, self.spec = self._run.read_finished()
        self._model: Module | None = None

    def __repr__(self) -> str:
        return f"TrainedRun({str(self.folder)!r})"

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes or labels; their numbers if they have no names."""
        return self.spec.class_names

    @property
    def temperature(self) -> float:
        """The softmax temperature that calibrates the probabilities."""
        return self._run.temperature()

    @property
    def threshold(self) -> float | None:
        """The probability from which on the second of two classes is predicted.

        `None` if there are not two classes.
        """
        return self._run.threshold()

    @property
    def interval(self) -> tuple[float, float | None] | None:
        """For a regression, the level of the interval around predictions and half its width.

        The width is `None` if there were too few validation nodes to find it.
        """
        return self._run.interval() if self.spec.task == "regression" else None

    def result(self) -> dict[str, Any]:
        """What the training measured: scores, epochs, calibration, history."""
        return self._run.result()

    def metrics(self) -> dict[str, Any] | None:
        """How good the model was after the training, beside the baselines.

        See `lgcn.training.run_metrics.run_metrics`. `None` for runs of earlier versions.
        """
        return self._run.metrics()

    def encoder(self) -> FeatureEncoder | None:
        """How the user's columns become features; `None` if the features came as numbers."""
        return self._run.encoder()

    def read_json(self, name: str) -> Any:
        """The content of another JSON file in the run folder, unchecked."""
        return self._run.read_json(name)

    def model(self) -> Module:
        """The trained model, in evaluation mode. It is read once."""
        if self._model is None:
            model, settings, spec = self._run.load_model()
            if (settings, spec) != (self.settings, self.spec):
                raise CheckpointError(
                    f"the run in {self.folder} was replaced while it was read. Try again"
                )
            self._model = model
        return self._model

    def graph(self, **data: Unpack[NewData]) -> Graph:
        """The graph, with features as the model takes them, and labels if there are any.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        return self._load(data, self._source(data, Labels.IF_PRESENT)).graph

    def predict(
        self,
        *,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> Tensor:
        """The scores of every node before softmax or sigmoid, [nodes, classes].

        For a regression, the predicted numbers, [nodes].

        Args:
            memory: Memory that this may take, for example `"2GB"`: the graph is then computed
                layer by layer. (default: layer by layer only if it needs more than 2 GB)
            on_progress: Called after each block of rows, with `memory`. (default: none)
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        _check_memory(memory)
        source = self._source(data, Labels.IGNORED)
        model = self.model()
        scores = _scores(model, self._load(data, source).graph, memory, on_progress)
        return self.spec.values(scores[:]) if self.spec.task == "regression" else scores

    def predictions(
        self,
        *,
        truth: bool = True,
        unlabelled_only: bool = False,
        abstain_below: float | None = None,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> pa.Table:
        """The predictions as a table, see `lgcn.inference.predictions.predictions`.

        The table of a regression is that of `lgcn.inference.predictions.predicted_values`.

        Args:
            truth: Add the columns `true` and `split`, as far as they are known: new tables
                have no split. (default: `True`)
            unlabelled_only: Only nodes that have no label. (default: `False`)
            abstain_below: Confidence, from 0 to 1, below which nothing is predicted.
                (default: none)
            memory, on_progress: See `predict`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        import pyarrow as pa

        chosen = (truth, unlabelled_only, abstain_below)
        return pa.concat_tables(self._blocks(data, *chosen, memory, on_progress))

    def write_predictions(
        self,
        path: str | Path,
        *,
        truth: bool = True,
        unlabelled_only: bool = False,
        abstain_below: float | None = None,
        spreadsheet_safe: bool = True,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> Written:
        """Writes the table of `predictions` to a file, block by block.

        Args:
            path, spreadsheet_safe: See `lgcn.inference.predictions.write_predictions`.
            truth, unlabelled_only, abstain_below: See `predictions`.
            memory, on_progress: See `predict`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        from lgcn.inference.predictions import predictions_format, write_predictions

        predictions_format(path)
        chosen = (truth, unlabelled_only, abstain_below)
        blocks = self._blocks(data, *chosen, memory, on_progress)
        return write_predictions(blocks, path, spreadsheet_safe=spreadsheet_safe)

    def embed(
        self,
        *,
        layer: int = -1,
        memory: str | int = "1GB",
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> Tensor:
        """The embedding of every node, [nodes, width]; it may be a map of a file.

        Args:
            layer: 0 is the embedding layer, 1 the first LGCL, and so on; -1 is the last, which is
                what the classifier sees. (default: -1)
            memory: Memory that this may take. (default: `"1GB"`)
            on_progress: Called after each block of rows. (default: none)
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        return self._embed(data, layer, memory, on_progress)[0]

    def write_embeddings(
        self,
        path: str | Path,
        *,
        layer: int = -1,
        memory: str | int = "1GB",
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> tuple[int, int]:
        """Writes the embeddings to a file; gives the number of nodes and their width.

        Args:
            path: See `lgcn.inference.embeddings.write_embeddings`.
            layer, memory, on_progress: See `embed`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        from lgcn.inference.embeddings import embeddings_format, write_embeddings

        embeddings_format(path)
        found, loaded = self._embed(data, layer, memory, on_progress)
        write_embeddings(found, path, node_ids=loaded.node_ids, on_progress=on_progress)
        return found.shape[0], found.shape[1]

    def evaluate(self, **data: Unpack[NewData]) -> Evaluation:
        """The scores on training, validation and test nodes, in detail.

        All labelled nodes of new tables count as test nodes. On the graph of the training, the
        baselines of the training come along. A class that is never predicted is a warning.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = self._source(data, Labels.REQUIRED)
        from lgcn.inference.evaluation import evaluate_graph
        from lgcn.training.scoring import Scoring

        model = self.model()
        graph = self._load(data, source).graph
        if _are_tables(data):
            known = ~graph.unlabelled()
            graph = replace(graph, train_mask=None, val_mask=None, test_mask=known)
        scoring = replace(
            Scoring.of(self.settings, self.spec),
            threshold=self.threshold,
            temperature=self.temperature,
        )
        stored = (self.metrics() or {}) if self._is_own(data, source) else {}
        return evaluate_graph(model, graph, scoring, self.interval, stored.get("baselines"))

    def explain(
        self,
        ids: Any,
        /,
        *,
        target: Any = None,
        against: Any = None,
        counterfactual: bool = False,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> list[Explanation]:
        """Explains why the model predicts what it predicts for some nodes.

        Args:
            ids: One id or several, as the user wrote them; numbers if nodes have no ids.
            target: The class or label to explain. (default: the predicted one; if a node can have
                several labels, the likeliest)
            against: The class to compare with, for "why this and not that".
                (default: all other classes)
            counterfactual: Also find what would change the prediction. (default: `False`)
            on_progress: Called after each node. (default: none)
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        return self.explainer(**data).explain(
            ids,
            target=target,
            against=against,
            counterfactual=counterfactual,
            on_progress=on_progress,
        )

    def explainer(self, **data: Unpack[NewData]) -> RunExplainer:
        """What `explain` uses, to explain nodes of one graph again and again.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = self._source(data, Labels.IGNORED)
        from lgcn.inference.explanations import RunExplainer

        loaded = self._load(data, source)
        return RunExplainer(
            self.model(),
            loaded.graph,
            loaded.node_ids,
            spec=self.spec,
            encoder=self.encoder(),
            temperature=self.temperature,
            threshold=self.threshold,
        )

    def _blocks(
        self,
        data: NewData,
        truth: bool,
        unlabelled_only: bool,
        abstain_below: float | None,
        memory: str | int | None,
        on_progress: OnProgress | None,
    ) -> Iterator[pa.Table]:
        """The table of predictions in pieces; all checks are made before this returns."""
        if abstain_below is not None:
            real_number("abstain_below", abstain_below, 0, 1)
            if self.spec.task == "regression":
                raise UsageError("abstain_below is for classes, and the model predicts a number")
        _check_memory(memory)
        labels = Labels.IF_PRESENT if unlabelled_only or truth else Labels.IGNORED
        source = self._source(data, labels)
        from lgcn.inference.predictions import prediction_blocks
        from lgcn.inference.truth import Truth

        model = self.model()
        loaded = self._load_labels(data, source, needed=unlabelled_only)
        known = None
        if truth:
            known = Truth.of(loaded.graph, self._split(loaded.graph, data, source))
        options: dict[str, Any]
        if self.spec.task == "regression":
            assert self.interval is not None
            options = {"half_width": self.interval[1], "values": self.spec.values}
        else:
            options = {
                "multi_label": self.spec.multi_label,
                "temperature": self.temperature,
                "threshold": self.threshold,
                "abstain_below": abstain_below,
            }
        return prediction_blocks(
            _scores(model, loaded.graph, memory, on_progress),
            None if self.spec.task == "regression" else self.class_names,
            node_ids=loaded.node_ids,
            nodes=loaded.graph.unlabelled() if unlabelled_only else None,
            truth=known,
            on_progress=on_progress,
            **options,
        )

    def _load_labels(self, data: NewData, source: GraphSource | None, *, needed: bool) -> _Loaded:
        """The graph with its labels; without, if new tables have labels that cannot be read.

        Args:
            data, source: The data.
            needed: Whether labels that cannot be read are an error.
        """
        if needed or not _are_tables(data):
            return self._load(data, source)
        try:
            return self._load(data, source)
        except DataError as error:
            loaded = self._load(data, self._source(data, Labels.IGNORED))
            warnings.warn(f"the predictions have no column of true labels: {error}", stacklevel=5)
            return loaded

    def _split(self, graph: Graph, data: NewData, source: GraphSource | None) -> Split | None:
        """The split of the training, or that of another graph; new tables have none."""
        if _are_tables(data):
            return None
        from lgcn.training.split_file import SPLITS, split_of

        split = self._run.split(graph.num_nodes) if self._is_own(data, source) else None
        if split is None:
            has_split = any(graph.mask(name) is not None for name in SPLITS)
            return split_of(graph) if has_split else None
        if len(split["train"]) != graph.num_nodes:
            warnings.warn(
                f"the predictions have no column of the split: {graph.name} had "
                f"{len(split['train'])} nodes in training, and has {graph.num_nodes} now",
                stacklevel=5,
            )
            return None
        return split

    def _is_own(self, data: NewData, source: GraphSource | None) -> bool:
        """Whether the graph is that of the training."""
        if source is None or _are_tables(data):
            return False
        own = as_store(GraphSource(self.settings.dataset, self.settings.dataset_options))
        same = all(source.options.get(key) == value for key, value in own.options.items())
        return source.dataset == own.dataset and (own.dataset == "tables" or same)

    def _embed(
        self, data: NewData, layer: int, memory: str | int, on_progress: OnProgress | None
    ) -> tuple[Tensor, _Loaded]:
        _check_memory(memory)
        source = self._source(data, Labels.IGNORED)
        from lgcn.nn.layerwise import layerwise

        model: Any = self.model()
        loaded = self._load(data, source)
        graph = loaded.graph
        if hasattr(model, "embedding_part"):  # an ensemble; its best LGCN has the embeddings
            part = model.embedding_part
            model, graph = part.model, part.spec.prepare(graph)
        options: dict[str, Any] = {"layer": layer, "memory": memory, "on_progress": on_progress}
        return layerwise(model, graph, **options), loaded

    def _source(self, data: NewData, labels: Labels) -> GraphSource | None:
        """Where the graph comes from, checked; `None` if it is in memory."""
        if data.get("graph") is not None:
            others = [f"{name}=" for name in data if name != "graph"]
            if others:
                raise UsageError(f"give one of graph= and {others[0]}, not both")
            return None
        tables = {name: value for name, value in data.items() if name not in _NOT_TABLES}
        are_new = _are_tables(data)
        root = data.get("root")
        own = GraphSource(self.settings.dataset, self.settings.dataset_options, root)
        given = choose_source(
            data.get("dataset"),
            store=data.get("store"),
            root=root,
            **(tables if are_new else {}),
        )
        source = own if given is None else given
        if source.dataset == own.dataset:  # the other options of the training still hold
            options = {**own.options, **source.options}
            if are_new and "features" not in tables:
                options.pop("features", None)  # those are of other nodes
            source = replace(source, options=options)
        source = as_store(source)
        if source.dataset == "tables":
            options = {**source.options, **({} if are_new else tables)}
            options = self._table_options(options, labels if are_new else None)
            source = replace(source, options=options)
        elif tables:
            raise UsageError(f"{next(iter(tables))}= is for tables, and needs edges= and nodes=")
        try:
            source.check()
        except (DataError, UsageError) as error:
            if given is None and source.missing_path is not None:
                arguments = {"tables": "edges= and nodes=", "store": "store="}
                argument = arguments.get(source.dataset, "dataset=")
                error.args = (
                    f"{error}. {self.folder} was trained on it; if it has moved, give {argument}",
                )
            raise
        return source

    def _table_options(self, options: dict[str, Any], labels: Labels | None) -> dict[str, Any]:
        """The options with which tables are read for the model.

        Args:
            options: All that is known of the tables.
            labels: Whether to read labels of new tables; `None` for the tables of the training.
        """
        from lgcn.tables.early_checks import OF_FEATURES

        if not self._run.has_encoder:
            raise UsageError(
                f"{self.folder} was not trained on tables, so it cannot read any. Give a graph "
                "with the same features: a data set or an .npz file by dataset=, or a store by "
                "store="
            )
        if "nodes" not in options:
            raise UsageError(f"{self.folder} does not name its tables; give edges= and nodes=")
        dropped = list(OF_FEATURES)  # the encoder knows
        if labels is not None:
            dropped += _OF_TRAINING
        if labels is Labels.IF_PRESENT and not _has_labels(options):
            labels = Labels.IGNORED
        if labels is Labels.IGNORED:
            dropped += ["label_column", "label_separator", "task"]
        elif self.spec.task != "multilabel":  # a store's run does not name the task of tables
            options["task"] = self.spec.task
        return {key: value for key, value in options.items() if key not in dropped}

    def _load(self, data: NewData, source: GraphSource | None) -> _Loaded:
        """The graph, which fits the model."""
        if source is None:
            graph = data["graph"]
        elif source.dataset == "tables":
            graph = source.load(encoder=self.encoder(), label_names=self.spec.label_names)
        else:
            graph = source.load()
        graph = self.spec.prepare(graph)
        self.spec.check(graph)
        if source is not None and source.dataset == "store":
            from lgcn.store.open_store import open_store

            store = open_store(source.options["path"], verify=False)  # loading verified it
            return _Loaded(graph, store.node_ids)
        ids = graph.node_ids
        return _Loaded(graph, None if ids is None else lambda start, stop: ids[start:stop])


def _are_tables(data: NewData) -> bool:
    """Whether the new data are tables."""
    return "edges" in data or "nodes" in data


def _has_labels(options: Mapping[str, Any]) -> bool:
    """Whether the node table has the label columns."""
    from lgcn.tables.early_checks import text_format
    from lgcn.tables.open_table import open_table

    columns = open_table(options["nodes"], "nodes", **text_format(options, "nodes")).columns
    wanted = options.get("label_column", [])
    return set([wanted] if isinstance(wanted, str) else wanted) <= set(columns)


def _check_memory(memory: str | int | None) -> None:
    if memory is not None:
        parse_memory(memory)


def _scores(
    model: Module, graph: Graph, memory: str | int | None, on_progress: OnProgress | None
) -> Tensor:
    from lgcn.inference import predict
    from lgcn.nn.layerwise import layerwise

    if memory is None:
        return predict(model, graph)
    of_graph: Any = getattr(model, "of_graph", None)
    if of_graph is not None:  # an ensemble
        scores: Tensor = of_graph(graph, memory=memory, on_progress=on_progress)
        return scores
    return layerwise(model, graph, memory=memory, on_progress=on_progress)
