"""Random generators that belong to one training run, so that nothing else can affect them.

Torch's global generator belongs to all threads. Within `drawing_from` the dropout of this
package draws from the given generators instead, and within `initializing_from` the
initialisation of layers does, that of torch's and PyG's too. Both hold for the calling thread
alone. Outside of them the global generator is used, as users of single layers expect.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode


class Generators:
    """A generator on the CPU and one on the device of a training run, seeded together.

    They give the same numbers as torch's global generator with the same seed.

    Args:
        device: The device. (default: the CPU)
    """

    def __init__(self, device: torch.device | str = "cpu") -> None:
        self._by_type = {"cpu": torch.Generator()}
        device = torch.device(device)
        if device.type != "cpu":
            self._by_type[device.type] = torch.Generator(device)

    def manual_seed(self, seed: int) -> None:
        for generator in self._by_type.values():
            generator.manual_seed(seed)

    def on(self, device: torch.device) -> torch.Generator:
        """The generator for tensors on that device."""
        return self._by_type[device.type]


def random_seed(*numbers: int) -> int:
    """A seed for the generators, derived from integers such as a seed and an epoch."""
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> 1)


class _Current(threading.local):
    generators: Generators | None = None


_current = _Current()


def current_generator(device: torch.device) -> torch.Generator | None:
    """The generator for tensors on that device; `None` is torch's global generator."""
    generators = _current.generators
    return None if generators is None else generators.on(device)


@contextmanager
def drawing_from(generators: Generators) -> Iterator[None]:
    """Within this context, dropout in this thread draws from the generators."""
    before, _current.generators = _current.generators, generators
    try:
        yield
    finally:
        _current.generators = before


# Functions with which layers initialise their weights. The others of torch.nn.init call one of
# these.
_FILLS: frozenset[Callable[..., Any]] = frozenset(
    {
        torch.Tensor.uniform_,
        torch.Tensor.normal_,
        torch.nn.init.uniform_,
        torch.nn.init.normal_,
        torch.nn.init.kaiming_uniform_,
    }
)


class initializing_from(TorchFunctionMode):
    """Within this context, weights are initialised in this thread from the generators.

    The constructors of torch's and PyG's layers have no argument for a generator. Weights are
    created on the CPU.
    """

    def __init__(self, generators: Generators) -> None:
        super().__init__()
        self.generator = generators.on(torch.device("cpu"))

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = dict(kwargs or {})
        if func in _FILLS and given.get("generator") is None:
            given["generator"] = self.generator
        return func(*args, **given)
