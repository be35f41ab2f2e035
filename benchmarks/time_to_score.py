"""Time and memory that a large graph in two CSV files needs to come close to its final score.

python -m benchmarks.time_to_score [--out FILE] [--nodes N] [--edges E] [--labelled SHARE]
                                   [--seconds S] [--set KEY=VALUE ...] [--name NAME] [--quick]

The graph is that of `benchmarks.noisy_tables`. Training is what `lgcn train` does with these tables
and no further setting, in a process of its own. Times count from its start: importing, reading and
scoring are part of them. The score is the accuracy on the test nodes, over the whole graph, at the
epoch that is best on the validation nodes so far. Processor time is recorded as well: on a busy
machine, half of it is about what two idle cores need.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks._common import add_quick, machine, make_parser, write
from benchmarks.noisy_tables import write_tables

SHARES = (0.5, 0.8, 0.9, 0.95)
START = time.time() - time.process_time()


class _Enough(Exception):
    """The seconds are over."""


def measure(folder: Path, assignments: list[str], seconds: float) -> dict[str, Any]:
    from lgcn.tables.from_tables import import_tables
    from lgcn.training import Settings, State, train
    from lgcn.training.choose import describe
    from lgcn.training.settings import merge_settings
    from lgcn.utils.log_lines import peak_memory

    files = [folder / name for name in ("edges.csv", "nodes.csv")]
    graph = import_tables(*files, label_column="label").graph
    read = {"seconds": time.time() - START, "peak_megabytes": peak_memory() / 1e6}
    given = Settings.create(dataset="tables", device="cpu", **merge_settings(assignments))
    settings = given.resolve(graph)
    points: list[dict[str, float]] = []

    def on_epoch(state: State) -> None:
        now = state.history[-1] if state.history else None
        if now is not None and now["epoch"] == state.epoch:
            test = now["test_score"] if state.best_epoch == state.epoch else None
            points.append(
                {
                    "epoch": state.epoch,
                    "seconds": time.time() - START,
                    "cpu_seconds": time.process_time(),
                    "val_score": now["val_score"],
                    "test_score": points[-1]["test_score"] if test is None else test,
                }
            )
        if time.time() - START > seconds:
            raise _Enough

    finished = True
    try:
        train(graph, given, on_epoch=on_epoch)
    except _Enough:
        finished = False
    final = points[-1]["test_score"]
    sampling, evaluation = settings.sampling, settings.evaluation
    return {
        "graph": {"nodes": graph.num_nodes, "entries": graph.num_edges},
        "line": describe(graph, settings, given),
        "settings": {
            "training": sampling.training,
            "max_nodes": sampling.max_nodes,
            "n_init": sampling.n_init,
            "subgraphs_per_epoch": sampling.subgraphs_per_epoch,
            "evaluate_every": evaluation.evaluate_every,
            "labels": settings.labels,
        },
        "read": read,
        "finished": finished,
        "final_test_score": final,
        "reached": {str(share): _first(points, share * final) for share in SHARES},
        "peak_megabytes": peak_memory() / 1e6,
        "points": points,
    }


def _first(points: list[dict[str, float]], score: float) -> dict[str, float]:
    found = next(point for point in points if point["test_score"] >= score)
    return {key: found[key] for key in ("epoch", "seconds", "cpu_seconds", "test_score")}


def main() -> None:
    parser = make_parser("time_to_score", __doc__)
    add_quick(parser)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--labelled", type=float, default=1.0, help="share of nodes with a label")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after these")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--name", help="name of the record (default: from nodes and labels)")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.settings, arguments.seconds)))
        return
    nodes, edges = (500, 5000) if arguments.quick else (arguments.nodes, arguments.edges)
    with tempfile.TemporaryDirectory() as folder:
        write_tables(Path(folder), nodes, edges, labelled=arguments.labelled)
        command = [sys.executable, "-m", "benchmarks.time_to_score", "--measure", folder]
        command += ["--seconds", str(arguments.seconds)]
        for text in arguments.settings:
            command += ["--set", text]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        parser.exit(1, f"the process ended with {done.returncode}, see above\n")
    found = json.loads(done.stdout.splitlines()[-1])
    print(found["line"])
    for share, point in found["reached"].items():
        print(
            f"{100 * float(share):.0f} % of {100 * found['final_test_score']:.1f} after "
            f"{point['seconds']:.0f} s ({point['cpu_seconds']:.0f} s of processor time)"
        )
    print(f"peak memory {found['peak_megabytes']:.0f} MB; finished: {found['finished']}")
    name = arguments.name or f"{nodes} nodes, {arguments.labelled:g} labelled"
    write(arguments.out, name, {"machine": machine(), **found})


if __name__ == "__main__":
    main()
