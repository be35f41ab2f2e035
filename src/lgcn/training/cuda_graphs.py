"""Training steps on a GPU: on a stream of their own, and as CUDA graphs where that is possible.

A step launches some hundred kernels. If it runs the same kernels on the same memory each time, it
is captured once as a CUDA graph, and one launch then replays all of them. That is so on a fixed
batch, and on batches that are copied to the same arrays (`lgcn.training.padding`).
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.training.settings import Settings
from lgcn.utils.generators import Generators

# Steps on a batch before it is captured. They compile the kernels and compute what a graph caches,
# which has to wait for the GPU.
WARM_UP = 2
# Batches that are copied to the GPU before the CPU waits for it. Without a limit, the CPU could
# fill its memory with batches of a long epoch.
COPIES_AHEAD = 4
_capturing = threading.Lock()


def can_capture(model: Module, settings: Settings) -> bool:
    """Whether a step runs the same kernels on the same memory each time."""
    if not settings.hardware.capture or settings.optimisation.optimizer != "adam":
        return False  # Nadam counts its steps on the CPU
    return bool(getattr(model, "can_capture", False))


@dataclass
class Capture:
    """The CUDA graph of the steps on one batch."""

    steps: int = 0
    replay: Any = None
    loss: Tensor | None = None


class CudaStream:
    """Runs training steps on a CUDA stream.

    CUDA graphs cannot be captured on the default stream. The steps before a capture must not be
    there either, or the capture would have to wait for them.

    Args:
        device: The GPU.
        generators: Random generators for dropout.
    """

    def __init__(self, device: torch.device, generators: Generators) -> None:
        self.device = device
        self.generators = generators
        self.stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.pool: Any = None

    def run(
        self,
        step: Callable[[], Tensor],
        capture: Capture | None,
        load: Callable[[], None] | None = None,
    ) -> Tensor:
        """Runs a step, or replays it; gives its loss.

        Args:
            step: The step on a batch.
            capture: The capture of this batch; `None` if there is none.
            load: Fills the arrays that the step reads; it is not captured. (default: nothing to do)
        """
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream), _deterministic_convolutions:
            if load is not None:
                load()
            loss = step() if capture is None else self._replay(step, capture)
        torch.cuda.current_stream(self.device).wait_stream(self.stream)
        return loss

    def forget(self) -> None:
        """Waits for all steps, after whose end their CUDA graphs can be given up."""
        self.stream.synchronize()
        self.pool = None

    def _replay(self, step: Callable[[], Tensor], capture: Capture) -> Tensor:
        capture.steps += 1
        if capture.steps <= WARM_UP:
            return step()
        if capture.replay is None:
            capture.replay = torch.cuda.CUDAGraph()
            # Each replay then draws new numbers, and a new seed takes effect.
            capture.replay.register_generator_state(self.generators.on(self.device))
            # Other threads continue their training meanwhile, but do not capture.
            context = torch.cuda.graph(
                capture.replay,
                pool=self.pool,
                stream=self.stream,
                capture_error_mode="thread_local",
            )
            with _capturing, context:
                capture.loss = step()
            self.pool = capture.replay.pool()  # batches run one after the other and share memory
        capture.replay.replay()
        assert capture.loss is not None
        return capture.loss


class CopyStream:
    """Copies blocks of pinned memory to a GPU while it still computes the step before.

    Args:
        device: The GPU.
        num_bytes: Bytes of a block.
    """

    def __init__(self, device: torch.device, num_bytes: int) -> None:
        self.stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.stream.wait_stream(torch.cuda.current_stream(device))  # for the new memory
        self.arrived = torch.empty(num_bytes, dtype=torch.uint8, device=device)
        self.taken: Any = None  # when the latest block has left `arrived`
        self.copied: deque[Any] = deque()

    def copy(self, block: Tensor, target: Tensor) -> None:
        """Copies a block to `target` in the order of the current stream."""
        if len(self.copied) == COPIES_AHEAD:
            self.copied.popleft().synchronize()
        if self.taken is not None:
            self.stream.wait_event(self.taken)
        with torch.cuda.stream(self.stream):
            self.arrived.copy_(block, non_blocking=True)
        computing: Any = torch.cuda.current_stream(self.arrived.device)
        self.copied.append(self.stream.record_event())
        computing.wait_event(self.copied[-1])
        target.copy_(self.arrived)
        self.taken = computing.record_event()


class _DeterministicConvolutions:
    """Makes cuDNN add up the gradients of convolutions in a fixed order.

    The flag holds for all threads, so the last one to leave this context resets it.
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
