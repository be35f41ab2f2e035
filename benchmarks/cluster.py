"""Training on 1, 2 and 4 workers of one machine: speed, bytes on the wire, and a cost model.

python -m benchmarks.cluster [--out FILE] [--nodes N] [--edges N] [--quick]

A graph of `lgcn generate` is cut into 1, 2 and 4 parts. *Strong scaling*: 4 sub-graphs per step,
whatever the number of workers. *Weak scaling*: one sub-graph per worker. Workers are processes that
torchrun starts, with one thread each, connected by gloo over the loopback device of a network
namespace of their own, so that its counters are the bytes on the wire (without the right to make
one: the device of the machine, whose counters other programs change as well).

The cost model of a step is

    sub-graphs per worker * (a * work + b * nodes * width^2 + c)
        + rounds * latency * log2(W) + 2 (W - 1) / W * gradient bytes / bandwidth

with the work that `lgcn.training.groups` counts of a sub-graph's nodes and entries, and the
products of its convolutions. a, b and c are fitted to the CPU time of one worker, which other load
on the machine changes little, latency and bandwidth to sums of arrays of several sizes over as many
workers as there are cores. With more workers than cores, compute takes W / cores times as long. The
prediction for many machines has one more term: a step waits for the largest of its sub-graphs.
"""

import argparse
import contextlib
import ctypes
import fcntl
import gc
import json
import math
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from scipy.stats import norm

from benchmarks._common import add_quick, machine, make_parser, write
from lgcn.partition import Partition, open_partition, write_partition
from lgcn.store.generate import generate_store
from lgcn.training import Settings
from lgcn.training.layerwise_shards import layerwise_shards
from lgcn.training.setup import make_optimizer
from lgcn.training.shared_data import training_data
from lgcn.utils.generators import Generators
from lgcn.workers import Workers, connected

WORKERS = (1, 2, 4)
SIZES = {"nodes": (1000, 3000), "hidden_channels": (32, 128)}
STEPS, WARM = 14, 4
SUMS = (2**10, 2**14, 2**18, 2**21)  # numbers of 4 bytes
ROUNDS = 3  # sums over all workers in a step: sizes, gradients, running statistics
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
# What is predicted.
MACHINES, NODES, DEGREE, SUBGRAPH_NODES = 64, 10**9, 20, 20_000
HALO_NODES = 270_000
FAST = 100  # times as fast as the core that was measured: about what a GPU is
NETWORKS = {"10 Gbit/s, 50 us": (50e-6, 1.25e9), "100 Gbit/s, 10 us": (10e-6, 12.5e9)}


def wire_bytes() -> int:
    """Bytes that the loopback device has sent."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    loopback = next(line for line in lines if line.strip().startswith("lo:"))
    return int(loopback.split(":")[1].split()[8])


def own_network() -> None:
    """Gives this process, and those that it starts, a loopback device of their own."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        return  # not allowed
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        asked = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(device, SIOCGIFFLAGS, asked))
        fcntl.ioctl(device, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def settings_of(nodes: int, hidden_channels: int) -> Settings:
    return Settings.create(
        dataset="store",
        training="subgraph",
        evaluate_on="sampled",
        labels="many",
        baselines=False,
        max_nodes=nodes,
        n_init=max(1, nodes // 40),
        hidden_channels=hidden_channels,
    )


def train_steps(
    partition: Partition, settings: Settings, workers: Workers, steps: int, warm: int
) -> dict[str, Any]:
    """Trains so many steps, and measures those after the first ones."""
    data = training_data(partition, settings, workers)
    device = torch.device("cpu")
    model = data.spec.build(data.settings)
    loader = data.loader()
    step = data.step(
        model, make_optimizer(model, data.settings), loader, device, Generators(device)
    )
    model.train()
    seconds, cpu, works, nodes = [], [], [], 0
    done, epoch, sent = 0, 0, 0
    while done < steps:
        epoch += 1
        step.begin_epoch(epoch)
        with contextlib.closing(loader.epoch(epoch)) as batches:
            for batch in batches:
                if done == warm:
                    workers.barrier("the first steps")
                    sent = wire_bytes()
                wall, own = time.perf_counter(), time.process_time()
                step(batch)
                if done >= warm:
                    seconds.append(time.perf_counter() - wall)
                    cpu.append(time.process_time() - own)
                    for unit in batch:
                        nodes += unit.graph.num_nodes
                        works.append(
                            data.settings.model.work(unit.graph.num_nodes, unit.graph.num_edges)
                        )
                done += 1
                if done == steps:
                    break
    workers.barrier("the last step")
    count = steps - warm
    return {
        "seconds": statistics.median(seconds),
        "fastest": min(seconds),
        "cpu_seconds": statistics.median(cpu),
        "subgraphs": len(works) / count,
        "mean_nodes": nodes / max(1, len(works)),
        "work": statistics.mean(works or [0]),
        "work_spread": statistics.pstdev(works or [0]) / max(1, statistics.mean(works or [0])),
        "sent_bytes": (wire_bytes() - sent) / count,
        "gradient_bytes": sum(4 * p.numel() for p in model.parameters() if p.requires_grad),
    }


def sums(workers: Workers) -> list[dict[str, float]]:
    """Seconds of sums over all workers of arrays of several sizes."""
    found = []
    for numbers in SUMS:
        array, seconds = torch.zeros(numbers), []
        for _ in range(15):
            workers.barrier("the next sum")
            start = time.perf_counter()
            workers.sum(array, "a sum")
            seconds.append(time.perf_counter() - start)
        found.append({"bytes": 4 * numbers, "seconds": statistics.median(seconds)})
    return found


def infer(partition: Partition, settings: Settings, workers: Workers) -> dict[str, Any]:
    """Scores all nodes over the shards."""
    data = training_data(partition, settings, workers)
    torch.manual_seed(0)
    model = data.spec.build(data.settings).eval()
    for _ in range(2):  # the first one compiles
        workers.barrier("inference")
        sent, wall, own = wire_bytes(), time.perf_counter(), time.process_time()
        layerwise_shards(model, data.shards, workers)  # type: ignore[attr-defined]
        own = time.process_time() - own
        workers.barrier("inference")
        wall, sent = time.perf_counter() - wall, wire_bytes() - sent
    return {"seconds": wall, "cpu_seconds": own, "sent_bytes": sent}


def run_jobs(folder: Path, quick: bool) -> None:
    """What each worker does: all measurements for this number of workers."""
    torch.set_num_threads(1)
    found: dict[str, Any] = {"training": [], "inference": []}
    steps, warm = (4, 2) if quick else (STEPS, WARM)
    with connected(120) as workers:
        for parts in dict.fromkeys((workers.size, max(WORKERS))):
            partition = open_partition(folder / f"parts-{parts}", verify=False)
            for nodes in SIZES["nodes"]:
                for hidden in SIZES["hidden_channels"]:
                    settings = settings_of(200 if quick else nodes, hidden)
                    one = train_steps(partition, settings, workers, steps, warm)
                    every = workers.collect(one, "the measurements")
                    one["cpu_seconds"] = statistics.mean(e["cpu_seconds"] for e in every)
                    one["work"] = statistics.mean(e["work"] for e in every)
                    label = {"parts": parts, "max_nodes": nodes, "hidden_channels": hidden}
                    found["training"].append({**label, **one})
        partition = open_partition(folder / f"parts-{max(WORKERS)}", verify=False)
        for hidden in SIZES["hidden_channels"]:
            one = infer(partition, settings_of(1000, hidden), workers)
            every = workers.collect(one, "the measurements")
            one["cpu_seconds"] = statistics.mean(e["cpu_seconds"] for e in every)
            found["inference"].append({"hidden_channels": hidden, **one})
        found["sums"] = sums(workers)
        if workers.is_first:
            name = folder / f"workers-{workers.size}.json"
            name.write_text(json.dumps(found))
        gc.collect()  # a group that DDP still owns can abort the process when Python ends


def start(workers: int, folder: Path, quick: bool) -> dict[str, Any]:
    """Runs the measurements in so many processes."""
    command = ["-m", "benchmarks.cluster", "--measure", str(folder)]
    if quick:
        command.append("--quick")
    if workers > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone"]
        command = [*torchrun, "--nproc-per-node", str(workers), *command]
    one_thread = {name: "1" for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")}
    environment = {**os.environ, **one_thread}
    subprocess.run([sys.executable, *command], check=True, env=environment, preexec_fn=own_network)
    found: dict[str, Any] = json.loads((folder / f"workers-{workers}.json").read_text())
    return {"workers": workers, **found}


def fit(results: list[dict[str, Any]], cores: int) -> dict[str, float]:
    """The numbers of the cost model."""
    alone = next(result for result in results if result["workers"] == 1)["training"]
    computing = _smallest_relative_error(
        [_compute_design(one) for one in alone],
        [one["cpu_seconds"] / one["subgraphs"] for one in alone],
    )
    several = [result for result in results if 1 < result["workers"] <= max(2, cores)]
    each = [(result["workers"], one) for result in several for one in result["sums"]]
    latency, per_byte = _smallest_relative_error(
        [_sum_design(workers, one["bytes"]) for workers, one in each],
        [one["seconds"] for _, one in each],
    )
    wire = {"latency": latency, "bandwidth": 1 / per_byte if per_byte else math.inf}
    return {**dict(zip("abc", computing, strict=True)), **wire}


def _smallest_relative_error(design: list[list[float]], seconds: list[float]) -> list[float]:
    """Factors, none below zero. Errors are relative, since sizes differ by a factor of thirty."""
    scaled = np.array(design) / np.array(seconds)[:, None]
    # Columns of the same size, which the solver needs.
    size = np.maximum(np.abs(scaled).max(0), 1e-300)
    factors, _ = nnls(scaled / size, np.ones(len(seconds)))
    return [float(factor) for factor in factors / size]


def _compute_design(one: dict[str, Any]) -> list[float]:
    return [one["work"], one["mean_nodes"] * one["hidden_channels"] ** 2, 1.0]


def _sum_design(workers: int, size: float) -> list[float]:
    return [math.log2(workers), 2 * (workers - 1) / workers * size]


def predicted(
    model: dict[str, float],
    workers: int,
    subgraphs: float,
    one: dict[str, Any],
    cores: float = math.inf,
) -> dict[str, float]:
    """Seconds of a step by the cost model: computing, and sums over all workers."""
    terms = zip((model[name] for name in "abc"), _compute_design(one), strict=True)
    compute = subgraphs * sum(factor * term for factor, term in terms)
    compute *= max(1.0, workers / cores)
    latency, volume = _sum_design(workers, one["gradient_bytes"])
    wire = ROUNDS * latency * model["latency"] + volume / model["bandwidth"]
    return {"compute": compute, "sums": wire, "seconds": compute + wire}


def halos(folder: Path, nodes: int, parts: int) -> list[dict[str, Any]]:
    """Nodes in the halo per node that a part owns, by method.

    The graph is so large that a part has more nodes than a region, as parts of larger ones have.
    """
    generate_store(folder / "large", num_nodes=nodes, num_edges=nodes * DEGREE // 2, num_features=1)
    found = []
    for method in ("metis", "ldg", "hash"):
        header = write_partition(folder / "large", folder / method, parts, method=method)
        halo = sum(part["halo"] for part in header["parts"]) / nodes
        found.append({"method": method, "parts": parts, "nodes": nodes, "halo_per_node": halo})
        print(found[-1], flush=True)
    return found


def extrapolate(record: dict[str, Any]) -> list[dict[str, Any]]:
    """A step and the inference of all nodes of a billion, on 64 machines with a worker each."""
    # A sub-graph is as dense as the largest that was measured.
    training = record["results"][0]["training"]
    largest = max(training, key=lambda one: (one["max_nodes"], one["hidden_channels"]))
    factor = SUBGRAPH_NODES / largest["mean_nodes"]
    subgraph = {**largest, "mean_nodes": SUBGRAPH_NODES, "work": largest["work"] * factor}
    # The largest of so many normal numbers, in standard deviations (Blom).
    longest = 1 + largest["work_spread"] * norm.ppf((MACHINES - 0.375) / (MACHINES + 0.25))
    inference = max(record["results"][0]["inference"], key=lambda one: one["hidden_channels"])
    per_node = inference["cpu_seconds"] / record["graph"]["num_nodes"]
    found = []
    for network, (latency, bandwidth) in NETWORKS.items():
        for speed in (1, FAST):
            model = {**record["model"], "latency": latency, "bandwidth": bandwidth}
            model |= {name: model[name] / speed for name in "abc"}
            step = predicted(model, MACHINES, 1, subgraph)
            waiting = step["compute"] * (longest - 1)
            one: dict[str, Any] = {"network": network, "speed": speed, "max_nodes": SUBGRAPH_NODES}
            one["step"] = {**step, "waiting": waiting, "seconds": step["seconds"] + waiting}
            one["efficiency"] = step["compute"] / one["step"]["seconds"]
            one["inference"] = {"compute": per_node * NODES / MACHINES / speed}
            for halo in record["halos"]:
                size = halo["halo_per_node"] * NODES / MACHINES * 4 * record["widths"]
                one["inference"][halo["method"]] = {"bytes": size, "seconds": size / bandwidth}
            found.append(one)
    return found


def main() -> None:
    parser = make_parser("cluster", __doc__)
    parser.add_argument("--nodes", type=int, default=60_000)
    parser.add_argument("--edges", type=int, default=600_000)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    add_quick(parser)
    arguments = parser.parse_args()
    if arguments.measure:
        run_jobs(arguments.measure, arguments.quick)
        return
    if arguments.quick:
        arguments.nodes, arguments.edges = 2000, 10_000
    on = machine()
    cores = int(on["cores"])
    size = {"num_nodes": arguments.nodes, "num_edges": arguments.edges, "num_features": 32}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate_store(folder / "store", **size)
        for parts in WORKERS:
            cut = write_partition(folder / "store", folder / f"parts-{parts}", parts)
        record: dict[str, Any] = {"graph": size, "cores": cores, "method": cut["method"]}
        record["halo"] = sum(part["halo"] for part in cut["parts"])
        record["results"] = [start(workers, folder, arguments.quick) for workers in WORKERS]
        halo_nodes, halo_parts = (3000, 4) if arguments.quick else (HALO_NODES, MACHINES)
        record["halos"] = halos(folder, halo_nodes, halo_parts)
    record["model"] = fit(record["results"], cores)
    for result in record["results"]:
        for one in result["training"]:
            one["predicted"] = predicted(
                record["model"],
                result["workers"],
                one["parts"] / result["workers"],
                one,
                cores,
            )
    # Numbers that inference exchanges per node in a halo, by the bytes that were measured.
    four = record["results"][-1]["inference"]
    record["widths"] = max(one["sent_bytes"] for one in four) / (4 * record["halo"])
    record["extrapolated"] = extrapolate(record)
    write(arguments.out, "cpu", {**record, "machine": on})


if __name__ == "__main__":
    main()
