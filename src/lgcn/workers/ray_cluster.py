"""Connects to a Ray cluster, or starts one on this machine, within a time limit.

The only module that calls `ray.init`, which waits for minutes at an address where nothing answers,
or ends the process. So another process tries the address first.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from lgcn.errors import LGCNError, UsageError

CONNECT_SECONDS = 20.0
OBJECT_STORE = 100 * 2**20  # bytes of a local cluster; only small messages go through it
INSTALL = "pip install 'lgcn[ray]'"

# What workers print belongs to their logs; errors and progress come as messages.
_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # sends nothing to anyone
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
_PROBE = """
import sys, ray
try:
    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
except BaseException as error:
    print("reason:", " ".join(str(error).split()))
    sys.exit(1)
ray.shutdown()
"""


class ClusterError(LGCNError):
    """The Ray cluster cannot be reached, or has no room."""


@contextmanager
def ray_cluster(
    address: str | None = None,
    *,
    cpus: int = 1,
    gpus: int | None = None,
    seconds: float = CONNECT_SECONDS,
) -> Iterator[Any]:
    """The module `ray`, connected while the block runs. What the block started ends with it.

    Args:
        address: HOST:PORT of the head node, or `"auto"` for the cluster that this machine belongs
            to. (default: a cluster of this machine alone, for as long as the block runs)
        cpus, gpus: What a cluster of this machine alone offers. (default: 1, and all GPUs)
        seconds: How long connecting may take. (default: 20)
    """
    for name, value in _ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    ray = import_ray()
    _mute()
    before = _handlers()
    try:
        if address is None:
            ray.init(
                address="local",  # also if a cluster runs here, or RAY_ADDRESS names one
                num_cpus=cpus,
                num_gpus=gpus,
                include_dashboard=False,
                object_store_memory=OBJECT_STORE,
                **_QUIET,
            )
        else:
            _check(address, seconds)
            ray.init(address=address, **_QUIET)
    except (RuntimeError, OSError, ValueError, TimeoutError) as error:
        where = "on this machine" if address is None else f"at {address}"
        raise ClusterError(f"Ray did not start {where}: {_in_one_line(str(error))}") from error
    finally:
        _restore(before)
    try:
        yield ray
    finally:
        ray.shutdown()
        _restore(before)


def import_ray() -> Any:
    """The modules `ray` and `ray.train`; raises UsageError if the extra is missing."""
    try:
        ray = import_module("ray")
        import_module("ray.train")
    except ImportError as error:
        raise UsageError(f"Ray is not installed completely: {INSTALL}") from error
    return ray


def check_address(address: str) -> None:
    """Raises UsageError if the text is no address of a cluster."""
    host, _, port = address.rpartition(":")
    right = host and "/" not in host and port.isdecimal() and int(port) < 2**16
    if address != "auto" and not right:
        raise UsageError(
            f"address must be HOST:PORT of the head node, such as 10.0.0.1:6379, or auto, got "
            f"{address!r:.80}"
        )


def _check(address: str, seconds: float) -> None:
    """Raises ClusterError if no cluster answers at the address in time."""
    check_address(address)
    started = time.monotonic()
    if address != "auto":
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), seconds).close()
        except OSError as error:
            raise ClusterError(
                f"no Ray cluster answers at {address} within {seconds:g} s "
                f"({error.strerror or error}). Check the "
                "address and that the head node runs (ray status)"
            ) from error
    left = max(1.0, seconds - (time.monotonic() - started))
    probe = subprocess.Popen(
        [sys.executable, "-c", _PROBE, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        said, _ = probe.communicate(timeout=left)
    except subprocess.TimeoutExpired:
        said = ""
    finally:
        probe.kill()
        probe.wait()
    if probe.returncode != 0:
        reason = said.partition("reason:")[2].strip()
        why = f" ({_in_one_line(reason)})" if reason else ""
        raise ClusterError(
            f"no Ray cluster answers at {address} within {seconds:g} s{why}. Check the address, "
            "that this machine is a node of the cluster, and that versions agree (ray status)"
        )


def _mute() -> None:
    """Keeps messages of Ray's nodes from standard output; Ray has no option for it."""
    module: Any = import_module("ray._private.worker")
    if hasattr(module, "print_to_stdstream"):
        module.print_to_stdstream = lambda *_, **__: None


def _in_one_line(text: str) -> str:
    first = re.split(r"(?<=[.!])\s", " ".join(text.split()))[0]
    return first.rstrip(".")[:300]


def _handlers() -> dict[int, Any]:
    """The handlers of signals, which Ray replaces: Ctrl-C and SIGTERM end a command in order."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        with suppress(TypeError, ValueError):
            signal.signal(number, handler)
