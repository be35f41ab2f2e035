"""Loads `lgcn serve` over loopback: latency, throughput, memory over time, overload and recovery.

python -m benchmarks.service_load [--seconds 600]

A model is trained on a noisy graph, and served by `lgcn serve` in a process of its own. Clients
send a request as soon as they have their answer. The phases:

1. echo: a bare FastAPI application, which answers with what it gets, for comparison;
2. known: predictions of one known node;
3. mixed: nine of ten requests are for a known node, the others for a new node with three edges;
   this phase takes most of the time, and memory is watched;
4. overload: many more clients than the queue takes, all with new nodes;
5. recovery: as in 3.
"""

import argparse
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, write
from benchmarks.http_load import NextRequest, run_load
from benchmarks.noisy_tables import write_tables

NEW = 0.1  # share of requests for new nodes
QUEUE = 64
SETTINGS = {"max_epochs": 5, "device": "cpu", "baselines": False}
LABEL = "label"


def train(folder: Path, nodes: int, edges: int) -> Path:
    """Trains a model on a noisy graph; gives the run folder."""
    from lgcn.datasets.graph_source import choose_source
    from lgcn.training.prepare import prepare_training

    node_file, edge_file = write_tables(folder / "data", nodes, edges)
    source = choose_source(edges=edge_file, nodes=node_file, label_column=LABEL)
    assert source is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepare_training(SETTINGS, source=source, out=folder / "run").train()
    return folder / "run"


@contextlib.contextmanager
def process(*command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Runs a service in a process of its own until the block ends; gives it and its port."""
    started = subprocess.Popen(
        [sys.executable, "-m", *command], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    try:
        assert started.stderr is not None
        lines = []
        for line in started.stderr:
            lines.append(line)
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            if found:
                break
        else:
            raise RuntimeError("the service did not start:\n" + "".join(lines))
        # Nobody else reads them, and a full pipe would stop the service.
        threading.Thread(target=started.stderr.read, daemon=True).start()
        yield started, int(found[1])
    finally:
        started.send_signal(signal.SIGTERM)
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


def echo(port: int) -> None:
    """A bare FastAPI application that answers with the body that it gets."""
    from typing import Any as Body

    from fastapi import FastAPI

    from lgcn.service.server import address, bound_socket, serve

    app = FastAPI()

    @app.post("/echo")
    async def answer(body: dict[str, Body]) -> dict[str, Body]:
        return body

    sock = bound_socket("127.0.0.1", port)
    serve(app, sock, on_ready=lambda: print(address(sock), file=sys.stderr, flush=True))


def known_nodes(nodes: int, path: str, rng: random.Random) -> NextRequest:
    """Requests for one known node each."""
    return lambda: ("known", path, {"nodes": [f"n{rng.randrange(nodes)}"]})


def new_nodes(nodes: int, rng: random.Random) -> NextRequest:
    """Requests for one new node with three edges each."""

    def request() -> tuple[str, str, dict[str, Any]]:
        columns = {
            "x0": rng.gauss(0, 1),
            "x1": rng.gauss(0, 10),
            "region": f"region {rng.randrange(20)}",
        }
        edges = [{"source": "new", "target": f"n{rng.randrange(nodes)}"} for _ in range(3)]
        body = {"new_nodes": [{"id": "new", "columns": columns}], "edges": edges}
        return "new", "/predict", body

    return request


def mixed(nodes: int, rng: random.Random) -> NextRequest:
    """Nine of ten requests are for known nodes."""
    known, new = known_nodes(nodes, "/predict", rng), new_nodes(nodes, rng)
    return lambda: new() if rng.random() < NEW else known()


class Memory:
    """Watches the resident memory of a process, in megabytes."""

    def __init__(self, pid: int, every: float) -> None:
        self.samples: list[float] = []
        self._path = Path(f"/proc/{pid}/status")
        self._end = threading.Event()
        self._every = every
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(self._every):
            text = self._path.read_text()
            kilobytes = int(next(x for x in text.splitlines() if x.startswith("VmRSS")).split()[1])
            self.samples.append(kilobytes / 1e3)

    def summary(self) -> dict[str, Any]:
        """The mean after the warm-up, a tenth of the time, and at the end, the last tenth."""
        part = max(1, len(self.samples) // 10)
        start = sum(self.samples[part : 2 * part] or self.samples) / len(
            self.samples[part : 2 * part] or self.samples
        )
        end = sum(self.samples[-part:]) / part
        return {
            "start_megabytes": round(start, 1),
            "end_megabytes": round(end, 1),
            "largest_megabytes": round(max(self.samples), 1),
            "growth": round(end / start - 1, 4),
        }


def measure(
    run: Path, nodes: int, seconds: float, clients: int, overload_clients: int
) -> dict[str, Any]:
    """All phases.

    Args:
        run: The run folder.
        nodes: Nodes of its graph, called n0, n1, ...
        seconds: Of the mixed phase; the others take a twentieth of that each.
        clients: Clients at a time.
        overload_clients: Clients at a time in the overload.
    """
    rng, short = random.Random(0), max(0.2, seconds / 20)
    found: dict[str, Any] = {"clients": clients, "overload_clients": overload_clients}
    found["queue"] = QUEUE
    host = "127.0.0.1"
    with process("benchmarks.service_load", "--echo") as (_, port):
        run_load(host, port, clients, short / 4, known_nodes(nodes, "/echo", rng))
        load = run_load(host, port, clients, short, known_nodes(nodes, "/echo", rng))
        found["echo"] = load.summary()
    serve = ("lgcn", "serve", str(run), "--port", "0", "--quiet", "--queue", str(QUEUE))
    with process(*serve) as (service, port):
        run_load(host, port, clients, short / 4, mixed(nodes, rng))
        load = run_load(host, port, clients, short, known_nodes(nodes, "/predict", rng))
        found["known"] = load.summary()
        with Memory(service.pid, max(0.05, seconds / 600)) as memory:
            found["mixed"] = run_load(host, port, clients, seconds, mixed(nodes, rng)).summary()
        found["memory"] = memory.summary()
        load = run_load(host, port, overload_clients, short, new_nodes(nodes, rng))
        found["overload"] = load.summary() | {"retry_after": load.retry_after}
        time.sleep(min(1.0, short))
        found["recovery"] = run_load(host, port, clients, short, mixed(nodes, rng)).summary()
    return found


def main() -> None:
    parser = make_parser("service_load", __doc__)
    add_quick(parser)
    parser.add_argument("--seconds", type=float, default=600, help="of the mixed phase")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--overload-clients", type=int, default=256)
    parser.add_argument("--nodes", type=int, default=2000)
    parser.add_argument("--edges", type=int, default=8000)
    parser.add_argument("--note", help="what else should be known of this run")
    parser.add_argument("--echo", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.echo:
        echo(0)
        return
    nodes, edges, seconds = arguments.nodes, arguments.edges, arguments.seconds
    if arguments.quick:
        nodes, edges, seconds = 300, 1200, min(seconds, 2.0)
    with tempfile.TemporaryDirectory() as folder:
        run = train(Path(folder), nodes, edges)
        options = (seconds, arguments.clients, arguments.overload_clients)
        found = measure(run, nodes, *options)
        from lgcn import load_run
        from lgcn.service.field import hops

        trained = load_run(run)
        found["graph"] = {"nodes": nodes, "edges": edges, "hops": hops(trained.model())}
    for phase in ("echo", "known", "mixed", "overload", "recovery"):
        one = found[phase]
        print(
            f"{phase}: {one['per_second']:.0f} per second, p50 {one['p50_ms']} ms, p99 "
            f"{one['p99_ms']} ms, {one['statuses']}"
        )
    print(f"memory: {found['memory']}")
    note = {} if arguments.note is None else {"note": arguments.note}
    write(arguments.out, "cpu", {"machine": machine(), **found, **note})


if __name__ == "__main__":
    main()
