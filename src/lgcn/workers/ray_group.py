"""Starts a group of workers with Ray Train: placement, elastic size, restarts.

Ray Train starts one process per worker and connects them with `torch.distributed`. In each, a
function of the library does what it does under torchrun. What it has to say comes back through an
actor: lines of progress, notes, and errors as one line with the rank.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lgcn import errors
from lgcn.errors import LGCNError, WriteError, first_line_of
from lgcn.utils.machine import THREAD_VARIABLES
from lgcn.workers.connect import connected
from lgcn.workers.group import TIMEOUT, WorkerError
from lgcn.workers.launcher import RESTARTS
from lgcn.workers.ray_cluster import ClusterError, ray_cluster

ROOM_SECONDS = 300.0  # how long a group may wait for free nodes
POLL_SECONDS = 0.2


class Work(Protocol):
    """What every worker runs: a function that other processes can import.

    Its settings and its result are JSON. `post` sends a line to the process that started the group;
    its first argument says of which kind it is.
    """

    def __call__(
        self, settings: Any, *, workers: Any, post: Callable[[str, str], None]
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class GroupSize:
    """How many workers a group has, and what each of them has.

    Attributes:
        least, most: The numbers of workers. If they differ, the group shrinks when nodes disappear
            and grows when they come back.
        threads: CPUs of a worker. (default: 1)
        gpu: Whether each has a GPU. (default: `False`)
    """

    least: int
    most: int
    threads: int = 1
    gpu: bool = False

    def __str__(self) -> str:
        number = f"{self.least}" if self.least == self.most else f"{self.least} to {self.most}"
        each = f"{self.threads} CPU{'s' * (self.threads > 1)}{' and a GPU' * self.gpu}"
        return f"{number} worker{'s' * (self.most > 1)} with {each} each"


def run_group(
    work: Work,
    settings: dict[str, Any],
    size: GroupSize,
    *,
    shared: Path,
    address: str | None = None,
    max_failures: int = 3,
    on_line: Callable[[str, str], None] = lambda kind, text: None,
    room_seconds: float = ROOM_SECONDS,
) -> dict[str, Any]:
    """Runs a function in every worker of a group, and returns what rank 0 returned.

    A worker that disappears ends the group, which is started again. An error of the library, such
    as a missing file, ends everything: to try again would not help.

    Args:
        work: The function.
        settings: Its first argument, as JSON.
        size: How many workers, and what each needs.
        shared: A folder that all nodes see. Files of Ray Train lie there while the group runs.
        address: See `lgcn.workers.ray_cluster.ray_cluster`. (default: this machine alone)
        max_failures: How often the group is started again. (default: 3)
        on_line: Called with the kind and the text of each line that a worker posts.
            (default: lines are dropped)
        room_seconds: How long to wait for nodes with room for the group. (default: 300)
    """
    cpus, gpus = size.most * size.threads, size.most if size.gpu else 0
    folder = _folder_in(shared)
    given: dict[str, Any] = {"work": work, "settings": json.dumps(settings)}
    given |= {"seen": str(folder), "cwd": str(Path.cwd()), "version": _version()}
    try:
        with ray_cluster(address, cpus=cpus, gpus=gpus) as ray:
            manager = _manager(ray)
            end = manager.run.remote(given, size, max_failures)
            return _watch(ray, manager, end, size, on_line, room_seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    ray: Any,
    manager: Any,
    end: Any,
    size: GroupSize,
    on_line: Callable[[str, str], None],
    room_seconds: float,
) -> dict[str, Any]:
    """Passes on the workers' lines until the group has ended."""
    ended = False
    while not ended:
        ended = bool(ray.wait([end], timeout=POLL_SECONDS)[0])  # first, so that no line is lost
        box = json.loads(ray.get(manager.take.remote(), timeout=TIMEOUT))
        for kind, text in box["lines"]:
            on_line(kind, text)
        if box["idle"] > room_seconds and not ended:
            raise ClusterError(
                f"the cluster had no room for {size} for {room_seconds:g} s: it has "
                f"{_resources(ray)}. Ask for fewer --workers or --threads, or add nodes"
            )
    told = json.loads(ray.get(end))
    if "error" in told:
        raise _error(told["error"])
    result: dict[str, Any] = json.loads(told["result"])
    return result


# -- In a process of the cluster, beside the one that started it.


class _Manager:
    """An actor that runs Ray Train's loop, and holds what workers say until it is asked for.

    Not in the process that started the group: that one can be stopped at any time.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.lines: list[tuple[str, str]] = []
        self.attempts = 0
        self.idle_since: float | None = time.monotonic()

    def run(self, given: dict[str, Any], size: GroupSize, max_failures: int) -> str:
        """Starts the group, and again when it must be; gives the result or the error as JSON."""
        import ray

        manager = ray.get_runtime_context().current_actor
        try:
            result = _trainer({**given, "manager": manager}, size, max_failures).fit()
        except Exception as error:
            return json.dumps({"error": _as_ours(error, max_failures)})
        return json.dumps({"result": result.return_value})

    def begin(self) -> int:
        """A group is complete; gives the number of groups before it."""
        self.attempts += 1
        self.idle_since = None
        return self.attempts - 1

    def end(self, why: str) -> None:
        """A group has ended; another one follows, unless that happened too often."""
        if self.idle_since is None:
            self.idle_since = time.monotonic()
        self.post("note", why)

    def post(self, kind: str, text: str) -> None:
        with self.lock:
            self.lines.append((kind, text))

    def take(self) -> str:
        with self.lock:
            lines, self.lines = self.lines, []
        since = self.idle_since
        idle = 0.0 if since is None else time.monotonic() - since
        return json.dumps({"lines": lines, "idle": idle})


def _manager(ray: Any) -> Any:
    """The manager, on this node: it lives as long as the process that started the group."""
    node = ray.get_runtime_context().get_node_id()
    remote = ray.remote(
        num_cpus=0,
        max_concurrency=64,
        runtime_env={"env_vars": _variables()},
        scheduling_strategy=ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node, soft=False
        ),
    )
    return remote(_Manager).remote()


def _variables() -> dict[str, str]:
    """Environment variables of Ray Train; those that the user has set stay."""
    ours = {
        "RAY_CHDIR_TO_TRIAL_DIR": "0",  # paths are those of the user
        "RAY_TRAIN_METRICS_ENABLED": "0",
        # Ray Train asks for nodes that have just died. Then it asks for those that are left.
        "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "20",
    }
    theirs = {name: value for name, value in os.environ.items() if name.startswith("RAY_TRAIN_")}
    return {**ours, **theirs}


def _trainer(given: dict[str, Any], size: GroupSize, max_failures: int) -> Any:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.train.v2.api.config import LoggingConfig

    resources = {"CPU": float(size.threads)} | ({"GPU": 1.0} if size.gpu else {})
    variables = dict.fromkeys(THREAD_VARIABLES, str(size.threads)) | {"OMP_WAIT_POLICY": "passive"}
    return TorchTrainer(
        _in_worker,
        train_loop_config=given,
        # Messages are tensors on the CPU, gradients may be on GPUs.
        torch_config=TorchConfig(
            backend="cpu:gloo,cuda:nccl" if size.gpu else "gloo", timeout_s=int(TIMEOUT)
        ),
        scaling_config=ScalingConfig(
            num_workers=size.least if size.least == size.most else (size.least, size.most),
            use_gpu=size.gpu,
            resources_per_worker=resources,
        ),
        run_config=RunConfig(
            name="group",
            storage_path=given["seen"],
            failure_config=FailureConfig(max_failures=max_failures),
            logging_config=LoggingConfig(log_level="CRITICAL"),
            callbacks=[_end_at_errors(given["manager"])],
            worker_runtime_env={"env_vars": variables},
        ),
    )


def _end_at_errors(manager: Any) -> Any:
    """A callback of Ray Train that ends everything at an error that would come again."""
    from ray.train import UserCallback

    class EndAtErrors(UserCallback):  # type: ignore[misc]
        def after_exception(
            self, run_context: Any, worker_exceptions: dict[int, Exception]
        ) -> None:
            for error in worker_exceptions.values():
                if isinstance(error, FinalError):
                    raise error  # Ray Train does not try again after errors of callbacks
            manager.end.remote(_why(worker_exceptions))

    return EndAtErrors()


# -- In the workers.


class FinalError(Exception):
    """An error of the library in a worker, as JSON: it would come again after a restart."""


def _in_worker(given: dict[str, Any]) -> str:
    """Runs the function in a worker; gives its result as JSON."""
    import ray

    manager = given["manager"]
    with connected() as workers:

        def post(kind: str, text: str) -> None:
            ray.get(manager.post.remote(kind, text))

        try:
            _check_node(given)
            # Rank 0 counts, so that all ranks have the same number.
            attempt = ray.get(manager.begin.remote()) if workers.is_first else None
            attempt = workers.share(attempt, "the number of restarts")
            os.environ[RESTARTS] = str(attempt)
            if attempt and workers.is_first:
                text = f"restart {attempt}, with {workers.size} worker{'s' * (workers.size > 1)}"
                post("note", text)
            result = given["work"](json.loads(given["settings"]), workers=workers, post=post)
            return json.dumps(result)
        except WorkerError:
            raise  # another rank disappeared: a restart helps
        except (LGCNError, OSError) as error:
            text = str(error) if isinstance(error, LGCNError) else first_line_of(error)
            message = {"rank": workers.rank, "text": text, "kind": type(error).__name__}
            raise FinalError(json.dumps(message)) from None


def _check_node(given: dict[str, Any]) -> None:
    """Raises an error if this node sees other files, or has another lgcn, than the first."""
    cwd, node = Path(given["cwd"]), socket.gethostname()
    if cwd.is_dir():
        os.chdir(cwd)
    if given["version"] != _version():
        raise errors.UsageError(
            f"node {node} has lgcn {_version()}, and the command {given['version']}: install the "
            "same version on all nodes"
        )
    if not Path(given["seen"]).is_dir():
        raise errors.DataError(
            f"node {node} does not see the folder {Path(given['seen']).parent}: put --out on "
            "storage that all nodes share"
        )


def _version() -> str:
    from importlib.metadata import version

    return version("lgcn")


# -- Errors.


def _as_ours(error: Any, max_failures: int) -> dict[str, str]:
    """An error of Ray Train in one line, with the name of its class here."""
    cause = getattr(error, "controller_failure", error)
    if isinstance(cause, FinalError):
        told = json.loads(str(cause))
        named = told["text"].startswith("rank ")  # ranks tell each other
        text = told["text"] if named else f"rank {told['rank']}: {told['text']}"
        return {"kind": told["kind"], "text": text}
    failures = getattr(error, "worker_failures", None)
    if failures:
        often = f"the workers were started again {max_failures} times (--max-failures)"
        return {"kind": "WorkerError", "text": f"{_why(failures)}, and {often}"}
    return {"kind": "ClusterError", "text": f"Ray Train stopped: {_last_line(error)}"}


def _error(told: dict[str, str]) -> LGCNError:
    kinds: dict[str, Any] = {"WorkerError": WorkerError, "ClusterError": ClusterError}
    kind = kinds.get(told["kind"]) or getattr(errors, told["kind"], None)
    if not (isinstance(kind, type) and issubclass(kind, LGCNError)):
        kind = LGCNError  # one that only a part of the library knows, or the system's
    error: LGCNError = kind(told["text"])
    return error


def _why(failures: dict[int, Exception]) -> str:
    """Which rank stopped first, as far as can be told, and why."""

    def is_a_consequence(rank: int) -> bool:
        return isinstance(failures[rank], WorkerError)

    rank = min(failures, key=lambda one: (is_a_consequence(one), one))
    error = getattr(failures[rank], "health_check_failure", failures[rank])
    if is_a_consequence(rank):
        return str(error).partition(" (")[0]  # without what gloo says
    if type(error).__name__ in ("ActorDiedError", "RayActorError", "ActorUnavailableError"):
        return f"rank {rank} stopped: its process or its node died"
    return f"rank {rank} stopped: {type(error).__name__}: {first_line_of(error)}"


def _last_line(error: BaseException) -> str:
    lines: Sequence[str] = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__


def _resources(ray: Any) -> str:
    found = ray.cluster_resources()
    nodes = sum(node["Alive"] for node in ray.nodes())
    text = f"{found.get('CPU', 0):g} CPUs"
    if found.get("GPU"):
        text += f" and {found['GPU']:g} GPUs"
    return f"{text} on {nodes} node{'s' * (nodes != 1)}"


def _folder_in(shared: Path) -> Path:
    try:
        shared.mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=".lgcn-ray-", dir=shared.absolute()))
    except OSError as error:
        raise WriteError(f"cannot write to {shared}: {error.strerror or error}") from error
