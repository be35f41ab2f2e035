"""Where the time of one training step of LGCN on Cora goes, on the CPU.

python -m benchmarks.profile_epoch [--before FOLDER] [--out FILE] [--rounds N] [--steps N] [--quick]

Two cases: Algorithm 1 with a new sub-graph of 2000 nodes in every epoch, the default; and one hop
around the training nodes, the same 644 nodes in every epoch, as in the released program. Times are
the self times of torch's profiler. They include its overhead, most of it in "checks and Python";
the time of a step without the profiler is also reported.

--before names a checkout of another version (git worktree add FOLDER COMMIT). The versions take
turns, one process each, and a number is the median over processes of their medians over steps.
--quick takes two steps on a small random graph, without another version.
"""

import argparse
import inspect
import json
import os
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from benchmarks._common import QUICK_GRAPH, add_quick, machine, make_parser, write
from lgcn import LGCN, Graph, load_dataset
from lgcn.graph.csr import CSR
from lgcn.ops.cpu import launch as cpu
from lgcn.training import Settings, metrics
from lgcn.training.setup import make_loader, make_optimizer

CASES: dict[str, dict[str, Any]] = {
    "Algorithm 1, new each epoch": {},
    "one hop, the same each epoch": {"max_nodes": None, "max_hops": 1, "resample": False},
}
ARITHMETIC = ("selection", "matrix products", "propagation", "embedding", "sums")
# What an operation is, by the first name that its own or a caller's name contains.
PARTS = (
    ("part: ", ""),  # named below, where no operator tells
    ("optimiser", "optimiser"),
    ("sub-graph", "sub-graph"),
    ("dropout", "dropout"),
    ("_Dropout", "dropout"),
    ("MulBackward", "dropout"),  # torch's dropout; nothing else here multiplies entry by entry
    ("loss", "loss"),
    ("LogSoftmaxBackward", "loss"),
    ("NllLossBackward", "loss"),
    ("IndexBackward", "loss"),  # of the rows of the training nodes
    ("aten::cat", "concatenation"),
    ("CatBackward", "concatenation"),
)
# What remains, by the operation's own name.
OWN_NAME = {
    "aten::mm": "matrix products",
    "aten::addmm": "matrix products",
    "aten::mkldnn_convolution": "matrix products",
    "aten::convolution_backward": "matrix products",
    "aten::add": "sums",
    "aten::add_": "sums",
    "aten::sum": "sums",
    "aten::copy_": "copies and fills",
    "aten::fill_": "copies and fills",
    "aten::zero_": "copies and fills",
    "aten::constant_pad_nd": "copies and fills",
}
REST = "checks and Python"


def name_parts(num_features: int) -> None:
    """Names parts that operators do not identify in the profile: kernels, dropout of edges."""

    def kernel_part(name: str, arguments: Iterable[Any]) -> str:
        if "spmm" not in name:
            return "selection"
        sizes = [len(a) if isinstance(a, torch.Tensor) and a.dim() == 2 else a for a in arguments]
        of_features = any(isinstance(size, int) and size == num_features for size in sizes)
        return "embedding" if of_features else "propagation"

    def marked(function: Callable[..., Any], part: Callable[..., str]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with record_function(f"part: {part(function.__name__, arguments)}"):
                return function(*arguments, **options)

        return call

    for name, function in inspect.getmembers(cpu, inspect.isfunction):
        if not name.startswith("_") and function.__module__ == cpu.__name__:
            setattr(cpu, name, marked(function, kernel_part))
    for name in ("drop_edges", "drop_weights"):
        if hasattr(CSR, name):  # versions differ in which they have
            setattr(CSR, name, marked(getattr(CSR, name), lambda *_: "dropout"))


def steps(graph: Graph, options: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """An endless sequence of training steps, as in the training loop."""
    settings = Settings.create(dataset="cora", num_workers=0, **options)
    torch.manual_seed(0)
    model = LGCN(graph.num_features, graph.num_classes, **settings.model.options())
    optimizer = make_optimizer(model, settings)
    loader = make_loader(graph, settings)
    epoch = 0

    def step() -> None:
        with record_function("sub-graph"):
            (batch,) = loader.epoch(epoch)
        assert batch.y is not None
        with record_function("optimiser"):
            optimizer.zero_grad()
        with record_function("forward"):
            logits = model(batch.x, batch)
        with record_function("loss"):
            loss = metrics.loss(logits[batch.train_mask], batch.y[batch.train_mask])
        with record_function("backward"):
            loss.backward()  # type: ignore[no-untyped-call]
        with record_function("optimiser"):
            optimizer.step()

    while True:
        epoch += 1
        yield step


def profile_steps(graph: Graph, options: dict[str, Any], count: int) -> dict[str, Any]:
    """Median milliseconds of each part and phase, and of a step without the profiler."""
    step = steps(graph, options)
    walls = []
    for _ in range(count + 3):
        run = next(step)
        start = time.perf_counter()
        run()
        walls.append(1e3 * (time.perf_counter() - start))
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(count):
            with record_function("step"):
                next(step)()
    by_step: dict[int, Counter[str]] = {}
    for event in profiler.events() or ():
        callers = [event]
        while callers[-1].cpu_parent is not None:
            callers.append(callers[-1].cpu_parent)
        if callers[-1].name == "step":
            names = [caller.name for caller in callers]
            key = f"{names[-2] if len(names) > 1 else 'step'}: {part_of(names)}"
            by_step.setdefault(id(callers[-1]), Counter())[key] += event.self_cpu_time_total / 1e3
    keys = sorted({key for found in by_step.values() for key in found})
    return {
        "step_ms": statistics.median(walls[3:]),  # the first compile
        "parts_ms": {key: statistics.median(f[key] for f in by_step.values()) for key in keys},
    }


def part_of(names: list[str]) -> str:
    for text, part in PARTS:
        for name in reversed(names):  # a kernel's caller first: a backward may call a forward
            if text in name:
                return part or name.removeprefix(text)
    return OWN_NAME.get(names[0], REST)


def worker(count: int, quick: bool) -> None:
    """Profiles the version on the path and prints JSON."""
    graph = load_dataset("synthetic", **QUICK_GRAPH) if quick else load_dataset("cora")
    name_parts(graph.num_features)
    found = {case: profile_steps(graph, options, count) for case, options in CASES.items()}
    print(json.dumps(found))


def measure(folder: Path, count: int, quick: bool) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.profile_epoch", "--worker", "--steps", str(count)]
    if quick:
        command.append("--quick")
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    result = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    return found


def summary(rounds: list[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the processes, sums over phases, shares."""
    keys = sorted({key for found in rounds for key in found["parts_ms"]})
    parts = {k: statistics.median(found["parts_ms"].get(k, 0.0) for found in rounds) for k in keys}
    total: Counter[str] = Counter()
    for key, value in parts.items():
        total[key.partition(": ")[2]] += value
    arithmetic = sum(total[part] for part in ARITHMETIC)
    return {
        "step_ms": statistics.median(found["step_ms"] for found in rounds),
        "profiled_ms": total.total(),
        "arithmetic_ms": arithmetic,
        "not_arithmetic_ms": total.total() - arithmetic,
        "parts": {
            part: {"ms": value, "share": value / total.total()}
            for part, value in total.most_common()
        },
        "phases_ms": parts,
    }


def commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--exclude=*"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def show(result: dict[str, Any]) -> None:
    versions = [name for name in ("before", "now") if name in result]
    print(f"\n{result['case']}: milliseconds a step, share")
    for part in result["now"]["parts"]:
        cells = []
        for name in versions:
            found = result[name]["parts"].get(part, {"ms": 0.0, "share": 0.0})
            cells.append(f"{found['ms']:8.2f} {found['share']:5.0%}")
        mark = "*" if part in ARITHMETIC else " "
        print(f"  {mark} {part:18}", *cells)
    for key in ("arithmetic_ms", "not_arithmetic_ms", "step_ms"):
        print(f"    {key:18}", *(f"{result[name][key]:8.2f}      " for name in versions))
    if "ratio" in result:
        print("    ratio             ", {key: round(r, 2) for key, r in result["ratio"].items()})


def main() -> None:
    parser = make_parser("profile_epoch", __doc__)
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    add_quick(parser)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        worker(arguments.steps, arguments.quick)
        return
    if arguments.quick:
        if arguments.before is not None:
            parser.error("--quick results are not worth comparing: omit --before")
        arguments.rounds, arguments.steps = 1, 2
    folders = {"now": Path()}
    if arguments.before is not None:
        folders = {"before": arguments.before.resolve(), **folders}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in folders}
    for _ in range(arguments.rounds):
        for name, folder in folders.items():
            rounds[name].append(measure(folder.resolve(), arguments.steps, arguments.quick))
    results = []
    for case in CASES:
        result: dict[str, Any] = {"case": case}
        result |= {name: summary([r[case] for r in found]) for name, found in rounds.items()}
        if "before" in result:
            result["ratio"] = {
                key: result["before"][key] / result["now"][key]
                for key in ("not_arithmetic_ms", "arithmetic_ms", "step_ms")
            }
        show(result)
        results.append(result)
    versions = {name: commit(folder) for name, folder in folders.items()}
    write(arguments.out, "cpu", {"machine": machine(), "versions": versions, "results": results})


if __name__ == "__main__":
    main()
