"""What a training works on, and how its nodes are scored: one graph in one process.

`lgcn.training.shared_data` has the same for several processes, and for graphs in parts.
"""

from collections.abc import Generator
from typing import Any, Protocol

import torch
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.sampling import GraphLoader
from lgcn.sampling.batches import BatchLoader
from lgcn.training.checks import check_k, check_metric, check_trainable
from lgcn.training.choose import describe
from lgcn.training.evaluation import (
    Scored,
    SplitScores,
    evaluate,
    evaluation_graphs,
    score_graphs,
    whole_graphs,
)
from lgcn.training.model_spec import ModelSpec
from lgcn.training.models import find_model
from lgcn.training.padding import padding_for
from lgcn.training.scoring import Scoring
from lgcn.training.settings import Settings
from lgcn.training.setup import make_loader
from lgcn.training.split_file import Split, split_of
from lgcn.training.step import Step
from lgcn.training.weights import training_graph
from lgcn.utils.generators import Generators
from lgcn.workers import Workers


class Loader(Protocol):
    """The batches of an epoch, in whatever form the step takes them."""

    def __len__(self) -> int: ...

    def epoch(self, epoch: int) -> Generator[Any]: ...


class TrainingData:
    """A graph to be trained on.

    Args:
        graph: The graph as the user gave it.
        settings: The settings. Choices that depend on the graph are made here.

    Attributes:
        plain: The graph as it was given, for the baselines; `None` if there can be none.
        graph: The graph with the features that the model takes.
        settings: The settings with all choices made.
        spec: What the model is built for.
        workers: The processes that share the training; here, one.
    """

    plain: Graph | None

    _replays: str | None = None  # how steps on changing sub-graphs run on a GPU

    def __init__(self, graph: Graph, settings: Settings) -> None:
        if find_model(settings.model.name).for_graphs:
            raise UsageError(
                f"model={settings.model.name} predicts whole graphs, and {graph.name} is one "
                "graph: use model=lgcn, or give whole graphs (lgcn.load_graphs)"
            )
        check_trainable(graph, settings)
        self.plain = graph
        self.settings = settings.resolve(graph)
        self.spec = ModelSpec.of(graph, self.settings)
        self.graph = self.spec.prepare(graph)
        self.workers = Workers()
        self._evaluated: list[Graph] = []

    def describe(self, given: Settings) -> str:
        """What is trained on, in one line.

        Args:
            given: The settings as they were given.
        """
        line = describe(self.graph, self.settings, given)
        return line if self._replays is None else f"{line}; {self._replays}"

    def check_k(self, device: torch.device) -> None:
        """See `lgcn.training.checks.check_k`."""
        check_k(self.graph, self.settings, self.spec.build_without_memory(self.settings), device)

    def split(self) -> Split | None:
        """The split, for the run folder."""
        return split_of(self.graph)

    def loader(self) -> Loader:
        """The batches of the training nodes."""
        return make_loader(training_graph(self.graph, self.settings, self.spec), self.settings)

    def step(
        self,
        model: Module,
        optimizer: Optimizer,
        loader: Loader,
        device: torch.device,
        generators: Generators,
    ) -> Step:
        """What trains on a batch of the loader."""
        fixed = isinstance(loader, GraphLoader) or not getattr(loader, "resample", True)
        padding = None
        if device.type == "cuda" and not fixed and isinstance(loader, BatchLoader):
            found = padding_for(model, loader, self.settings, device)
            self._replays = "each step is a CUDA graph"
            if isinstance(found, str):
                self._replays = f"steps are not CUDA graphs, because {found}"
            else:
                padding = found
        return Step(model, optimizer, self.settings, device, fixed, generators, padding)

    def prepare_evaluation(self, metric: str, device: torch.device) -> None:
        """Chooses the graphs on which nodes are scored after an epoch."""
        self._evaluated = [part.to(device) for part in evaluation_graphs(self.graph, self.settings)]
        check_metric(self.graph, self._evaluated, metric)

    def evaluate(self, model: Module, scoring: Scoring) -> SplitScores:
        """Loss and score of validation and test nodes."""
        return evaluate(model, self._evaluated, ("val", "test"), scoring)

    def scored(self, model: Module) -> Scored | None:
        """The final scores: exact, over all nodes. `None` in a process that does not write them."""
        evaluated = self._evaluated
        if self.settings.evaluation.evaluate_on == "sampled":
            evaluated = whole_graphs(self.graph)
        return score_graphs(model, evaluated, self.settings)
