"""A graph in parts, which one process or several train on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.nn.whole_graph import forward
from lgcn.partition import Partition, Shard
from lgcn.training.checks import check_labels, check_one_direction
from lgcn.training.choose import Known
from lgcn.training.data import Loader
from lgcn.training.dealing import Dealer
from lgcn.training.evaluation import Scored, SplitScores, sampled_graphs
from lgcn.training.layerwise_shards import layerwise_shards
from lgcn.training.model_spec import ModelSpec
from lgcn.training.scored_nodes import scored_nodes
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.setup import make_loader
from lgcn.training.shared_data import EVALUATED, SharedData, gathered, shared_values
from lgcn.training.split_file import Split
from lgcn.training.weights import class_weights
from lgcn.utils.sizes import parse_memory
from lgcn.workers import Workers


class PartitionData(SharedData):
    """The parts of a graph, see `lgcn.training.data.TrainingData`.

    A step takes a sub-graph of every part, whoever computes it: rank r of W computes those of the
    parts r, r + W, r + 2 W, and so on. A process opens no other shard.

    Args:
        partition: The parts.
        settings: The settings.
        workers: The processes that share the training.
    """

    def __init__(self, partition: Partition, settings: Settings, workers: Workers) -> None:
        workers.agree({**shared_values(settings), "partition": partition.header["sha256"]})
        found, parts = partition.statistics, partition.num_parts
        _check(found, partition.name, settings)
        if workers.size > parts:
            raise UsageError(
                f"{partition.name} has {parts} parts, too few for {workers.size} workers: start at "
                f"most {parts}, or write it again with --parts {workers.size}"
            )
        width = settings.sampling.subgraphs_per_step
        if width not in (None, parts):
            raise UsageError(
                f"subgraphs_per_step must be {parts}, one per part of {partition.name}, got {width}"
            )
        settings = settings.resolve(Known.of_statistics(found), may_be_whole=False)
        _check_sampling(settings)
        self.shards = [
            partition.shard(number) for number in range(workers.rank, parts, workers.size)
        ]
        self.plain = None
        self.settings = settings._with(subgraphs_per_step=parts)
        self.graph = self.shards[0].graph
        self.spec = _spec(found, self.graph)
        self.workers = workers
        self.partition = partition
        self._mine = []

    def split(self) -> Split | None:
        return None  # the shards have it

    def describe(self, given: Settings) -> str:
        found, parts = self.partition.statistics, self.partition.num_parts
        return (
            f"training {self.settings.model.name.upper()} on {found['num_nodes']:,} nodes in "
            f"{parts} parts, {found['num_features']:,} features, {found['num_train']:,} training "
            f"nodes; a step takes a sub-graph of up to {self.settings.sampling.max_nodes:,} nodes "
            f"of each part, on {self.workers.size} worker{'s' if self.workers.size > 1 else ''}"
        )

    def loader(self) -> Loader:
        settings, parts = self.settings, self.partition.num_parts
        sampling = settings.sampling
        if sampling.subgraphs_per_epoch is not None:  # of all parts together
            most = max(1, sampling.subgraphs_per_epoch // parts)
            settings = settings._with(subgraphs_per_epoch=most)
        loaders = {}
        for shard in self.shards:
            graph = self._training_graph(shard)
            if bool(_mask(graph).any()):
                own = settings._with(seed=_seed(settings.seed, shard.number))
                loaders[shard.number] = make_loader(graph, own)
        longest = max((len(loader) for loader in loaders.values()), default=0)
        steps = max(self.workers.collect(longest, "the number of steps"))
        return Dealer(
            loaders,
            parts,
            steps,
            range(self.workers.rank, parts, self.workers.size),
            partitioned=True,
            num_workers=settings.hardware.num_workers,
        )

    def _training_graph(self, shard: Shard) -> Graph:
        """With standardised targets, and weights; a step divides them by those of all parts."""
        graph = shard.graph
        chosen = self.settings.optimisation.class_weight
        if chosen != "none":
            assert graph.y is not None
            counts = self.partition.statistics["class_counts"]
            names, name = self.spec.class_names, self.partition.name
            weights = class_weights(names, counts, chosen, name)
            of_class = torch.from_numpy(weights)[graph.y.clamp(min=0)].float()
            before = graph.sample_weight
            graph = replace(graph, sample_weight=of_class if before is None else of_class * before)
        if self.spec.task == "regression":
            assert graph.y is not None
            graph = replace(graph, y=self.spec.standardised(graph.y))
        return graph

    def prepare_evaluation(self, metric: str, device: torch.device) -> None:
        if self.settings.evaluation.evaluate_on != "graph":
            self._sample(device)
        every = [graph for _, graph in self._mine] or [_owned(shard) for shard in self.shards]
        labels = [(number, _val_labels(graph)) for number, graph in enumerate(every)]
        pieces = [(number, torch.zeros(len(y), self.spec.num_classes), y) for number, y in labels]
        found = gathered(self.workers, pieces, self.spec, "the labels of validation nodes")
        assert found is not None  # the partition has validation nodes
        counts = self.partition.statistics["class_counts"] or ()
        wanted = [place for place, count in enumerate(counts) if count]
        check_labels(found[1], wanted, self.spec.class_names, metric)

    def _sample(self, device: torch.device) -> None:
        """Chooses the sub-graphs on which nodes are scored after an epoch."""
        parts = self.partition.num_parts
        self._mine = []
        for shard in self.shards:
            if shard.graph.val_mask is None or not bool(shard.graph.val_mask.any()):
                continue
            seed = _seed(self.settings.seed, shard.number)
            graphs = sampled_graphs(shard.graph, self.settings._with(seed=seed), share=parts)
            self._mine += [
                (place * parts + shard.number, part.to(device)) for place, part in enumerate(graphs)
            ]

    def evaluate(self, model: Module, scoring: Scoring) -> SplitScores:
        if self.settings.evaluation.evaluate_on != "graph":
            with torch.no_grad():
                found = [(number, [(part, forward(model, part))]) for number, part in self._mine]
            return self._scores(found, scoring)
        every = zip(self.shards, self._outputs(model), strict=True)
        owned = [(shard.number, [(_owned(shard), rows)]) for shard, rows in every]
        return self._scores(owned, scoring)

    def _outputs(self, model: Module) -> list[Tensor]:
        memory = self.settings.hardware.memory
        return layerwise_shards(model, self.shards, self.workers, memory=memory)

    def scored(self, model: Module) -> Scored | None:
        """On rank 0, a graph without edges of all nodes in splits, and their scores."""
        memory = parse_memory(self.settings.hardware.memory)
        found = scored_nodes(
            self.shards, self._outputs(model), self.workers, memory=memory, name=self.graph.name
        )
        return None if found is None else [found]


def _check(found: dict[str, Any], name: str, settings: Settings) -> None:
    """Raises UsageError if the whole graph lacks something that training needs."""
    if found["num_features"] == 0:
        raise UsageError(
            f"{name} has no features (x) to learn from. Add some to the graph, and partition it "
            "again"
        )
    if found["inductive"]:
        raise UsageError(
            f"the splits of {name} are separate graphs, which cannot be trained on in parts. Train "
            "on the graph store that it was cut from"
        )
    if settings.structural_features == "yes" or settings.positions not in ("auto", "none"):
        raise UsageError(
            "structural_features and positions need the whole graph, but it is in parts: drop them"
        )
    check_one_direction(settings)
    for split in ("train", "val"):
        if not found[f"num_{split}"]:
            raise UsageError(f"{name} has no {split} nodes: {split}_mask is empty in all parts")


def _check_sampling(settings: Settings) -> None:
    sampling = settings.sampling
    for key, wanted in (("training", "subgraph"), ("sampler", "bfs"), ("start_nodes", "uniform")):
        if getattr(sampling, key) != wanted:
            raise UsageError(
                f"{key} must be {wanted} for a graph in parts, got {getattr(sampling, key)}"
            )
    if settings.evaluation.evaluate_on not in ("graph", "sampled"):
        raise UsageError(
            "evaluate_on must be graph or sampled for a graph in parts, got "
            f"{settings.evaluation.evaluate_on}"
        )


def _spec(found: dict[str, Any], graph: Graph) -> ModelSpec:
    """What the model is built for: by the whole graph, since a part may lack classes."""
    task = found["task"]
    if task != "regression":
        return ModelSpec(found["num_features"], found["num_classes"], task, graph.label_names)
    target = found["target"]
    return ModelSpec(
        found["num_features"],
        1,
        task,
        target_mean=target["mean"],
        target_scale=target["deviation"] or 1.0,
    )


def _seed(seed: int, number: int) -> int:
    """A seed of its own for each part."""
    return seed + (number << 32)


def _mask(graph: Graph, split: str = "train") -> Tensor:
    mask = graph.mask(split)
    return torch.zeros(graph.num_nodes, dtype=torch.bool) if mask is None else mask


def _val_labels(graph: Graph) -> Tensor:
    assert graph.y is not None
    return graph.y[_mask(graph, "val").to(graph.y.device)].cpu()


def _owned(shard: Shard) -> Graph:
    """The nodes that a shard owns with their labels and splits, without edges."""
    graph, number = shard.graph, shard.num_owned
    masks: dict[str, Any] = {
        f"{name}_mask": mask[:number]
        for name in EVALUATED
        if (mask := graph.mask(name)) is not None
    }
    return Graph(
        torch.zeros(number + 1, dtype=torch.long),
        torch.empty(0, dtype=torch.long),
        y=None if graph.y is None else graph.y[:number],
        label_names=graph.label_names,
        name=graph.name,
        **masks,
    )
