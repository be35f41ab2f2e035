"""What a request may ask for."""

from __future__ import annotations

from dataclasses import dataclass

from lgcn.utils.numbers import real_number, whole_number
from lgcn.utils.sizes import parse_memory


@dataclass(frozen=True)
class Limits:
    """Limits of the service.

    Args:
        max_body: Bytes of a request's body, or a size such as `"1MB"`. (default: 1 MB)
        max_nodes: Nodes per request, known and new. (default: 1000)
        max_edges: Edges of new nodes per request. (default: 10,000)
        max_neighbours: Nodes that the prediction of new nodes may depend on. (default: 200,000)
        timeout: Seconds per request. (default: 10)
        queue: Requests that may wait. (default: 128)
        max_batch: Requests that are computed together. (default: 32)
        threads: Threads that compute an answer. Most answers are small, and several threads would
            wait for each other. (default: 1)
    """

    max_body: int | str = 1_000_000
    max_nodes: int = 1000
    max_edges: int = 10_000
    max_neighbours: int = 200_000
    timeout: float = 10.0
    queue: int = 128
    max_batch: int = 32
    threads: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_body", parse_memory(self.max_body, "max_body"))
        real_number("timeout", self.timeout, 0.001, 3600)
        for name in ("max_nodes", "max_edges", "max_neighbours", "queue", "max_batch", "threads"):
            whole_number(name, getattr(self, name), 1)

    @property
    def body_bytes(self) -> int:
        """`max_body` in bytes."""
        return int(self.max_body)
