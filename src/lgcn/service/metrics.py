"""Numbers about the service, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Requests, latency, batches, queue and errors of one service.

    Args:
        queue_length: Gives the number of requests that wait.
    """

    def __init__(self, queue_length: Callable[[], int]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        labels = ("method", "route")
        self._requests = Counter(
            "lgcn_requests", "Requests answered.", (*labels, "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "lgcn_request_seconds",
            "Time from the first byte of a request to its answer.",
            labels,
            buckets=SECONDS,
            registry=self.registry,
        )
        self._batch = Histogram(
            "lgcn_batch_size",
            "Requests that the model computed together.",
            buckets=SIZES,
            registry=self.registry,
        )
        self._errors = Counter(
            "lgcn_errors", "Requests answered with an error.", ("status",), registry=self.registry
        )
        queue = Gauge("lgcn_queue_length", "Requests that wait.", registry=self.registry)
        queue.set_function(queue_length)

    def batch(self, size: int) -> None:
        """Counts a batch of requests."""
        self._batch.observe(size)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Counts a request that was answered.

        Args:
            method: The HTTP method.
            route: The pattern of its address, so that there are few.
            status: The HTTP status.
            seconds: How long it took.
        """
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)
        if status >= 400:
            self._errors.labels(str(status)).inc()

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self.registry)
