"""What several processes train on together: the same graph, or parts of one."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn import __version__
from lgcn.errors import UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.nn.whole_graph import forward
from lgcn.partition import Partition
from lgcn.training.checks import check_metric, check_trainable
from lgcn.training.data import Loader, TrainingData
from lgcn.training.dealing import Dealer
from lgcn.training.evaluation import (
    Scored,
    SplitScores,
    evaluation_graphs,
    scores_of_outputs,
    split_outputs,
)
from lgcn.training.model_spec import ModelSpec
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.setup import make_loader
from lgcn.training.shared_step import SharedStep
from lgcn.training.step import Step
from lgcn.training.weights import training_graph
from lgcn.utils.generators import Generators
from lgcn.workers import Workers
from lgcn.workers.tensors import gather

EVALUATED = ("val", "test")
SAMPLED = 100_000  # numbers that the digest of a graph reads, at most


class SharedData(TrainingData):
    """A graph that each of several processes has, see `lgcn.training.data.TrainingData`.

    Args:
        graph: The graph.
        settings: The settings.
        workers: The processes that share the training.
    """

    def __init__(self, graph: Graph, settings: Settings, workers: Workers) -> None:
        workers.agree({**shared_values(settings), "graph": digest(graph)})
        check_trainable(graph, settings)
        settings = settings.resolve(graph, may_be_whole=graph.num_graphs > 1)
        if settings.sampling.training == "whole" and graph.num_graphs == 1:
            raise UsageError(
                f"training=whole trains on one graph in one process, got {workers.size} workers: "
                "use training=subgraph, or one worker"
            )
        width = settings.sampling.subgraphs_per_step or workers.size
        if workers.size > width:
            raise UsageError(
                f"a step has {width} sub-graphs, too few for {workers.size} workers: start at most "
                f"{width}, or begin a new run with subgraphs_per_step={workers.size}"
            )
        self.plain = graph
        self.settings = settings._with(subgraphs_per_step=width)
        self.spec = ModelSpec.of(graph, self.settings)
        self.graph = self.spec.prepare(graph)
        self.workers = workers
        self._mine: list[tuple[int, Graph]] = []  # evaluated graphs with their numbers

    def loader(self) -> Loader:
        one = make_loader(training_graph(self.graph, self.settings, self.spec), self.settings)
        width = self.settings.sampling.subgraphs_per_step
        assert width is not None
        return Dealer(
            {0: one},
            width,
            -(-len(one) // width),
            range(self.workers.rank, width, self.workers.size),
            partitioned=False,
            num_workers=self.settings.hardware.num_workers,
        )

    def step(
        self,
        model: Module,
        optimizer: Optimizer,
        loader: Loader,
        device: torch.device,
        generators: Generators,
    ) -> Step:
        return SharedStep(model, optimizer, self.settings, device, generators, self.workers)

    def prepare_evaluation(self, metric: str, device: torch.device) -> None:
        every = evaluation_graphs(self.graph, self.settings)
        check_metric(self.graph, every, metric)
        numbers = range(self.workers.rank, len(every), self.workers.size)
        self._mine = [(number, every[number].to(device)) for number in numbers]
        self._evaluated = every

    def evaluate(self, model: Module, scoring: Scoring) -> SplitScores:
        with torch.no_grad():
            scored = [(number, [(part, forward(model, part))]) for number, part in self._mine]
        return self._scores(scored, scoring)

    def _scores(self, scored: list[tuple[int, Scored]], scoring: Scoring) -> SplitScores:
        """The scores of the nodes of all processes, the same in each.

        Args:
            scored: This process's graphs, each with its number among those of all processes.
            scoring: How nodes are scored.
        """
        outputs = {}
        for split in EVALUATED:
            pieces = [
                (number, *found[split])
                for number, part in scored
                if split in (found := split_outputs(part, (split,)))
            ]
            joined = gathered(self.workers, pieces, self.spec, f"the scores of {split} nodes")
            if joined is not None:
                outputs[split] = joined
        return scores_of_outputs(outputs, scoring)

    def scored(self, model: Module) -> Scored | None:
        return super().scored(model) if self.workers.is_first else None


def gathered(
    workers: Workers, pieces: list[tuple[int, Tensor, Tensor]], spec: ModelSpec, what: str
) -> tuple[Tensor, Tensor] | None:
    """Outputs and labels of all processes, in the order of the pieces' numbers; None if empty."""
    y_dtype, labels = torch.int64, list[int]()
    if spec.task == "regression":
        y_dtype = torch.float64
    elif spec.multi_label:
        y_dtype, labels = torch.float32, [spec.num_classes]
    logits = torch.cat([torch.empty(0, spec.num_classes), *(p[1].float().cpu() for p in pieces)])
    y = torch.cat(
        [torch.empty(0, *labels, dtype=y_dtype), *(p[2].cpu().to(y_dtype) for p in pieces)]
    )
    listed = workers.collect([[number, len(part)] for number, part, _ in pieces], what)
    parts: list[tuple[int, Tensor, Tensor]] = []
    every = zip(gather(workers, logits, what), gather(workers, y, what), listed, strict=True)
    for some_logits, some_y, sizes in every:
        lengths = [size for _, size in sizes]
        cut = zip(
            sizes, torch.split(some_logits, lengths), torch.split(some_y, lengths), strict=True
        )
        parts += [(number, part, labels_of) for (number, _), part, labels_of in cut]
    parts.sort(key=lambda part: part[0])
    if sum(len(part[1]) for part in parts) == 0:
        return None
    return torch.cat([part[1] for part in parts]), torch.cat([part[2] for part in parts])


def shared_values(settings: Settings) -> dict[str, Any]:
    """What must be the same in all processes. Where the data lie may differ."""
    flat = {name: value for name, value in settings.flat().items() if name != "dataset_options"}
    versions = {"the version of lgcn": __version__, "the version of torch": torch.__version__}
    return {**flat, **versions}


def digest(graph: Graph) -> str:
    """A checksum of a graph's sizes, and of edges and labels at equal distances."""
    sizes = f"{graph.num_nodes} {graph.num_edges} {graph.num_features} {graph.num_edge_features}"
    found = hashlib.sha256(sizes.encode())
    for tensor in (graph.rowptr, graph.col, graph.y, graph.train_mask):
        if tensor is not None and len(tensor):
            some = tensor[:: max(1, len(tensor) // SAMPLED)].contiguous().cpu()
            found.update(some.numpy().tobytes())
    return found.hexdigest()[:16]


def training_data(
    graph: Graph | GraphSet | Partition, settings: Settings, workers: Workers | None = None
) -> TrainingData:
    """What a training works on, for one process or several.

    Args:
        graph: The graph, its parts, or whole graphs.
        settings: The settings.
        workers: The processes that share the training. (default: one)
    """
    workers = Workers() if workers is None else workers
    if isinstance(graph, GraphSet):
        from lgcn.training.graph_set_data import GraphSetData

        if workers.size > 1:
            raise UsageError(
                f"whole graphs are trained on in one process, got {workers.size} workers"
            )
        return GraphSetData(graph, settings)
    if isinstance(graph, Partition):
        from lgcn.training.partition_data import PartitionData

        return PartitionData(graph, settings, workers)
    if workers.size > 1 or settings.sampling.subgraphs_per_step is not None:
        return SharedData(graph, settings, workers)
    return TrainingData(graph, settings)


def whole_in_one_process(
    graph: Graph | GraphSet | Partition, workers: Workers | None, what: str
) -> Graph:
    """The graph; raises UsageError if it is in parts, or if there are several processes."""
    if isinstance(graph, GraphSet):
        raise UsageError(f"{what} predicts nodes, got {graph.num_graphs} whole graphs")
    if isinstance(graph, Partition):
        raise UsageError(f"{what} needs the whole graph, got {graph.num_parts} parts")
    if workers is not None and workers.size > 1:
        raise UsageError(f"{what} runs in one process, got {workers.size} workers")
    return graph
