"""One step of training: forward, loss, backward, optimiser."""

import itertools
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.nn.batch_norm import counting_rows
from lgcn.training import metrics
from lgcn.training.agreement import agreement, agreement_weight, deviation
from lgcn.training.cuda_graphs import Capture, CudaStream, can_capture
from lgcn.training.schedule import learning_rate, set_learning_rate, views_of
from lgcn.training.settings import Settings
from lgcn.utils.generators import Generators, drawing_from, random_seed
from lgcn.utils.out_of_memory import needs_memory

if TYPE_CHECKING:
    from lgcn.training.padding import Padded, PaddedBatch, Padding


class Step:
    """A training step on a batch, without waiting for the device.

    Args:
        model: The model, on the device.
        optimizer: Its optimiser.
        settings: The settings. ``views``, ``agreement``, ``precision``, ``compile`` and ``capture``
            matter here.
        device: Where to compute.
        fixed: Whether every epoch has the same batches. They then stay on the device, and on a GPU
            their steps are replayed as CUDA graphs.
        generators: Random generators for dropout. (default: new ones)
        padding: Pads batches that change, so that all steps do the same work. On a GPU, one CUDA
            graph then replays them. Dropout draws other numbers than without it.
            (default: none, each batch is taken as it is)
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        settings: Settings,
        device: torch.device,
        fixed: bool,
        generators: Generators | None = None,
        padding: "Padding | None" = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.settings = settings
        self.device = device
        self.fixed = fixed
        self.generators = Generators(device) if generators is None else generators
        self.forward = torch.compile(model) if settings.hardware.compile else model
        # Of the model itself: one that is compiled shares its attributes.
        self.take_extra_loss: Callable[[], Tensor] | None = getattr(model, "take_extra_loss", None)
        self.autocast = settings.hardware.precision == "bfloat16"
        if self.autocast and device.type == "cpu":
            raise UsageError("precision=bfloat16 is for GPUs, got device cpu: use float32")
        # A tensor, because a CUDA graph replays the Python numbers that it was captured with.
        self.agreement_weight = torch.zeros((), device=device)
        self.views = settings.optimisation.views
        self.stream: CudaStream | None = None
        if device.type == "cuda":
            self.stream = CudaStream(device, self.generators)
        self.captures = fixed and can_capture(model, settings)
        self.padding = padding
        self._ahead: tuple[int, Generator[Any] | None] = (0, None)  # the next epoch, its batches
        self._padded: tuple[PaddedBatch, Batch] | None = None
        self._kept: dict[int, Batch] = {}

    def begin_epoch(self, epoch: int, steps: int = 0) -> None:
        """Seeds the generators, and sets what changes with epochs.

        That is the learning rate, the number of views, and the weight of their agreement.

        Args:
            epoch: The epoch, from 1 on.
            steps: Steps done before it. (default: 0)
        """
        # One seed per epoch instead of one stream: a resumed run needs no generator state.
        self.generators.manual_seed(random_seed(self.settings.seed, epoch))
        chosen = self.settings.optimisation
        set_learning_rate(self.optimizer, learning_rate(chosen, epoch - 1, steps))
        views = views_of(chosen, epoch)
        if views != self.views:
            self.views = views
            for batch in self._batches():  # what was captured has another number of views
                batch.capture = Capture()
        if chosen.agreement:
            weight = agreement_weight(chosen.agreement, epoch, chosen.agreement_epochs)
            self.agreement_weight.fill_(weight)

    def _batches(self) -> "list[Batch]":
        """The batches whose steps may have been captured."""
        padded = [] if self._padded is None else [self._padded[1]]
        return [*self._kept.values(), *padded]

    def batches(self, loader: Any, epoch: int) -> Generator[Any]:
        """The batches of an epoch, prepared for this step in the threads of the loader."""
        if self.padding is None:
            yield from loader.epoch(epoch)
            return
        (next_epoch, batches), self._ahead = self._ahead, (0, None)
        if batches is None or next_epoch != epoch:
            batches = loader.epochs(epoch, self.padding.prepare)
        yield from itertools.islice(batches, len(loader))
        self._ahead = epoch + 1, batches  # threads go on with the next epoch

    def __call__(self, source: "Graph | GraphSet | Padded") -> Tensor | None:
        """Trains on a batch: a graph with training nodes, or a set of whole training graphs.

        Returns:
            The loss, on the device; ``None`` if the batch has no training nodes.
        """
        if self.padding is not None and not isinstance(source, GraphSet):
            source = self.padding.fit(source)
        if not isinstance(source, Graph | GraphSet):
            return self._on_padded(source)
        batch = self._batch(source)
        assert batch.nodes is not None
        if batch.nodes.numel() == 0:
            return None
        memory = needs_memory(f"a training step on {source.num_nodes} nodes")
        with memory, drawing_from(self.generators):
            if self.stream is None:
                return self._train_on(batch)
            capture = batch.capture if self.captures else None
            return self.stream.run(partial(self._train_on, batch), capture)

    def _on_padded(self, padded: "Padded") -> Tensor | None:
        """Trains on a padded batch, in the arrays that all of them share."""
        if not padded.has_loss:
            return None
        memory = needs_memory(f"a training step on {padded.sizes.nodes} nodes")
        with memory, drawing_from(self.generators):
            place, batch = self._place_of(padded)
            step = partial(self._train_on, batch)
            if self.stream is None:
                place.load(padded.block)
                return step()
            return self.stream.run(step, batch.capture, partial(place.load, padded.block))

    def _place_of(self, padded: "Padded") -> "tuple[PaddedBatch, Batch]":
        """The arrays for padded batches of these sizes. Older ones are given up."""
        if self._padded is None or self._padded[0].sizes != padded.sizes:
            from lgcn.training.padding import PaddedBatch

            assert self.padding is not None
            self._padded = None
            if self.stream is not None:
                self.stream.forget()
            place = PaddedBatch(self.padding, self.device)
            batch = Batch(place.graph, place.graph, None, place.y, place.weight, place.share)
            self._padded = place, batch
        return self._padded

    def _train_on(self, batch: "Batch") -> Tensor:
        self.optimizer.zero_grad()
        loss = self.loss(batch)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()

    def loss(self, batch: "Batch", share: float = 1.0) -> Tensor:
        """The loss of a batch: the mean of the views on the training nodes, plus what is on all.

        That is the disagreement of the views, and the extra loss of the network if it has one.

        Args:
            batch: The batch.
            share: Its share of the step's nodes, the factor of what is on all nodes. (default: 1)
        """
        views, extra = [], []
        autocast = torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast)
        with autocast, counting_rows(batch.share):
            for _ in range(self.views):
                views.append(self.forward(batch.graph.x, batch.graph).float())
                if self.take_extra_loss is not None:  # now, before the next view replaces it
                    extra.append(self.take_extra_loss().float())
            loss = self._loss(views, batch, share)
            if extra:
                loss = loss + share * torch.stack(extra).mean()
            return loss

    def _loss(self, views: list[Tensor], batch: "Batch", share: float) -> Tensor:
        chosen = self.settings.optimisation
        nodes = batch.nodes
        scored = views if nodes is None else [view.index_select(0, nodes) for view in views]
        losses = [metrics.loss(view, batch.y, batch.weight) for view in scored]
        loss = torch.stack(losses).mean()
        if chosen.agreement and self.views > 1:
            if batch.y.dim() == 1 and batch.y.is_floating_point():  # a regression
                apart = deviation(views, batch.share)
            else:
                multi_label = batch.y.dim() == 2
                apart = agreement(views, chosen.sharpen, multi_label, batch.share)
            loss = loss + share * self.agreement_weight * apart
        return loss

    def _batch(self, source: Graph | GraphSet) -> "Batch":
        if id(source) in self._kept:
            return self._kept[id(source)]
        batch = Batch.of(source, self.device)
        if self.fixed:
            self._kept[id(source)] = batch
        return batch


@dataclass
class Batch:
    """A batch on the device, with the numbers, labels and weights of its training nodes.

    If it consists of whole graphs, these stand for nodes. If it is padded, `nodes` is `None`: there
    are a label and a weight for every node, and `share` has each node's share in means over nodes.
    """

    source: Graph | GraphSet  # kept, so that no other object gets its id
    graph: Graph
    nodes: Tensor | None
    y: Tensor
    weight: Tensor | None
    share: Tensor | None = None
    capture: Capture = field(default_factory=Capture)

    @classmethod
    def of(
        cls, source: Graph | GraphSet, device: torch.device, total: float | None = None
    ) -> "Batch":
        """The batch of a graph.

        Args:
            source: The graph.
            device: Where to compute.
            total: What weights are divided by. (default: the sum of the weights, or nothing if the
                graph has weights of start nodes, which make the sum of losses a mean)
        """
        graph: Any = source
        labelled: Any = source
        if isinstance(source, GraphSet):
            graph, labelled = source.graph, source.targets
        assert labelled.y is not None
        if total is None:
            nodes, weight = loss_weights(labelled)
        else:
            nodes, weight = training_nodes(labelled)
            weight = (torch.ones(len(nodes)) if weight is None else weight) / total
        y = labelled.y[nodes].to(device)
        weight = None if weight is None else weight.to(device)
        return cls(source, _with_float_features(graph).to(device), nodes.to(device), y, weight)


def training_nodes(source: Graph) -> tuple[Tensor, Tensor | None]:
    """The training nodes of a graph that count, and their weights if these are not all equal."""
    mask = source.train_mask
    nodes = torch.empty(0, dtype=torch.long) if mask is None else mask.nonzero().squeeze(1)
    weight = source.node_weight
    if source.sample_weight is not None:
        weight = source.sample_weight if weight is None else source.sample_weight * weight
    if weight is not None:  # nodes without weight add nothing to the loss
        nodes = nodes[weight[nodes] > 0]
        weight = weight[nodes]
    return nodes, weight


def loss_weights(source: Graph) -> tuple[Tensor, Tensor | None]:
    """The training nodes of a batch that count, and their weights in the sum of the losses.

    These sum to one, unless the graph has weights of start nodes, which make the sum a mean by
    themselves. `None` if all are equal.
    """
    nodes, weight = training_nodes(source)
    if weight is not None and source.node_weight is None:
        weight = weight / weight.sum()
    return nodes, weight


def _with_float_features(graph: Graph) -> Graph:
    """Whole graphs may store their features in a smaller type; sub-graphs do not."""
    assert graph.x is not None
    if graph.x.dtype.is_floating_point and graph.x.dtype.itemsize >= 4:
        return graph
    return replace(graph, x=graph.features(), feature_scale=None)
