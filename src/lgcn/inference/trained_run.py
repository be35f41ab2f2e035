"""A trained run together with data: its own, or new data that the model has never seen.

The command line, the estimator and Python programs share it. `lgcn.inference.run_data` finds and
loads the data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

from lgcn.errors import CheckpointError, UsageError
from lgcn.inference.decision import Decision
from lgcn.inference.run_data import Labels, Loaded, NewData, RunData
from lgcn.training.run_folder import Run
from lgcn.utils.numbers import real_number
from lgcn.utils.sizes import parse_memory

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor
    from torch.nn import Module

    from lgcn.explain.explanation import Explanation
    from lgcn.graph import Graph, GraphSet
    from lgcn.inference.evaluation import Evaluation
    from lgcn.inference.explanations import RunExplainer
    from lgcn.inference.predictions import Written
    from lgcn.inference.truth import Truth
    from lgcn.tables.encoder import FeatureEncoder
    from lgcn.training.split_file import Split
    from lgcn.utils.progress import OnProgress


class ScoredGraph(NamedTuple):
    """A graph with the model's scores, and what is known of its nodes.

    Args:
        graph: The graph, with features as the model takes them.
        scores: The scores of every node before softmax or sigmoid; it may be a map of a file.
        node_ids: Gives the ids of the nodes from `start` up to `stop`; `None` if they have none.
        split: The masks of training, validation and test nodes; `None` if there is no split.
        is_own: Whether it is the graph of the training.
        graphs: The whole graphs, if these are predicted. Each node of `graph` then stands for one
            of them. (default: nodes are predicted)
    """

    graph: Graph
    scores: Tensor
    node_ids: Callable[[int, int], Any] | None
    split: Split | None
    is_own: bool
    graphs: GraphSet | None = None


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
        self._data = RunData(self._run, self.settings, self.spec)
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

    def decision(self, abstain_below: float | None = None) -> Decision:
        """How scores become predictions, read once.

        Args:
            abstain_below: See `predictions`. (default: none)
        """
        self._check_abstain(abstain_below)
        options = (self.temperature, self.threshold, self.interval, abstain_below)
        return Decision(self.spec, *options)

    def _check_abstain(self, abstain_below: float | None) -> None:
        if abstain_below is not None:
            real_number("abstain_below", abstain_below, 0, 1)
            if self.spec.task == "regression":
                raise UsageError("abstain_below is for classes, and the model predicts a number")

    def check_nodes(self, what: str) -> None:
        """Raises UsageError if the model predicts whole graphs, for which something is missing."""
        if self.spec.unit == "graph":
            raise UsageError(f"{what} are for models of nodes, and {self.folder} predicts graphs")

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
        return self._data.load(data, self._data.source(data, Labels.IF_PRESENT)).graph

    def check_data(self, **data: Unpack[NewData]) -> None:
        """Raises an error if `load` would, as far as can be told without reading data or torch.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        self._data.source(data, Labels.IF_PRESENT)

    def load(self, **data: Unpack[NewData]) -> tuple[Loaded, Truth]:
        """The graph with the ids of its nodes, and their true labels and splits.

        It is read once, for programs that answer many questions about one graph.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = self._data.source(data, Labels.IF_PRESENT)
        from lgcn.inference.truth import Truth

        loaded = self._data.load_labels(data, source, needed=False)
        return loaded, Truth.of(loaded.graph, self._data.split(loaded.graph, data, source))

    def scores(
        self,
        graph: Graph,
        *,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
    ) -> Tensor:
        """The scores of a graph whose features are as the model takes them, see `load`.

        Args:
            graph: The graph.
            memory, on_progress: See `predict`.
        """
        _check_memory(memory)
        return _scores(self.model(), graph, memory, on_progress)

    def predict(
        self,
        *,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> Tensor:
        """The scores of every node before softmax or sigmoid, [nodes, classes].

        For a regression, the predicted numbers, [nodes]. A model of whole graphs gives one row per
        graph.

        Args:
            memory: Memory that this may take, for example `"2GB"`: the graph is then computed
                layer by layer. (default: layer by layer only if it needs more than 2 GB)
            on_progress: Called after each block of rows, with `memory`. (default: none)
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        _check_memory(memory)
        source = self._data.source(data, Labels.IGNORED)
        model = self.model()
        scores = _scores_of(model, self._data.load(data, source), memory, on_progress)
        return self.spec.values(scores[:]) if self.spec.task == "regression" else scores

    def scored_graph(
        self,
        *,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Unpack[NewData],
    ) -> ScoredGraph:
        """The graph with its scores, ids and split, read once and computed once.

        Whole graphs are one row each, without edges.

        Args:
            memory, on_progress: See `predict`.
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        _check_memory(memory)
        source = self._data.source(data, Labels.IF_PRESENT)
        model = self.model()
        loaded = self._data.load_labels(data, source, needed=False)
        self._data.check_unchanged(loaded.graph, data, source)
        split = self._data.split(loaded.graph, data, source)
        scores = _scores_of(model, loaded, memory, on_progress)
        own = self._data.is_own(data, source)
        return ScoredGraph(loaded.graph, scores, loaded.node_ids, split, own, loaded.graphs)

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
        write_embeddings(
            found, path, node_ids=loaded.node_ids, on_progress=on_progress, unit=self.spec.unit
        )
        return found.shape[0], found.shape[1]

    def evaluate(self, **data: Unpack[NewData]) -> Evaluation:
        """The scores on training, validation and test nodes, in detail.

        All labelled nodes of new tables count as test nodes. On the graph of the training, the
        baselines of the training come along. A class that is never predicted is a warning.

        Args:
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = self._data.source(data, Labels.REQUIRED)
        from lgcn.inference.evaluation import evaluate_graph, evaluate_scored, scoring_of

        model = self.model()
        loaded = self._data.load(data, source)
        graph = loaded.graph
        self._data.check_unchanged(graph, data, source)
        if self._data.has_no_split(data, source):
            known = ~graph.unlabelled()
            graph = replace(graph, train_mask=None, val_mask=None, test_mask=known)
        stored = (self.metrics() or {}) if self._data.is_own(data, source) else {}
        baselines = stored.get("baselines")
        if loaded.graphs is not None:
            scored = [(graph, _scores_of(model, loaded, None, None))]
            return evaluate_scored(scored, graph.name, scoring_of(self), self.interval, baselines)
        return evaluate_graph(model, graph, scoring_of(self), self.interval, baselines)

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
        """Explains why the model predicts what it predicts for some nodes, or whole graphs.

        Args:
            ids: One id or several, as the user wrote them; numbers if nodes have no ids. Those of
                graphs if the model predicts whole graphs.
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

    def explainer(self, scored: ScoredGraph | None = None, **data: Unpack[NewData]) -> RunExplainer:
        """What `explain` uses, to explain nodes of one graph, or whole graphs, again and again.

        Args:
            scored: A graph that `scored_graph` gave, which is not read again. (default: none)
            **data: New data, see `NewData`. (default: the graph of the training)
        """
        source = None if scored is not None else self._data.source(data, Labels.IGNORED)
        from lgcn.inference.explanations import RunExplainer

        explained: Any
        if scored is None:
            loaded = self._data.load(data, source)
            explained, ids = loaded.graphs, loaded.node_ids
            if explained is None:
                explained = loaded.graph
        else:
            explained, ids = scored.graph, scored.node_ids
        return RunExplainer(
            self.model(),
            explained,
            ids,
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
        self._check_abstain(abstain_below)
        _check_memory(memory)
        labels = Labels.IF_PRESENT if unlabelled_only or truth else Labels.IGNORED
        source = self._data.source(data, labels)
        from lgcn.inference.truth import Truth

        model = self.model()
        loaded = self._data.load_labels(data, source, needed=unlabelled_only)
        known = None
        if truth:
            known = Truth.of(loaded.graph, self._data.split(loaded.graph, data, source))
        return self.decision(abstain_below).tables(
            _scores_of(model, loaded, memory, on_progress),
            node_ids=loaded.node_ids,
            nodes=loaded.graph.unlabelled() if unlabelled_only else None,
            truth=known,
            on_progress=on_progress,
        )

    def _embed(
        self, data: NewData, layer: int, memory: str | int, on_progress: OnProgress | None
    ) -> tuple[Tensor, Loaded]:
        _check_memory(memory)
        source = self._data.source(data, Labels.IGNORED)
        model = self.model()
        loaded = self._data.load(data, source)
        if loaded.graphs is not None:
            if layer != -1:
                raise UsageError(f"layer must be -1 for whole graphs, got {layer}")
            from lgcn.training.graph_scores import score_graphs

            return score_graphs(model, loaded.graphs, embed=True, on_progress=on_progress), loaded
        return embeddings(model, loaded.graph, layer, memory, on_progress), loaded


def embeddings(
    model: Any,
    graph: Graph,
    layer: int = -1,
    memory: str | int = "1GB",
    on_progress: OnProgress | None = None,
) -> Tensor:
    """The embedding of every node of a graph that a run has prepared, see `TrainedRun.embed`."""
    from lgcn.nn.layerwise import layerwise

    if hasattr(model, "embedding_part"):  # an ensemble; its best LGCN has the embeddings
        part = model.embedding_part
        model, graph = part.model, part.spec.prepare(graph)
    options: dict[str, Any] = {"layer": layer, "memory": memory, "on_progress": on_progress}
    return layerwise(model, graph, **options)


def _check_memory(memory: str | int | None) -> None:
    if memory is not None:
        parse_memory(memory)


def _scores_of(
    model: Module, loaded: Loaded, memory: str | int | None, on_progress: OnProgress | None
) -> Tensor:
    """The scores of the nodes, or of whole graphs if these are predicted."""
    if loaded.graphs is None:
        return _scores(model, loaded.graph, memory, on_progress)
    from lgcn.training.graph_scores import score_graphs

    return score_graphs(model, loaded.graphs, on_progress=on_progress)


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
