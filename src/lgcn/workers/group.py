"""A group of processes that train or predict together, on one machine or on many.

The only module that calls `torch.distributed` for communication. Every wait has a time limit, and
an error says which rank waited, for what, and for how long. Messages are tensors or JSON, never
pickles.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lgcn.errors import LGCNError, UsageError, first_line_of
from lgcn.workers.board import Board

TIMEOUT = 300.0  # seconds; the default limit of a wait
# What errors of communication name; torch has no class of its own for those of gloo.
_NETWORK = re.compile("gloo|nccl|connection|timed out|timeout|peer|socket", re.IGNORECASE)


class WorkerError(LGCNError):
    """Another process of the group disappeared, or did not answer in time."""


class Workers:
    """The processes of a training or prediction. One process alone needs no network.

    Every method must be called by all ranks, in the same order. `what` names the data in errors.

    Attributes:
        rank: The number of this process, from 0.
        size: The number of processes.
        timeout: Seconds that a wait may take.
        board: What the ranks leave for each other, for errors. (default: nothing)
    """

    def __init__(
        self, rank: int = 0, size: int = 1, timeout: float = TIMEOUT, board: Board | None = None
    ) -> None:
        self.rank, self.size, self.timeout, self.board = rank, size, timeout, board

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes files and prints."""
        return self.rank == 0

    def sum(self, tensor: Tensor, what: str) -> Tensor:
        """The sum of a tensor over all ranks, in the same order on each."""
        if self.size == 1:
            return tensor
        total = tensor.clone()
        with self.waiting(what):
            dist.all_reduce(total)
        return total

    def share(self, message: Any, what: str, source: int = 0) -> Any:
        """A message of one rank, as JSON: its value there, on all ranks."""
        if self.size == 1:
            return message
        data = _bytes(message) if self.rank == source else torch.empty(0, dtype=torch.uint8)
        length = torch.tensor([data.numel()])
        with self.waiting(what):
            dist.broadcast(length, source)
            if self.rank != source:
                data = torch.empty(int(length), dtype=torch.uint8)
            dist.broadcast(data, source)
        return _message(data)

    def collect(self, message: Any, what: str) -> list[Any]:
        """The messages of all ranks, as JSON, in the order of the ranks, on each rank."""
        if self.size == 1:
            return [message]
        return [_message(data) for data in self.exchange([_bytes(message)] * self.size, what)]

    def exchange(self, parts: Sequence[Tensor], what: str) -> list[Tensor]:
        """Sends parts[i] to rank i, and returns what each rank sent to this one.

        The parts may have different numbers of rows, but must have one type and the same further
        dimensions on all ranks. They are on the CPU.
        """
        if len(parts) != self.size:
            raise ValueError(f"parts must have one tensor per rank ({self.size}), got {len(parts)}")
        if self.size == 1:
            return [parts[0]]
        counts = torch.tensor([part.shape[0] for part in parts])
        received = torch.empty_like(counts)
        with self.waiting(what):
            dist.all_to_all_single(received, counts)
            sizes = received.tolist()
            found = [
                part.new_empty((size, *parts[0].shape[1:]))
                for size, part in zip(sizes, parts, strict=True)
            ]
            # Pairs of point-to-point messages, because gloo has no all_to_all of uneven parts.
            found[self.rank] = parts[self.rank]
            requests = []
            for other in range(self.size):
                if other != self.rank and found[other].numel():
                    requests.append(dist.irecv(found[other], other))
            for other in range(self.size):
                if other != self.rank and parts[other].numel():
                    requests.append(dist.isend(parts[other].contiguous(), other))
            for request in requests:
                if request is not None:
                    request.wait(timedelta(seconds=self.timeout))
        return found

    def barrier(self, what: str) -> None:
        """Waits until all ranks are here."""
        self.sum(torch.zeros(1), what)

    def agree(self, values: dict[str, Any]) -> None:
        """Raises UsageError, on all ranks, if a value is not the same on all of them.

        Args:
            values: What must be the same, by name, such as the seed.
        """
        found = self.collect(values, "the settings of all ranks")
        for name in values:
            for rank, other in enumerate(found):
                if other.get(name) != found[0].get(name):
                    raise UsageError(
                        f"rank {rank} has {name} {other.get(name)!r}, rank 0 has "
                        f"{found[0].get(name)!r}: start all ranks with the same"
                    )

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Turns a failed wait for other ranks into a WorkerError that says who waited for what.

        Every method waits within such a block. DDP's gradients need their own.
        """
        if self.board is not None:
            self.board.waits(what)
        started = time.monotonic()
        try:
            yield
        except RuntimeError as error:
            if not _is_of_network(error):
                raise
            seconds = time.monotonic() - started
            explanation = "" if self.board is None else self.board.explanation()
            raise WorkerError(
                f"rank {self.rank} of {self.size} waited {seconds:.1f} s for {what}, in vain: "
                f"{explanation or 'another rank stopped, or did not answer'} ({reason(error)}; a "
                f"wait may take {self.timeout:g} s)"
            ) from error


def reason(error: BaseException) -> str:
    """What torch says about a broken connection, without its place in the source and advice."""
    text = re.sub(r"^.*?\[/\S+\] |^.* message: ", "", first_line_of(error))
    return text.split(". ")[0].strip()


def _is_of_network(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or _NETWORK.search(str(error)) is not None


def _bytes(message: Any) -> Tensor:
    return torch.frombuffer(bytearray(json.dumps(message).encode()), dtype=torch.uint8)


def _message(data: Tensor) -> Any:
    return json.loads(bytes(data.numpy()))
