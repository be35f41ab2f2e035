"""Starts a group of workers with Ray Train: placement, elastic size, restarts.

Ray Train starts one process per worker and connects them with `torch.distributed`. In each, a
function of the library does what it does under torchrun. What it has to say comes to this process
through a mailbox: lines of progress, notes, and errors as one line with the rank.
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
from lgcn.workers.group import TIMEOUT, WorkerError, connected
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
    os.environ.setdefault("RAY_CHDIR_TO_TRIAL_DIR", "0")  # paths are those of the user
    os.environ.setdefault("RAY_TRAIN_METRICS_ENABLED", "0")
    cpus, gpus = size.most * size.threads, size.most if size.gpu else 0
    folder = _folder_in(shared)
    try:
        with ray_cluster(address, cpus=cpus, gpus=gpus) as ray:
            mailbox = _mailbox(ray)
            given = {"work": work, "settings": json.dumps(settings), "mailbox": mailbox}
            given |= {"seen": str(folder), "cwd": str(Path.cwd()), "version": _version()}
            fit = _Fit(_trainer(given, size, folder, max_failures))
            return _watch(ray, fit, mailbox, size, on_line, room_seconds, max_failures)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _watch(
    ray: Any,
    fit: _Fit,
    mailbox: Any,
    size: GroupSize,
    on_line: Callable[[str, str], None],
    room_seconds: float,
    max_failures: int,
) -> dict[str, Any]:
    """Passes on the workers' lines until the group has ended."""
    began = time.monotonic()
    fit.thread.start()
    while True:
        ended = not fit.thread.is_alive()  # asked first, so that no line is lost
        box = json.loads(ray.get(mailbox.take.remote(), timeout=TIMEOUT))
        for kind, text in box["lines"]:
            on_line(kind, text)
        if ended:
            break
        if box["idle"] > room_seconds and time.monotonic() - began > room_seconds:
            raise ClusterError(
                f"the cluster had no room for {size} for {room_seconds:g} s: it has "
                f"{_resources(ray)}. Ask for fewer --workers or --threads, or add nodes"
            )
        fit.thread.join(POLL_SECONDS)
    if fit.error is not None:
        raise _as_ours(fit.error, max_failures) from None
    result: dict[str, Any] = json.loads(fit.result.return_value)
    return result


class _Fit:
    """Ray Train's loop in a thread: this one stays free for lines, limits and Ctrl-C."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        self.result: Any = None
        self.error: Exception | None = None
        self.thread = threading.Thread(target=self._run, daemon=True, name="ray train")

    def _run(self) -> None:
        try:
            self.result = self.trainer.fit()
        except Exception as error:
            self.error = error


def _trainer(given: dict[str, Any], size: GroupSize, folder: Path, max_failures: int) -> Any:
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer
    from ray.train.v2.api.config import LoggingConfig

    resources = {"CPU": float(size.threads)} | ({"GPU": 1.0} if size.gpu else {})
    threads = str(size.threads)
    variables = {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
    variables["OMP_WAIT_POLICY"] = "passive"
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
            storage_path=str(folder),
            failure_config=FailureConfig(max_failures=max_failures),
            logging_config=LoggingConfig(log_level="CRITICAL"),
            callbacks=[_end_at_errors(given["mailbox"])],
            worker_runtime_env={"env_vars": variables},
        ),
    )


# -- In the workers.


class FinalError(Exception):
    """An error of the library in a worker, as JSON: it would come again after a restart."""


def _in_worker(given: dict[str, Any]) -> str:
    """Runs the function in a worker; gives its result as JSON."""
    import ray

    mailbox = given["mailbox"]
    with connected() as workers:

        def post(kind: str, text: str) -> None:
            ray.get(mailbox.post.remote(kind, text))

        try:
            _check_node(given)
            # Rank 0 counts, so that all ranks have the same number.
            attempt = ray.get(mailbox.begin.remote()) if workers.is_first else None
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


# -- Between them.


class _Mailbox:
    """An actor that holds what workers say until the process that started them asks."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []
        self.attempts = 0
        self.idle_since: float | None = time.monotonic()

    def begin(self) -> int:
        """A group is complete; gives the number of groups before it."""
        self.attempts += 1
        self.idle_since = None
        return self.attempts - 1

    def end(self) -> None:
        """A group has ended; perhaps another one follows."""
        if self.idle_since is None:
            self.idle_since = time.monotonic()

    def post(self, kind: str, text: str) -> None:
        self.lines.append((kind, text))

    def take(self) -> str:
        lines, self.lines = self.lines, []
        idle = 0.0 if self.idle_since is None else time.monotonic() - self.idle_since
        return json.dumps({"lines": lines, "idle": idle})


def _mailbox(ray: Any) -> Any:
    """The mailbox, on this node: it lives as long as the process that asks it."""
    node = ray.get_runtime_context().get_node_id()
    strategy = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node, soft=False)
    return ray.remote(num_cpus=0, scheduling_strategy=strategy)(_Mailbox).remote()


def _end_at_errors(mailbox: Any) -> Any:
    """A callback of Ray Train that ends everything at an error that would come again."""
    from ray.train import UserCallback

    class EndAtErrors(UserCallback):  # type: ignore[misc]
        def after_exception(
            self, run_context: Any, worker_exceptions: dict[int, Exception]
        ) -> None:
            for error in worker_exceptions.values():
                if isinstance(error, FinalError):
                    raise error  # Ray Train does not try again after errors of callbacks
            mailbox.post.remote("note", _why(worker_exceptions))
            mailbox.end.remote()

    return EndAtErrors()


# -- Errors.


def _as_ours(error: Any, max_failures: int) -> LGCNError:
    """An error of Ray Train in one line."""
    cause = getattr(error, "controller_failure", error)
    while cause is not None and not isinstance(cause, FinalError):
        cause = cause.__cause__
    if isinstance(cause, FinalError):
        told = json.loads(str(cause))
        found: Any = getattr(errors, told["kind"], LGCNError)
        known = isinstance(found, type) and issubclass(found, LGCNError)
        ours: LGCNError = (found if known else LGCNError)(f"rank {told['rank']}: {told['text']}")
        return ours
    failures = getattr(error, "worker_failures", None)
    if failures:
        return WorkerError(
            f"{_why(failures)}, and the workers were started again {max_failures} times "
            "(--max-failures)"
        )
    return ClusterError(f"Ray Train stopped: {_last_line(error)}")


def _why(failures: dict[int, Exception]) -> str:
    """Which rank stopped first, as far as can be told, and why."""

    def is_a_consequence(rank: int) -> bool:
        return isinstance(failures[rank], WorkerError)

    rank = min(failures, key=lambda one: (is_a_consequence(one), one))
    error = getattr(failures[rank], "health_check_failure", failures[rank])
    if is_a_consequence(rank):
        return str(error)
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
