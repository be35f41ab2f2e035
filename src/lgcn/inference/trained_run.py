"""A trained run together with data: its own, or new data that the model has never seen.

The command line, the estimator and Python programs share it. Everything that can be checked without
torch is checked before torch is imported, so that a mistake is reported at once.
"""

from __future__ import annotations

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

    from lgcn.graph import Graph
    from lgcn.inference.predictions import Written
    from lgcn.tables.encoder import FeatureEncoder
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
    directed: bool
    unknown_nodes: str
    delimiter: str
    encoding: str


class Labels(Enum):
    """Whether the labels of new tables are read."""

    REQUIRED = "required"
    IF_PRESENT = "if present"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Evaluation:
    """The scores of a model on a graph.

    Args:
        graph: Name of the graph.
        metric: Name of the score.
        splits: For each split with labelled nodes: `nodes`, `score`, `loss` and more.
    """

    graph: str
    metric: str
    splits: dict[str, dict[str, Any]]


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
        unlabelled_only: bool = False,
        abstain_below: float | None = None,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> pa.Table:
        """The predictions as a table, see `lgcn.inference.predictions.predictions`.

        Args:
            unlabelled_only: Only nodes that have no label. (default: `False`)
            abstain_below: Confidence, from 0 to 1, below which nothing is predicted.
                (default: none)
            memory, on_progress: See `predict`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        import pyarrow as pa

        blocks = self._blocks(data, unlabelled_only, abstain_below, memory, on_progress)
        return pa.concat_tables(blocks)

    def write_predictions(
        self,
        path: str | Path,
        *,
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
            unlabelled_only, abstain_below: See `predictions`.
            memory, on_progress: See `predict`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        from lgcn.inference.predictions import predictions_format, write_predictions

        predictions_format(path)
        blocks = self._blocks(data, unlabelled_only, abstain_below, memory, on_progress)
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
        """The scores on training, validation and test nodes.

        All labelled nodes of new tables count as test nodes.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = self._source(data, Labels.REQUIRED)
        from lgcn.graph import SPLITS
        from lgcn.training.evaluation import evaluate
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
        scores = evaluate(model, graph.separate(), SPLITS, scoring)
        if not scores:
            raise UsageError(f"{graph.name} has no labelled nodes to score")
        return Evaluation(graph.name, scoring.metric, scores)

    def _blocks(
        self,
        data: NewData,
        unlabelled_only: bool,
        abstain_below: float | None,
        memory: str | int | None,
        on_progress: OnProgress | None,
    ) -> Iterator[pa.Table]:
        """The table of predictions in pieces; all checks are made before this returns."""
        if abstain_below is not None:
            real_number("abstain_below", abstain_below, 0, 1)
        _check_memory(memory)
        source = self._source(data, Labels.IF_PRESENT if unlabelled_only else Labels.IGNORED)
        from lgcn.inference.predictions import prediction_blocks

        model = self.model()
        loaded = self._load(data, source)
        temperature = self.temperature
        return prediction_blocks(
            _scores(model, loaded.graph, memory, on_progress),
            self.class_names,
            node_ids=loaded.node_ids,
            nodes=loaded.graph.unlabelled() if unlabelled_only else None,
            on_progress=on_progress,
            multi_label=self.spec.multi_label,
            temperature=temperature,
            abstain_below=abstain_below,
        )

    def _embed(
        self, data: NewData, layer: int, memory: str | int, on_progress: OnProgress | None
    ) -> tuple[Tensor, _Loaded]:
        _check_memory(memory)
        source = self._source(data, Labels.IGNORED)
        from lgcn.nn.layerwise import layerwise

        model = self.model()
        loaded = self._load(data, source)
        options: dict[str, Any] = {"layer": layer, "memory": memory, "on_progress": on_progress}
        return layerwise(model, loaded.graph, **options), loaded

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
            source = replace(source, options={**own.options, **source.options})
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
    from lgcn.tables.open_table import open_table

    format_ = {key: options[key] for key in ("delimiter", "encoding") if key in options}
    columns = open_table(options["nodes"], "nodes", **format_).columns
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
    return layerwise(model, graph, memory=memory, on_progress=on_progress)
