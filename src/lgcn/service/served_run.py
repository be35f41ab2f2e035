"""A trained run that answers requests: everything is read once, and the graph is predicted once."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch

from lgcn.errors import LGCNError
from lgcn.explain.explainer import NodeExplainer
from lgcn.graph import Graph
from lgcn.graph.structural import is_symmetric
from lgcn.inference.trained_run import TrainedRun
from lgcn.nn.whole_graph import predict
from lgcn.service import new_nodes
from lgcn.service.field import hops, reached
from lgcn.service.known_nodes import KnownNodes
from lgcn.service.limits import Limits
from lgcn.service.new_nodes import NewNodes
from lgcn.service.problems import RequestError
from lgcn.tables.cell_options import CellOptions

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.inference.truth import Truth
    from lgcn.service.schemas import PredictRequest
    from lgcn.tables.encoder import FeatureEncoder
    from lgcn.utils.progress import OnProgress

# Requests share a forward pass up to this many nodes; more of them do not fit into the caches.
FORWARD_NODES = 8192
PROBABILITY = "probability_"  # how the columns of probabilities start


@dataclass(frozen=True)
class Answer:
    """The predictions of a request.

    Args:
        rows: One per node: first the known nodes, then the new ones, each in its order.
        notes: What the user should know about new nodes.
    """

    rows: list[dict[str, Any]]
    notes: tuple[str, ...] = ()


class ServedRun:
    """A trained run with its graph, ready to answer.

    Args:
        run: The run.
        limits: What a request may ask for. (default: see `Limits`)
        name: The name of the model. (default: that of the run folder)
        memory, on_progress: For the predictions of the graph, see
            `lgcn.inference.TrainedRun.predict`.
        **data: The graph, see `lgcn.inference.run_data.NewData`. (default: that of the training)
    """

    def __init__(
        self,
        run: TrainedRun,
        limits: Limits | None = None,
        *,
        name: str | None = None,
        memory: str | int | None = None,
        on_progress: OnProgress | None = None,
        **data: Any,
    ) -> None:
        run.check_nodes("the service's answers")
        self.run = run
        self.data = {key: value for key, value in data.items() if value is not None}
        self.memory = memory
        self.limits = Limits() if limits is None else limits
        self.name = name or model_name(run.folder)
        self.decision = run.decision()
        self.model = run.model()
        self.result = run.result()
        self.metrics = run.metrics()
        self.loaded, self._truth = run.load(**data)
        self.known = KnownNodes(self.graph.num_nodes, self.loaded.node_ids)
        self._scores = run.scores(self.graph, memory=memory, on_progress=on_progress)
        self.encoder = self._encoder()
        self.hops = None if run.spec.structure is not None else hops(self.model)
        self.directed = self.loaded.directed
        self.refusal = self._refusal()  # why new nodes cannot be predicted, if they cannot
        if self.refusal is None and self.directed is None:
            self.directed = not is_symmetric(self.graph)

    @property
    def graph(self) -> Graph:
        """The graph with features as the model takes them."""
        return self.loaded.graph

    @property
    def task(self) -> str:
        """What is predicted, see `lgcn.Graph.task`."""
        return self.run.spec.task

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes or labels; none for a regression."""
        return self.run.spec.class_names

    def _encoder(self) -> FeatureEncoder | None:
        found = self.run.encoder() or self.loaded.given.encoder
        return None if found is None else found.read_as(CellOptions(**self.loaded.cells))

    def _refusal(self) -> str | None:
        """Why new nodes cannot be predicted, if they cannot."""
        specs = [self.run.spec, *(part.spec for part in getattr(self.model, "parts", ()))]
        if any(spec.structure is not None and spec.structure.positions != "none" for spec in specs):
            return (
                "the model uses positions, which exist only in the graph of its training. Train "
                "with positions=none to predict new nodes"
            )
        if self.run.spec.edge_channels:
            return (
                "the model reads edge features, which a request cannot have. Train with "
                "edge_features=none to predict new nodes"
            )
        if getattr(self.model, "directions", "in") == "both":
            return (
                "the model reads edges in both directions, and the service follows one. Train with "
                "directions=in to predict new nodes"
            )
        if self.encoder is not None and any(c.kind == "long" for c in self.encoder.columns):
            return (
                "the model was trained with a table of features beside the node table, which a "
                "request cannot have"
            )
        if self.loaded.given.num_graphs > 1:
            return "the graph consists of separate graphs, and it is open which of them to extend"
        whole = self.hops is None
        if whole and self.graph.num_nodes > self.limits.max_neighbours:
            return (
                "the model needs the whole graph for each new node, and it has "
                f"{self.graph.num_nodes} nodes, more than max_neighbours "
                f"({self.limits.max_neighbours})"
            )
        return None

    @functools.cached_property
    def explainer(self) -> NodeExplainer:
        """Explains nodes of the graph by their numbers."""
        from lgcn.explain.columns import Columns

        spec = self.run.spec
        return NodeExplainer(
            self.model,
            self.graph,
            spec=spec,
            columns=Columns.of(spec.num_features, self.encoder, spec.structure),
            node_id=lambda number: self.known.ids([number])[0].as_py(),
            temperature=self.decision.temperature,
            threshold=self.decision.threshold,
        )

    def predict(self, requests: Sequence[PredictRequest]) -> list[Answer | RequestError]:
        """Answers several requests with one look-up and one forward pass.

        Args:
            requests: The requests. Each is answered as if it came alone.
        """
        errors: dict[int, RequestError] = {}
        known: list[Any] = []
        new: list[NewNodes | None] = []
        for at, request in enumerate(requests):
            found: tuple[Any, NewNodes | None] = (np.empty(0, np.int64), None)
            try:
                self._check_sizes(request)
                found = (self.known.find(request.nodes, "nodes"), self._read_new(request))
            except RequestError as error:
                errors[at] = error
            known.append(found[0])
            new.append(found[1])
        known_rows, new_rows = self._known_rows(known), self._new_rows(new, errors)
        return [
            errors[at]
            if at in errors
            else Answer(known_rows[at] + new_rows[at], () if part is None else part.notes)
            for at, part in enumerate(new)
        ]

    def _check_sizes(self, request: PredictRequest) -> None:
        count = len(request.nodes) + len(request.new_nodes)
        if count > self.limits.max_nodes:
            raise RequestError(
                f"a request may have at most {self.limits.max_nodes} nodes, got {count}",
                "nodes" if len(request.nodes) >= len(request.new_nodes) else "new_nodes",
                413,
            )
        if len(request.edges) > self.limits.max_edges:
            raise RequestError(
                f"a request may have at most {self.limits.max_edges} edges, got "
                f"{len(request.edges)}",
                "edges",
                413,
            )
        if count == 0:
            raise RequestError("name at least one node, in nodes or in new_nodes", "nodes")
        if request.edges and not request.new_nodes:
            raise RequestError("edges belong to new_nodes, and there are none", "edges")
        if request.new_nodes and self.refusal is not None:
            raise RequestError(f"new nodes cannot be predicted: {self.refusal}", "new_nodes")

    def _read_new(self, request: PredictRequest) -> NewNodes | None:
        if not request.new_nodes:
            return None
        ids = [node.id for node in request.new_nodes]
        given = self.loaded.given
        row, col, weight = new_nodes.read_edges(
            request.edges,
            ids,
            self.known,
            directed=bool(self.directed),
            weighted=given.edge_weight is not None,
        )
        notes: tuple[str, ...] = ()
        if self.encoder is None:
            x = new_nodes.read_features(request.new_nodes, given.num_features, given.x)
        else:
            x, notes = new_nodes.read_columns(request.new_nodes, self.encoder)
            x = None if given.x is None else x
        return NewNodes(tuple(ids), x, row, col, weight, notes)

    def _known_rows(self, numbers: list[Any]) -> list[list[dict[str, Any]]]:
        every = np.concatenate(numbers)
        if not len(every):
            return [[] for _ in numbers]
        ids = self.known.ids(every)
        rows = self._rows(self._scores[torch.from_numpy(every)], ids, self._truth.take(every))
        ends = np.cumsum([0, *map(len, numbers)]).tolist()
        return [rows[start:stop] for start, stop in itertools.pairwise(ends)]

    def _new_rows(
        self, requests: list[NewNodes | None], errors: dict[int, RequestError]
    ) -> list[list[dict[str, Any]]]:
        parts: dict[int, Graph] = {}
        found: dict[int, list[dict[str, Any]]] = {}
        for at, new in enumerate(requests):
            if new is None:
                continue
            try:
                part = self._part(new)
            except RequestError as error:
                errors[at] = error
                continue
            if self.hops is None:  # its features depend on the whole graph
                found[at] = self._rows_of_new(self.run.spec.prepare(part), [new])
                continue
            together = sum(one.num_nodes for one in parts.values()) + part.num_nodes
            if parts and together > FORWARD_NODES:
                found |= self._forward(parts, requests)
                parts = {}
            parts[at] = part
        found |= self._forward(parts, requests)
        return [found.get(at, []) for at in range(len(requests))]

    def _part(self, new: NewNodes) -> Graph:
        """The part of the extended graph that new nodes depend on."""
        given = self.loaded.given
        if self.hops is None:
            return new_nodes.extend(given, new)
        start = np.unique(new.col[(new.row >= given.num_nodes) & (new.col < given.num_nodes)])
        start = start if self.hops > 0 else start[:0]
        most = self.limits.max_neighbours
        nodes = reached(given, start, self.hops - 1, most) if len(start) <= most else None
        if nodes is None:
            raise RequestError(
                f"the predictions depend on more than {most} nodes, all within {self.hops} edges "
                "of the new nodes; the service takes no more (--max-neighbours)",
                "edges",
                413,
            )
        return new_nodes.extend(given, new, nodes)

    def _forward(
        self, parts: dict[int, Graph], requests: list[NewNodes | None]
    ) -> dict[int, list[dict[str, Any]]]:
        if not parts:
            return {}
        batch = [new for at, new in enumerate(requests) if at in parts and new is not None]
        together = replace(Graph.concat(list(parts.values())), ptr=None)
        rows = iter(self._rows_of_new(together, batch, [p.num_nodes for p in parts.values()]))
        return {at: [next(rows) for _ in new.ids] for at, new in zip(parts, batch, strict=True)}

    def _rows_of_new(
        self, graph: Graph, batch: list[NewNodes], sizes: list[int] | None = None
    ) -> list[dict[str, Any]]:
        """The rows of new nodes, which are the last ones of each part of the graph."""
        ends = np.cumsum([graph.num_nodes] if sizes is None else sizes)
        numbers = [np.arange(e - len(n.ids), e) for e, n in zip(ends, batch, strict=True)]
        scores = predict(self.model, graph)[torch.from_numpy(np.concatenate(numbers))]
        rows = self._rows(scores, pa.nulls(len(scores), pa.string()), None)
        for row, one in zip(rows, (one for new in batch for one in new.ids), strict=True):
            row["node"] = one
        return rows

    def _rows(self, scores: Tensor, ids: Any, truth: Truth | None) -> list[dict[str, Any]]:
        """The rows of the table of predictions, with the probabilities in one object."""
        pieces = self.decision.tables(
            scores, node_ids=lambda start, stop: ids[start:stop], truth=truth
        )
        table = pa.concat_tables(pieces)
        names = [name for name in table.column_names if name.startswith(PROBABILITY)]
        plain: list[dict[str, Any]] = table.drop_columns(names).to_pylist()
        if not names:
            return plain
        chances = zip(*(table[name].to_pylist() for name in names), strict=True)
        classes = [name.removeprefix(PROBABILITY) for name in names]
        for row, values in zip(plain, chances, strict=True):
            row["probabilities"] = dict(zip(classes, values, strict=True))
        return plain

    def warm_up(self) -> None:
        """Computes one answer of each kind, so that no request waits for compiled kernels."""
        from lgcn.service.explanations import explain
        from lgcn.service.schemas import ExplainRequest, NewNode, PredictRequest

        if not self.graph.num_nodes:
            return
        first = self.known.examples[0]
        features = None if self.encoder else [0.0] * self.loaded.given.num_features
        nodes = [NewNode(id="new node", features=features)]
        requests = [PredictRequest(nodes=[first])]
        if self.refusal is None:
            requests.append(PredictRequest(new_nodes=nodes))
        for answer in self.predict(requests):
            if isinstance(answer, RequestError):
                raise LGCNError(f"the run cannot be served: {answer.message}")
        with contextlib.suppress(RequestError):  # some models cannot be explained
            explain(self, ExplainRequest(node=first))


def model_name(folder: Path) -> str:
    """The name of a model by its run folder, with the characters that addresses allow."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.resolve().name).strip("-.") or "model"
