"""A small torchrun for tests: the harness's processes, started again when one of them fails."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from typing import Any

from .processes import Ended, Group, new_store, texts


def launch(
    function: Callable[..., Any],
    size: int,
    *arguments: Any,
    max_restarts: int = 0,
    timeout: float = 60,
    grace: float = 5,
    environment: Mapping[str, str | None] | None = None,
) -> list[list[Ended]]:
    """Runs `function(*arguments)` in `size` processes as `torchrun --max-restarts` does.

    If a process fails or is killed, the others get SIGTERM, and later SIGKILL; then all are started
    again, with TORCHELASTIC_RESTART_COUNT one higher and with the same store.

    Args:
        function, size, arguments, environment: See `tests.workers.processes.run_processes`.
        max_restarts: How often all are started again. (default: 0)
        timeout: Seconds of one attempt, after which the test fails. (default: 60)
        grace: Seconds between SIGTERM and SIGKILL. torchrun has 30. (default: 5)

    Returns:
        For each attempt, how its processes ended. The last one may have failed as well.
    """
    attempts: list[list[Ended]] = []
    store = new_store()
    while True:
        variables = {"TORCHELASTIC_RESTART_COUNT": str(len(attempts)), **(environment or {})}
        with Group(function, size, arguments, variables, store) as group:
            running, failed = set(range(size)), False
            while running and not failed:
                left = group.started + timeout - time.monotonic()
                ready = group.wait(running, left)
                if not ready:
                    group.end(signal.SIGKILL)
                    attempts.append([group.ended(rank) for rank in range(size)])
                    raise AssertionError(
                        f"attempt {len(attempts)} took more than {timeout:g} s; ranks "
                        f"{sorted(running)} of {size} were still running\n{texts(attempts[-1])}"
                    )
                running -= ready
                failed = any(group.status(rank) for rank in ready)
            group.end(signal.SIGTERM, grace)
            attempts.append([group.ended(rank) for rank in range(size)])
        if not failed or len(attempts) > max_restarts:
            return attempts
