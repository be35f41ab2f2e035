"""A process that has imported everything and forks one process per trial.

``python -m tests.crash.server SHIM`` reads one JSON request per line from standard input, and
answers each with the status of the process. It runs with the shim in LD_PRELOAD.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import hashlib
import http.server
import json
import os
import select
import signal
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from typing import Any

import numba
import pyarrow as pa
import torch

import lgcn.paper.reproduce
import lgcn.paper.runner
from lgcn import LGCNClassifier
from lgcn.__main__ import command_line
from lgcn.datasets import synthetic
from lgcn.datasets.download import download
from lgcn.errors import LGCNError
from lgcn.paper.jobs import Job
from lgcn.paper.records import make_record
from lgcn.store.write_store import write_store
from lgcn.training import loop

from .scenarios import GRAPH, IMPORT, TABLE, TRAIN, write_inputs


def main() -> None:
    shim = ctypes.CDLL(sys.argv[1])
    shim.crash_arm.argtypes = [ctypes.c_char_p, ctypes.c_long, *[ctypes.c_int] * 3]
    requests, answers = sys.stdin, os.fdopen(os.dup(1), "w")
    _prepare()
    for line in requests:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(shim, request)  # does not return
        answers.write(json.dumps({"status": _wait(child, request["seconds"])}) + "\n")
        answers.flush()
    os._exit(0)  # without the warnings that libraries print at exit


def _prepare() -> None:
    """Compiles, or reads from Numba's cache, the kernels that trials need."""
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    pa.set_cpu_count(1)
    loop.CHECKPOINT_SECONDS = -1.0  # a checkpoint after each epoch
    # Training runs are replaced: they take no time, and need no data sets or processes.
    lgcn.paper.runner.run_tasks = _run_tasks
    lgcn.paper.reproduce._possible = lambda plan, root: (plan, [])
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_inputs(Path(folder))
        for arguments in (
            ("generate", "g", *GRAPH),
            IMPORT,
            (*TRAIN, "--out", "run"),
            ("predict", "run", "--output", "p.parquet"),
            ("predict", "run", "--output", "p.csv"),
            ("embed", "run", "--output", "e.parquet"),
            (*TABLE, "--seeds", "2", "--out", "tables"),
        ):
            with (
                Path(os.devnull).open("w") as nowhere,
                contextlib.redirect_stdout(nowhere),
                contextlib.redirect_stderr(nowhere),
                contextlib.suppress(SystemExit),
            ):
                _command(arguments)
        _save("0", "model")()
    gc.collect()
    gc.freeze()  # a collection would write to memory that is shared with the trials


def _run(shim: Any, request: dict[str, Any]) -> None:
    """The trial, in its own process."""
    status = 1
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT, 0o666), number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        os.chdir(request["folder"])
        function = FUNCTIONS[request["function"]] if request["function"] else None
        arguments = request["arguments"]
        call = functools.partial(_command, arguments) if function is None else function(*arguments)
        folder = os.fsencode(request["folder"])
        shim.crash_arm(folder, request["n"], request["mode"], request["error"], log)
        call()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except (LGCNError, OSError) as error:  # from a function; commands print them
        print(f"Error: {error}", file=sys.stderr)
        status = getattr(error, "exit_code", 1)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _wait(child: int, seconds: float) -> int:
    """The exit code, or minus the signal; a process that takes too long ends by SIGALRM."""
    handle = os.pidfd_open(child)
    try:
        if not select.select([handle], [], [], seconds)[0]:
            os.kill(child, signal.SIGALRM)
    finally:
        os.close(handle)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _command(arguments: Any) -> None:
    sys.argv = ["lgcn", *arguments]
    command_line().main()


# Each prepares a call before the shim is armed, and returns it.


def _save(seed: str, folder: str) -> Any:
    options: dict[str, Any] = {"hidden_channels": 4, "k": 2, "num_layers": 1, "max_epochs": 2}
    model = LGCNClassifier(random_state=int(seed), **options).fit(_graph())
    return functools.partial(model.save, folder)


def _graph() -> Any:
    return synthetic(num_nodes=60, num_classes=3, num_features=5, labels_per_class=8, num_val=15)


def _write_store(path: str, *flags: str) -> Any:
    return functools.partial(write_store, path, _graph(), overwrite="--overwrite" in flags)


def _download(target: str) -> Any:
    """Downloads from a server in this process."""
    content = bytes(range(256)) * 1000

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/file"
    return functools.partial(download, url, hashlib.sha256(content).hexdigest(), target)


FUNCTIONS = {"save": _save, "write_store": _write_store, "download": _download}


def _run_tasks(tasks: Any, function: Any, on_result: Any, **_: Any) -> None:
    for task in tasks:
        on_result(task, _fake_record(task))


def _fake_record(job: Job) -> dict[str, Any]:
    score = 0.5 + job.seed / 100
    scores = dict.fromkeys(("val_score", "test_score", "test_score_released_rule"), score)
    result = {"metric": "accuracy", **scores, "best_epoch": 3, "epochs": 4, "seconds": 1.5}
    return make_record(job, {**result, "parameters": 10}, {"cpu": "a fake", "threads": 2})


if __name__ == "__main__":
    main()
