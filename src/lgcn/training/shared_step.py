"""One step of a training that several processes share: each adds its part of the gradient."""

import warnings
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from lgcn.graph import Graph
from lgcn.training.settings import Settings
from lgcn.training.step import Batch, Step, training_nodes
from lgcn.utils.generators import Generators, drawing_from, random_seed
from lgcn.utils.out_of_memory import needs_memory
from lgcn.workers import Workers


class Unit(NamedTuple):
    """A sub-graph of a step, with its number among all sub-graphs of the epoch."""

    number: int
    graph: Graph


class SharedStep(Step):
    r"""A training step on several sub-graphs, which the workers share.

    The loss is the mean over the training nodes of all sub-graphs together,

    $$
    \mathcal{L} = \sum_{u} \sum_{i \in u} \frac{w_i}{\sum_j w_j} \, \ell_i ,
    $$

    whoever computes it. Sub-graphs are computed one after the other, each with dropout that its own
    number seeds and with its own batch statistics. So the losses depend on the number of workers
    only by rounding.

    Args:
        model, optimizer, settings, device, generators: See `lgcn.training.step.Step`.
        workers: The processes that share the steps.
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        settings: Settings,
        device: torch.device,
        generators: Generators,
        workers: Workers,
    ) -> None:
        super().__init__(model, optimizer, settings, device, False, generators)
        self.stream = None  # nothing is replayed
        self.workers = workers
        self.epoch = 0
        self.part: Module = _PartOfLoss(self)
        if workers.size > 1:
            with workers.waiting("the first exchange of weights"), warnings.catch_warnings():
                # The name that torch 2.11 knows is deprecated in 2.13.
                warnings.simplefilter("ignore", FutureWarning)
                self.part = DistributedDataParallel(
                    self.part, broadcast_buffers=False, gradient_as_bucket_view=True
                )
            # After its first exchange DDP sorts the gradients anew, which changes the order of sums
            # of three or more. So the first one is of zeros: a resumed run has the same sums.
            self._add_gradient(None, 0.0, True)
            optimizer.zero_grad()

    def begin_epoch(self, epoch: int, steps: int = 0) -> None:
        super().begin_epoch(epoch, steps)
        self.epoch = epoch

    def __call__(self, source: Any) -> Tensor | None:
        """Trains on the sub-graphs of a step.

        Args:
            source: Those of them that this process computes, a list of `Unit`; it may be empty.

        Returns:
            This process's part of the loss, on the device; ``None`` if no sub-graph of the step
            has training nodes.
        """
        units: Sequence[Unit] = source
        weights, nodes, count = self._totals(units)
        if weights == 0:
            return None
        self.optimizer.zero_grad()
        loss = torch.zeros((), device=self.device)
        with self._mean_buffers(len(units), count) as next_unit:
            for place, unit in enumerate(units):
                next_unit()
                # Weights of start nodes make the loss of each sub-graph a mean by themselves.
                total = weights if unit.graph.node_weight is None else count
                batch = Batch.of(unit.graph, self.device, total)
                self.generators.manual_seed(
                    random_seed(self.settings.seed, self.epoch, unit.number)
                )
                last = place == len(units) - 1
                loss += self._add_gradient(batch, unit.graph.num_nodes / nodes, last)
            if not units:  # the others wait for this process's gradients
                self._add_gradient(None, 0.0, True)
        self.optimizer.step()
        return loss

    def _totals(self, units: Sequence[Unit]) -> tuple[float, float, int]:
        """Of the sub-graphs of all workers: weights in the loss, nodes, and their number."""
        found = torch.zeros(3, dtype=torch.float64)
        for unit in units:
            nodes, weight = training_nodes(unit.graph)
            found[0] += len(nodes) if weight is None else weight.double().sum()
            found[1] += unit.graph.num_nodes
        found[2] = len(units)
        weights, nodes, count = self.workers.sum(found, "the sizes of the sub-graphs").tolist()
        return weights, nodes, int(count)

    def _add_gradient(self, batch: Batch | None, share: float, last: bool) -> Tensor:
        """Adds a sub-graph's gradient; with the last one, gradients of all workers are added."""
        size = self.workers.size
        memory = nullcontext()
        if batch is not None:
            memory = needs_memory(  # type: ignore[assignment]
                f"a training step on {batch.source.num_nodes} nodes"
            )
        alone = nullcontext() if last or size == 1 else self.part.no_sync()  # type: ignore[operator]
        with memory, drawing_from(self.generators), alone:
            loss = self.part(batch, share)
            waiting = self.workers.waiting("gradients") if last and size > 1 else nullcontext()
            with waiting:
                (loss * size).backward()  # the mean over the workers follows
        found: Tensor = loss.detach()
        return found

    @contextmanager
    def _mean_buffers(self, mine: int, count: int) -> Iterator[Any]:
        """Makes running statistics the mean of those after each sub-graph of the step.

        Gives what must be called before each sub-graph: all of them start from the same statistics.
        """
        buffers = [b for b in self.model.buffers() if b.is_floating_point()]
        counters = [b for b in self.model.buffers() if not b.is_floating_point()]
        if not buffers:
            yield lambda: None
            return
        before, counted = [b.clone() for b in buffers], [c.clone() for c in counters]
        total = torch.zeros(sum(b.numel() for b in buffers), dtype=torch.float64)
        started = 0

        def collect() -> None:
            nonlocal total
            total += torch.cat([b.detach().reshape(-1).double().cpu() for b in buffers])

        def next_unit() -> None:
            nonlocal started
            if started:
                collect()
            started += 1
            for buffer, value in zip(buffers, before, strict=True):
                buffer.copy_(value)

        yield next_unit
        if started:
            collect()
        mean = self.workers.sum(total, "the running statistics") / count
        for buffer, part in zip(
            buffers, torch.split(mean, [b.numel() for b in buffers]), strict=True
        ):
            buffer.copy_(part.reshape(buffer.shape))
        for counter, value in zip(counters, counted, strict=True):
            counter.copy_(value + 1)


class _PartOfLoss(Module):
    """A sub-graph's part of the loss, as a module that DDP can wrap."""

    def __init__(self, step: SharedStep) -> None:
        super().__init__()
        self.model = step.model
        # Not the step itself, which holds this module: a cycle would outlive the group.
        self._step = weakref.ref(step)

    def forward(self, batch: Batch | None, share: float) -> Tensor:
        # Every weight gets a gradient, also one that this sub-graph does not use: DDP waits for it.
        nothing = torch.stack([p.sum() for p in self.model.parameters()]).sum() * 0.0
        if batch is None:
            return nothing
        step = self._step()
        assert step is not None
        return step.loss(batch, share) + nothing
