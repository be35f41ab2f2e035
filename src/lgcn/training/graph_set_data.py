"""What a training on whole graphs works on, see `lgcn.training.data`.

Graphs take the place of nodes: `TrainingData.graph` is the graph without edges that has one node
per graph, so that the loop, its records and its files need not know the difference.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.graph.statistics import suggest_k
from lgcn.sampling.graph_batches import GraphSetLoader, batches_in_order
from lgcn.training.checks import check_k, check_metric, check_trainable_graphs
from lgcn.training.choose import Known
from lgcn.training.data import Loader, TrainingData
from lgcn.training.evaluation import Scored, SplitScores, split_scores
from lgcn.training.graph_scores import GRAPHS, NODES, score_batches, score_graphs
from lgcn.training.model_spec import ModelSpec
from lgcn.training.models import find_model, model_names
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.structure import prepared_length
from lgcn.training.weights import training_graph
from lgcn.workers import Workers

EVALUATED = ("val", "test")


class GraphSetData(TrainingData):
    """Whole graphs to be trained on, see `lgcn.training.data.TrainingData`.

    Args:
        graphs: The graphs as the user gave them.
        settings: The settings.

    Attributes:
        graphs: The graphs with the features that the model takes.
    """

    def __init__(self, graphs: GraphSet, settings: Settings) -> None:
        check_model(settings, graphs)
        check_trainable_graphs(graphs, settings)
        self.settings = settings._with(positions="none").resolve(_known(graphs))
        self.spec = ModelSpec.of_graphs(graphs, self.settings)
        self.graphs = self.spec.prepare_graphs(graphs)
        # The run folder keeps the encoder of the nodes' features.
        self.graph = replace(self.graphs.targets, encoder=graphs.graph.encoder)
        self.plain = without_edges(graphs)
        self.workers = Workers()
        self._evaluated = [self.graph]
        self._batches: list[GraphSet] = []
        self._chosen = torch.empty(0, dtype=torch.long)

    def describe(self, given: Settings) -> str:
        graphs, graph = self.graphs, self.graphs.graph
        sizes = graphs.sizes.double()
        train = graphs.mask("train")
        assert train is not None
        labels = ""
        if graphs.task != "regression":
            what = "labels" if self.spec.multi_label else "classes"
            labels = f"{graphs.num_classes:,} {what}, "
        return (
            f"training {self.settings.model.name.upper()} on {graphs.num_graphs:,} graphs of "
            f"{float(sizes.mean()):.1f} nodes on average (at most {int(sizes.max()):,}), with "
            f"{graph.num_edges / max(graph.num_nodes, 1):.1f} neighbours per node, "
            f"{graphs.num_features:,} features, {labels}{int(train.sum()):,} training graphs"
        )

    def check_k(self, device: torch.device) -> None:
        model = self.spec.build_without_memory(self.settings)
        check_k(self.graphs.graph, self.settings, model, device)

    def loader(self) -> Loader:
        targets = training_graph(self.graph, self.settings, self.spec)
        numbers = _numbers(targets, "train")
        return GraphSetLoader(
            GraphSet(self.graphs.graph, targets),
            numbers=numbers,
            batch_size=self.settings.sampling.graphs_per_batch,
            max_nodes=self.settings.sampling.nodes_per_batch,
            seed=self.settings.seed,
            num_workers=self.settings.hardware.num_workers,
        )

    def prepare_evaluation(self, metric: str, device: torch.device) -> None:
        check_metric(self.graph, [self.graph], metric, "graph")
        self._chosen = torch.cat([_numbers(self.graph, split) for split in EVALUATED])
        some = self.graphs.select(self._chosen)
        self._evaluated = [some.targets]
        # They are scored after every epoch, so their batches stay on the device.
        limit = min(NODES, self.settings.sampling.nodes_per_batch or NODES)
        self._batches = [batch.to(device) for batch in batches_in_order(some, GRAPHS, limit)]

    def evaluate(self, model: Module, scoring: Scoring) -> SplitScores:
        scores = score_batches(model, self._batches, len(self._chosen))
        return split_scores([(self._evaluated[0], scores)], EVALUATED, scoring)

    def scored(self, model: Module) -> Scored | None:
        return [(self.graph, score_graphs(model, self.graphs))]


def check_model(settings: Settings, graphs: GraphSet) -> None:
    """Raises UsageError if the model predicts nodes."""
    name = settings.model.name
    if find_model(name).for_graphs:
        return
    fitting = [other for other in model_names() if find_model(other).for_graphs]
    raise UsageError(
        f"model={name} predicts nodes, and {graphs.name} has labels of whole graphs: use "
        f"model={' or '.join(fitting)}"
    )


def without_edges(graphs: GraphSet) -> Graph:
    """The graphs by their sizes and features alone, for the models without the graph.

    The columns are the logarithms of the numbers of nodes and edges, then the mean of the nodes'
    features.
    """
    sizes = graphs.sizes.long()
    edges = graphs.edge_ptr.long().diff()
    columns = [torch.log1p(sizes.double()), torch.log1p(edges.double())]
    if graphs.num_features:
        x = graphs.graph.features()
        x = x.to_dense() if x.layout != torch.strided else x
        total = x.new_zeros(len(sizes), x.size(1))
        total.index_add_(0, torch.repeat_interleave(sizes), x)
        columns += (total / sizes.clamp(min=1)[:, None]).double().unbind(1)
    return replace(graphs.targets, x=torch.stack(columns, dim=1).float())


def _known(graphs: GraphSet) -> Known:
    """What choices depend on."""
    graph, train = graphs.graph, graphs.mask("train")
    assert train is not None
    nodes = replace(graph, train_mask=train.repeat_interleave(graphs.sizes))
    return Known(
        graph.num_nodes,
        graph.num_edges,
        int(graphs.sizes.max()) if graphs.num_graphs else 0,
        graphs.num_graphs,
        graphs.num_features,
        lambda: False,
        lambda: suggest_k(nodes),
        lambda settings: prepared_length(nodes, settings),
    )


def _numbers(targets: Graph, split: str) -> Tensor:
    """The numbers of the graphs of a split."""
    mask = targets.mask(split)
    none = torch.empty(0, dtype=torch.long)
    return none if mask is None else mask.nonzero().squeeze(1)
