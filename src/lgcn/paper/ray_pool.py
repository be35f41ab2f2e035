"""Tasks on the nodes of a Ray cluster. A task that fails, or whose node dies, stops no other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from lgcn.errors import LGCNError, first_line_of
from lgcn.paper.pool import Failure
from lgcn.utils.machine import THREAD_VARIABLES
from lgcn.workers.ray_cluster import ClusterError, ray_cluster

Task = TypeVar("Task")

RETRIES = 2  # of a task whose process or node died
IDLE_SECONDS = 300.0  # how long to wait for a node that has the cores for a task
_PASSED_ON = ("LGCN_DATA", "OMP_WAIT_POLICY")


def run_tasks_on_ray(
    tasks: Sequence[Task],
    function: Callable[[Task], Any],
    on_result: Callable[[Task, Any], None],
    *,
    address: str | None,
    threads: int = 1,
    retries: int = RETRIES,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Calls a function with every task, as `lgcn.paper.pool.run_tasks` does.

    Args:
        tasks: The tasks; they are pickled.
        function: Called with a task; the nodes must be able to import it.
        on_result: Called in this process with each task and its result, or a `Failure`.
        address: Of the cluster; `None` starts one of this machine alone.
        threads: Cores and threads per task. (default: 1)
        retries: How often a task is tried again whose process or node died. (default: 2)
        idle_seconds: How long no node may have the cores for a task. (default: 300)
    """
    if not tasks:
        return
    variables = dict.fromkeys(THREAD_VARIABLES, str(threads))
    variables |= {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    with ray_cluster(address, cpus=max(threads, os.cpu_count() or 1)) as ray:
        remote = ray.remote(
            num_cpus=threads,
            max_retries=retries,
            runtime_env={"env_vars": variables},
            scheduling_strategy="SPREAD",
        )(_call)
        pending = {remote.remote(function, task): task for task in tasks}
        idle = 0.0
        while pending:
            ready, _ = ray.wait(list(pending), timeout=min(10.0, idle_seconds))
            idle = 0.0 if ready or _has_room(ray, threads) else idle + min(10.0, idle_seconds)
            if idle >= idle_seconds:
                raise ClusterError(
                    f"no node of the cluster had {threads} cores for {idle_seconds:g} s; "
                    f"{len(pending)} tasks are left"
                )
            for reference in ready:
                on_result(pending.pop(reference), _result(ray, reference, retries))


def _call(function: Callable[[Any], Any], task: Any) -> Any:
    """Runs in a process of a node."""
    try:
        return function(task)
    except LGCNError as error:
        return Failure(str(error))
    except Exception as error:
        return Failure(f"{type(error).__name__}: {error}")


def _result(ray: Any, reference: Any, retries: int) -> Any:
    try:
        return ray.get(reference)
    except ray.exceptions.WorkerCrashedError:
        return Failure(f"its process or its node died, also when it was tried {retries} times more")
    except ray.exceptions.RayError as error:
        return Failure(f"{type(error).__name__}: {first_line_of(error)}")


def _has_room(ray: Any, threads: int) -> bool:
    """Whether a node that is alive has enough cores, be they free or not."""
    return any(node["Alive"] and node["Resources"].get("CPU", 0) >= threads for node in ray.nodes())
