"""One step of training, replayed as a CUDA graph where the batch stays the same."""

import threading
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module
from torch.optim import Optimizer

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.training import metrics
from lgcn.training.agreement import agreement, agreement_weight
from lgcn.training.settings import Settings
from lgcn.utils.generators import Generators, drawing_from, random_seed
from lgcn.utils.out_of_memory import needs_memory

# Steps on a batch before it is captured: in these the kernels are compiled, and all that is found
# out once about a graph is found out, which needs waiting for the GPU.
WARM_UP = 2
_capturing = threading.Lock()


@dataclass
class _Batch:
    """A batch on the device, with the numbers, labels and weights of its training nodes."""

    source: Graph  # kept, so that its id stays taken
    graph: Graph
    nodes: Tensor
    y: Tensor
    weight: Tensor | None
    steps: int = 0
    replay: Any = None
    loss: Tensor | None = None


class Step:
    """Forward, backward and optimiser on a batch, without waiting for the device.

    Args:
        model: The model, on the device.
        optimizer: Its optimiser.
        settings: The settings: ``views``, ``agreement``, ``precision``, ``compile`` and
            ``capture`` count here.
        device: Where to compute.
        fixed: Whether the same batches come in each epoch. They then stay on the device and, on a
            GPU, are captured as CUDA graphs, which spares launching some hundred kernels one by
            one.
        generators: What dropout draws from. (default: new ones)
    """

    def __init__(
        self,
        model: Module,
        optimizer: Optimizer,
        settings: Settings,
        device: torch.device,
        fixed: bool,
        generators: Generators | None = None,
    ) -> None:
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.fixed = fixed
        self.generators = Generators(device) if generators is None else generators
        self.forward = torch.compile(model) if settings.hardware.compile else model
        self.autocast = settings.hardware.precision == "bfloat16"
        if self.autocast and device.type == "cpu":
            raise UsageError("precision=bfloat16 is for GPUs, got device cpu: use float32")
        self.settings = settings
        # On the device, since what a CUDA graph reads from Python stays as it was captured.
        self.agreement_weight = torch.zeros((), device=device)
        self.captures = fixed and device.type == "cuda" and can_capture(model, settings)
        # CUDA graphs cannot be captured on the default stream; what comes before must not be there
        # either, or the capture would have to wait for it.
        self.stream: Any = None
        if device.type == "cuda":
            self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool: Any = None
        self._kept: dict[int, _Batch] = {}

    def begin_epoch(self, epoch: int) -> None:
        """Seeds the generators; the weight of the agreement grows with the epochs."""
        # One seed an epoch instead of one stream: a resumed run needs no generator state.
        self.generators.manual_seed(random_seed(self.settings.seed, epoch))
        weight = self.settings.optimisation.agreement
        if weight:
            self.agreement_weight.fill_(agreement_weight(weight, epoch))

    def __call__(self, source: Graph) -> Tensor | None:
        """Trains on the batch; its loss, on the device, or None where it has no training nodes."""
        batch = self._batch(source)
        if batch.nodes.numel() == 0:
            return None
        memory = needs_memory(f"a training step on {source.num_nodes} nodes")
        with memory, drawing_from(self.generators):
            if self.stream is None:
                return self._run(batch)
            self.stream.wait_stream(torch.cuda.current_stream(self.device))
            with torch.cuda.stream(self.stream), _deterministic_convolutions:
                loss = self._replay(batch) if self.captures else self._run(batch)
            torch.cuda.current_stream(self.device).wait_stream(self.stream)
            return loss

    def _batch(self, source: Graph) -> _Batch:
        if id(source) in self._kept:
            return self._kept[id(source)]
        assert source.y is not None
        mask = source.train_mask
        nodes = torch.empty(0, dtype=torch.long) if mask is None else mask.nonzero().squeeze(1)
        weight = source.node_weight
        if weight is not None:  # the others add nothing to the loss
            nodes = nodes[weight[nodes] > 0]
            weight = weight[nodes].to(self.device)
        y = source.y[nodes].to(self.device)
        graph = _as_numbers(source).to(self.device)
        batch = _Batch(source, graph, nodes.to(self.device), y, weight)
        if self.fixed:
            self._kept[id(source)] = batch
        return batch

    def _replay(self, batch: _Batch) -> Tensor:
        batch.steps += 1
        if batch.steps <= WARM_UP:
            return self._run(batch)
        if batch.replay is None:
            batch.replay = torch.cuda.CUDAGraph()
            # Each replay then draws further on, or from where a new seed begins.
            batch.replay.register_generator_state(self.generators.on(self.device))
            # Trainings in other threads go on meanwhile, but do not capture too.
            capture = torch.cuda.graph(
                batch.replay,
                pool=self.pool,
                stream=self.stream,
                capture_error_mode="thread_local",
            )
            with _capturing, capture:
                batch.loss = self._run(batch)
            self.pool = batch.replay.pool()  # batches come one after the other and share memory
        batch.replay.replay()
        assert batch.loss is not None
        return batch.loss

    def _run(self, batch: _Batch) -> Tensor:
        chosen = self.settings.optimisation
        self.optimizer.zero_grad()
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            views = [self.forward(batch.graph.x, batch.graph).float() for _ in range(chosen.views)]
            losses = [
                metrics.loss(view.index_select(0, batch.nodes), batch.y, batch.weight)
                for view in views
            ]
            loss = torch.stack(losses).mean()
            if chosen.agreement:
                apart = agreement(views, chosen.sharpen, multi_label=batch.y.dim() == 2)
                loss = loss + self.agreement_weight * apart
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return loss.detach()


def _as_numbers(graph: Graph) -> Graph:
    """A whole graph may hold its features in a form that takes less memory; sub-graphs do not."""
    assert graph.x is not None
    if graph.x.dtype.is_floating_point and graph.x.dtype.itemsize >= 4:
        return graph
    return replace(graph, x=graph.features(), feature_scale=None)


class _DeterministicConvolutions:
    """cuDNN may add up the gradient of a convolution in any order, unless it is told not to.

    What it is told holds for all threads, so that the last to leave this context takes it back.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.before = False

    def __enter__(self) -> None:
        with self.lock:
            if self.users == 0:
                self.before = torch.backends.cudnn.deterministic
                torch.backends.cudnn.deterministic = True
            self.users += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                torch.backends.cudnn.deterministic = self.before


_deterministic_convolutions = _DeterministicConvolutions()


def can_capture(model: Module, settings: Settings) -> bool:
    """Whether a step runs the same kernels on the same memory each time, and may be captured."""
    if not settings.hardware.capture or settings.optimisation.optimizer != "adam":
        return False  # Nadam counts its steps on the CPU
    return bool(getattr(model, "can_capture", False))
