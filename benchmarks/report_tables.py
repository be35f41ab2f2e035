"""The tables in the documentation, each made from the record of one run."""

import json
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks._common import RESULTS, read, results_file

BASELINES = {
    "padded_topk": "padding, `topk`",
    "bucketed_topk": "padding by degree, `topk`",
    "dense_batch_sort": "`to_dense_batch`, `sort`",
    "segment_sort": "`sort` over segments",
    "dense": "dense N x C x N",
}
# Reports of attacks on the software, in a file each; and what a killed command may leave.
ATTACKS = ("fuzz", "crash", "faults")
STATES = {"old": "old result left", "new": "new result left", "absent": "none left"}

Record = dict[str, Any]


def load(name: str, run: str) -> Record | None:
    """The record of a run of a benchmark, or None if there is none."""
    record: Record | None = read(results_file(name)).get(run)
    return record


def number(value: float) -> str:
    """Three significant digits, never in scientific notation."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def milliseconds(seconds: float) -> str:
    return number(1e3 * seconds)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    header = list(header)
    lines = [header, ["---"] * len(header), *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine_line(name: str, record: Record) -> str:
    """Machine, versions and command. Several commands are in the record alone."""
    machine = record["machine"]
    where = f"{machine['cpu']}, {machine['cores']} cores"
    if "load" in machine:
        where += f", load {machine['load']}"
    versions = f"torch {machine['torch']}"
    if "gpu" in machine:
        where = machine["gpu"]
        versions += f", CUDA {machine['cuda']}, Triton {machine['triton']}"
    command = f"`{machine['command']}`"
    if "; " in command:
        command = f"commands in `{results_file(name)}`"
    return f"*{where}; {versions}; {command}*"


def graph_name(result: Record) -> str:
    return (
        f"{result['degrees']}, N = {result['nodes']:,}, E = {result['edges']:,}, "
        f"C = {result['channels']}, k = {result['k']}"
    )


def cuda_targets() -> str:
    """The targets for a GPU, and whether they are met."""
    rows = []

    def add(what: str, value: float, unit: str, target: float) -> None:
        verdict = "reached" if value <= target else "missed"
        rows.append([what, f"{number(value)} {unit}", f"{target:g}, {verdict}"])

    if record := load("k_largest", "cuda"):
        for result in record["results"]:
            if result["degrees"] == "poisson" and result["nodes"] > 50_000:
                if result["input"] != "normal":
                    continue
                what = graph_name(result)
                target = 2 if result["k"] == 8 else 6
                add(f"forward, {what}", result["times_floor_32_bit"], "times the floor", target)
                best = min(result["times_floor_backward"].values())
                add(f"backward, {what}", best, "times the floor", 2)
    if record := load("training_step", "cuda"):
        for result in record["results"]:
            seconds, name = result["seconds"], result["dataset"]
            add(f"100 epochs, LGCN_sub, {name}", seconds["LGCN_sub"], "s", 0.15)
            if name == "pubmed":
                add(f"100 epochs, LGCN_whole, {name}", seconds["LGCN_whole"], "s", 1)
    return table(["operation", "measured", "target: at most"], rows) if rows else ""


def targets(device: str) -> str:
    """The targets, and whether they are met."""
    if device == "cuda":
        return cuda_targets()
    rows = []

    def add(what: str, baseline: str, ratio: float, more: str, target: int) -> None:
        verdict = "reached" if ratio >= target else "missed"
        rows.append([what, baseline, f"{number(ratio)}{more}", f"{target}, {verdict}"])

    if record := load("k_largest", device):
        for result in record["results"]:
            if result["nodes"] == 20_000 and "speedup_forward" in result:
                add(
                    f"`k_largest`, {result['degrees']} degrees of {result['mean_degree']:.0f}, "
                    f"C = {result['channels']}, k = {result['k']}, values and node ids",
                    "padding to the largest degree, `torch.topk`",
                    result["speedup_forward"],
                    f" ({number(result['speedup_forward_backward'])} with backward)",
                    10,
                )
    if record := load("epoch", device):
        whole = next(result for result in record["results"] if result["graph"] == "whole")
        memory = whole["peak_megabytes"]
        add(
            "one epoch of LGCN on Cora, whole",
            "dense N x C x N products, as in the released program",
            whole["speedup"],
            f" (peak memory {memory['lgcn']:.0f} MB against {memory['dense']:.0f} MB)",
            20,
        )
    if record := load("subgraph", device):
        for result in record["results"]:
            add(
                f"`select_subgraph` from {result['graph']}, {result['nodes']:,} nodes",
                "the same algorithm in Python sets",
                result["speedup"],
                f" ({number(result['speedup_cold'])} with cold caches, "
                f"{number(result['speedup_two_threads'])} with two threads)",
                50,
            )
    return table(["operation", "baseline", "speed-up", "target"], rows) if rows else ""


def k_largest_ratios(record: Record) -> str:
    """Speed-up over each baseline: forward / forward and backward."""

    def cell(result: Record, baseline: str) -> str:
        if baseline in result["left_out"]:
            return str(result["left_out"][baseline].partition(":")[0])
        both = result["ratio_forward_backward"][baseline]
        return f"{number(result['ratio_forward'][baseline])} / {number(both)}"

    rows = [
        [graph_name(result), *(cell(result, name) for name in BASELINES)]
        for result in record["results"]
        if result["input"] == "normal"
    ]
    return table(["graph", *BASELINES.values()], rows)


def k_largest_floor(record: Record) -> str:
    """Times, and the ratio of each to the floor."""
    rows = []
    for result in record["results"]:
        seconds = result["seconds"]
        backward = [
            f"{milliseconds(seconds[f'backward_{name}'])} ({number(times)})"
            + (f" {name}" if len(result["times_floor_backward"]) > 1 else "")
            for name, times in result["times_floor_backward"].items()
        ]
        rows.append(
            [
                graph_name(result),
                result["input"],
                f"{milliseconds(seconds['k_largest_values'])} ({number(result['times_floor'])})",
                milliseconds(seconds["k_largest"]),
                ", ".join(backward),
                f"{result['gigabytes_per_second_of_copy']:.0f} GB/s",
                f"{result['saved_bytes_per_node']:.0f}",
            ]
        )
    header = [
        "graph",
        "input",
        "forward, ms (ratio to floor)",
        "forward with node ids, ms",
        "backward, ms (ratio to floor)",
        "copy rate",
        "bytes kept per node",
    ]
    return table(header, rows)


def k_largest(record: Record) -> str:
    return f"{k_largest_ratios(record)}\n\n{k_largest_floor(record)}"


def layer(record: Record) -> str:
    parts = []
    for result in record["results"]:
        layers = result["layers"]
        usual = layers["GCNConv"]
        rows = [
            [
                name,
                number(numbers["seconds_forward"] / usual["seconds_forward"]),
                number(numbers["seconds_forward_backward"] / usual["seconds_forward_backward"]),
                milliseconds(numbers["seconds_forward"]),
                milliseconds(numbers["seconds_forward_backward"]),
                f"{numbers['megabytes_forward_backward']:.0f}",
            ]
            for name, numbers in layers.items()
        ]
        header = [
            f"{result['graph']}, {result['nodes']:,} nodes, {result['edges']:,} edges",
            "time / GCNConv",
            "with backward / GCNConv",
            "ms",
            "ms with backward",
            "peak MB",
        ]
        parts.append(table(header, rows))
    return "\n\n".join(parts)


def fusion(record: Record) -> str:
    """Where the time of an LGConv goes, and the effect of fusing or recomputing."""
    rows = []
    for result in record["results"]:
        seconds, memory = result["seconds"], result["megabytes"]
        rows.append(
            [
                f"N = {result['nodes']:,}, E = {result['edges']:,}, C = {result['channels']}, "
                f"k = {result['k']}",
                *(milliseconds(seconds[name]) for name in ("forward", "selection", "convolutions")),
                f"{milliseconds(seconds['copy of the grid'])} "
                f"({result['fusion_saves_at_most']:.0%})",
                number(result["recomputing_takes_times"]),
                f"{memory['training, recomputed']:.0f} against {memory['training']:.0f}",
            ]
        )
    header = [
        "LGConv, C to C",
        "forward, ms",
        "selection",
        "convolutions",
        "copy of the grid (share of forward)",
        f"{record['results'][0]['layers']} layers, recomputed: time ratio",
        "peak MB",
    ]
    return table(header, rows)


def recompute(record: Record) -> str:
    """What keeping the grid of a wide layer costs, and what making it again does."""
    parts = []
    ways = {"forward": "no gradients", "first_layer": "first layer", "hidden_layer": "hidden layer"}
    for result in record["results"]:
        rows = []
        for name, numbers in result["layers"].items():
            row = [name]
            for way in ways:
                row.append(milliseconds(numbers[f"seconds_{way}"]))
                row.append(f"{numbers[f'megabytes_{way}']:,.0f}")
            rows.append(row)
        header = [
            f"{result['nodes']:,} nodes, {result['edges']:,} entries, "
            f"{result['in_channels']} to {result['out_channels']}, k = {result['k']}"
        ]
        for name in ways.values():
            header += [f"{name}, ms", "peak MB"]
        parts.append(table(header, rows))
    return "\n\n".join(parts)


def compiling(record: Record) -> str:
    result = record["results"]
    rows = [
        [name, number(seconds / result["seconds"]["plain"]), number(seconds)]
        for name, seconds in result["seconds"].items()
    ]
    header = [
        f"{result['dataset']}, LGCN_sub, {result['epochs']} epochs",
        "time / plain",
        "seconds",
    ]
    return table(header, rows)


def training_step(record: Record) -> str:
    rows = []
    for result in record["results"]:
        ours, paper = result["seconds"], result["paper"]
        for name, seconds in ours.items():
            nodes, paper_nodes = result["nodes"], result["nodes"]
            if name.startswith("LGCN_sub"):
                nodes, paper_nodes = result["nodes_per_iteration"], paper["nodes"]
            printed = paper.get(name)
            rows.append(
                [
                    f"{result['dataset']}, {name}",
                    number(seconds / ours["GCN"]),
                    number(printed / paper["GCN"]) if printed else "",
                    number(seconds),
                    str(printed or ""),
                    f"{nodes:,.0f}",
                    f"{paper_nodes:,}" if printed else "",
                ]
            )
    header = [
        f"{record['results'][0]['epochs']} epochs",
        "time / GCN",
        "time / GCN, paper",
        "seconds",
        "seconds, paper (TITAN Xp)",
        "nodes per step",
        "nodes per step, paper",
    ]
    return table(header, rows)


def epoch(record: Record) -> str:
    rows = [
        [
            f"{result['graph']}, {result['nodes']:,} nodes",
            number(result["speedup"]),
            milliseconds(result["seconds"]["lgcn"]),
            milliseconds(result["seconds"]["dense"]),
            f"{result['peak_megabytes']['lgcn']:.0f}",
            f"{result['peak_megabytes']['dense']:.0f}",
        ]
        for result in record["results"]
    ]
    header = ["Cora", "speed-up", "ms", "ms, dense", "peak MB", "peak MB, dense"]
    return table(header, rows)


def profile_epoch(record: Record) -> str:
    """Milliseconds per part of a step, in one or two versions."""
    parts = []
    for result in record["results"]:
        versions = [name for name in ("before", "now") if name in result]
        rows = [
            [part, *(milliseconds_of(result[name]["parts"].get(part)) for name in versions)]
            for part in result["now"]["parts"]
        ]
        for key, title in (
            ("arithmetic_ms", "arithmetic (products, sums, selection)"),
            ("not_arithmetic_ms", "the rest"),
            ("step_ms", "step without the profiler"),
        ):
            rows.append([f"**{title}**", *(number(result[name][key]) for name in versions)])
        header = [f"Cora, {result['case']}"]
        header += [f"ms, {record['versions'][name].removesuffix('-dirty')}" for name in versions]
        parts.append(table(header, rows))
    return "\n\n".join(parts)


def milliseconds_of(part: Record | None) -> str:
    return "0" if part is None else f"{number(part['ms'])} ({part['share']:.0%})"


def precision(record: Record) -> str:
    rows = []
    for result in record["results"]:
        test = result["test_score"]
        score = f"{test['mean']:.1f} ± {test['std']:.1f}"
        rows.append([result["dataset"], result["precision"], score, str(result["seeds"])])
    return table(["data", "precision", "test accuracy, %", "seeds"], rows)


def subgraph(record: Record) -> str:
    rows = []
    for result in record["results"]:
        each, edge = result["microseconds_per_subgraph"], result["nanoseconds_per_edge"]
        rows.append(
            [
                f"{result['graph']}, {result['nodes']:,} nodes, {result['edges']:,} edges",
                number(result["speedup"]),
                number(result["speedup_cold"]),
                number(result["speedup_two_threads"]),
                f"{number(each['numba'])} against {number(each['sets'])}",
                f"{number(edge['numba'])} against {number(edge['sets'])}",
            ]
        )
    header = [
        "graph",
        "speed-up",
        "with cold caches",
        "with two threads",
        "µs per sub-graph",
        "ns per visited edge",
    ]
    if "numpy" not in record:  # an earlier version
        return table(header, rows)
    return f"{table(header, rows)}\n\n{_subgraph_numpy(record['numpy'])}"


def _subgraph_numpy(results: list[Record]) -> str:
    rows = []
    for result in results:
        warm, cold = (result[caches] for caches in ("warm", "cold"))
        each_time = (each["microseconds"] for each in (warm, cold))
        rows.append(
            [
                f"{result['graph']}, {result['nodes']:,} nodes, {result['n_init']} start nodes",
                number(warm["speedup"]),
                number(cold["speedup"]),
                number(result["two_threads"]),
                *(f"{number(each['numba'])} against {number(each['numpy'])}" for each in each_time),
                f"{result['nanoseconds_per_edge']:.2f}",
            ]
        )
    speed_ups = ["speed-up", "with cold caches", "with two threads"]
    times = ["µs per sub-graph", "µs, cold caches", "ns per visited edge"]
    return table(["against NumPy", *speed_ups, *times], rows)


def first_command(record: Record) -> str:
    rows = [
        [
            result["command"],
            f"{result['seconds']:.1f}",
            f"{result['processor_seconds']:.1f}",
            f"{result['kernels_compiled']:.0f}",
        ]
        for result in record["results"]
    ]
    return table(["command", "seconds", "processor seconds", "kernels compiled"], rows)


def tables(record: Record) -> str:
    rows = []
    for result in record["results"]:
        rows.append(
            [
                f"{result['ids']} ids, {result['nodes']:,} nodes, {result['edges']:,} edges",
                number(result["times_pyarrow"]),
                number(result["seconds"]["import"]),
                number(result["times_arrays"]),
                f"{result['peak_megabytes']['import']:.0f}",
            ]
        )
    header = ["two CSV files", "time / pyarrow", "seconds", "memory / arrays", "peak MB"]
    return table(header, rows)


def table_reader(record: Record) -> str:
    rows = []
    for result in record["results"]:
        found = [number(result["seconds"]), f"{result['peak_megabytes']:.0f}"]
        rows.append([result["variant"], *found])
    return table([f"CSV file, {record['edges']:,} edges", "seconds", "peak MB"], rows)


def large(record: Record) -> str:
    """Every step at every size, then how time and memory grow."""
    rows = []
    for result in record["results"]:
        for step, found in result["steps"].items():
            if "left_out" in found:
                rows.append([f"{result['edges']:,}", step, found["left_out"], "", ""])
                continue
            if "steps_seconds" in found:
                rate = found["count"] / found["steps_seconds"]
                peak = f"{found['steps_peak_megabytes']:,.0f} ({found['base_megabytes']:,.0f})"
                seconds = f"{number(found['steps_seconds'])} s"
                row = [f"{step}, {found['count']} steps only", seconds, f"{rate:,.0f} steps", peak]
                rows.append([f"{result['edges']:,}", *row])
                step = f"{step}, with exact final scores"
            rows.append(
                [
                    f"{result['edges']:,}",
                    step,
                    f"{number(found['seconds'])} s",
                    f"{found['per_second']:,.0f} {found['of']}",
                    f"{found['peak_megabytes']:,.0f} ({found['base_megabytes']:,.0f})",
                ]
            )
    header = ["edges", "step", "time", "per second", "peak MB (base)"]
    sizes = [result["edges"] for result in record["results"]]
    grown = table(
        [f"from {sizes[0]:,} to {sizes[-1]:,} edges", "exponent: time", "exponent: memory"],
        [
            [step, f"{found['seconds']:.2f}", f"{found['memory']:.2f}"]
            for step, found in record["exponents"].items()
        ],
    )
    return f"{table(header, rows)}\n\n{grown}"


def store_loader(record: Record) -> str:
    rows = []
    for result in record["results"]:
        each = result["microseconds_per_subgraph"]
        rows.append(
            [
                f"{result['nodes']:,}",
                number(result["speedup"]),
                f"{number(each['numba'])} against {number(each['numpy'])}",
                number(result["microseconds_per_subgraph_cold"]),
                f"{number(result['loader_subgraphs_per_second'])} / "
                f"{number(result['model_steps_per_second'])}",
                f"{result['anonymous_megabytes']:.0f}",
            ]
        )
    header = [
        "nodes",
        "speed-up",
        "µs per sub-graph",
        "µs, cold",
        "loader / model, per second",
        "MB",
    ]
    exponent = record["exponents"]["numba"]["exponent"]
    return f"{table(header, rows)}\n\nTime grows as nodes^{exponent:.2f}."


def fit_memory(record: Record) -> str:
    rows = [
        [
            result["case"],
            f"{result['nodes']:,}, {result['entries']:,}, {result['features']:,}",
            f"{result['feature_megabytes']:.0f} and {result['edge_megabytes']:.0f}",
            "yes" if result["shares_features_and_edges"] else "no",
            f"{result['peak_megabytes']:.0f}",
        ]
        for result in record["results"]
    ]
    graph = "nodes, entries, features"
    return table(["fit", graph, "MB of features and edges", "shared", "MB added by fit"], rows)


def own_defaults(record: Record) -> str:
    rows = [
        [row["candidate"], f"{row['mean']:.1f}", f"{row['most']:.1f}"]
        for row in record["behind_the_best"]
    ]
    graphs = len({run["dataset"] for run in record["runs"]})
    what = f"{len(record['runs'])} runs, {graphs} graph{'s' if graphs > 1 else ''}"
    return table([what, "points behind the best: mean", "largest"], rows)


def structural(record: Record) -> str:
    names = list(dict.fromkeys(run["candidate"] for run in record["runs"]))
    scores = {(r["dataset"], r["split"], r["candidate"]): r for r in record["results"]}
    rows = []
    for dataset, split in dict.fromkeys((run["dataset"], run["split"]) for run in record["runs"]):
        found = [scores.get((dataset, split, name)) for name in names]
        graph = dataset.replace(":bare", ", features dropped")
        values = ["-" if one is None else f"{one['val_score']:.1f}" for one in found]
        rows.append([f"{graph}, {split}", *values])
    return table(["validation score (%)", *names], rows)


def variants(record: Record) -> str:
    rows = []
    for row in record["results"]:
        error = f" ± {row['error']:.1f}" if "error" in row else ""
        change = f"{row['difference']:+.1f}{error}" if "difference" in row else "-"
        rows.append([row["variant"], f"{row['val_score']:.1f}", change])
    seeds = min(row["seeds"] for row in record["results"])
    what = f"{record['base']['dataset'].capitalize()}, {seeds} seeds"
    return table([what, "validation accuracy (%)", "difference"], rows)


def huge_pages(record: Record) -> str:
    rows = []
    for result in record["results"]:
        ratio = result["seconds_small_pages"] / result["seconds_huge_pages"]
        faults = (f"{result[f'faults_{pages}_pages']:,.0f}" for pages in ("small", "huge"))
        rows.append([f"{result['labels']} labels", number(ratio), *faults])
    nodes = record["graph"]["num_nodes"]
    header = [f"one epoch on {nodes:,} nodes", "speed-up", "page faults, small pages", "huge pages"]
    return table(header, rows)


def scaling(record: Record) -> str:
    rows = []
    for name, result in record["results"].items():
        values = [point[name] for point in result["points"]]
        fits = (f"{found['exponent']:.2f} ({found['r2']:.3f})" for found in result["fits"].values())
        rows.append([f"{name}, {values[0]:,} to {values[-1]:,}", *fits])
    whats = next(iter(record["results"].values()))["fits"]
    header = ["doubled quantity", *(f"{what.replace('_', ' ')}: exponent (R²)" for what in whats)]
    return table(header, rows)


def service_load(record: Record) -> str:
    """Each phase of the load on the service, then memory."""
    rows = []
    for phase in ("echo", "known", "mixed", "overload", "recovery"):
        found = record[phase]
        refused = sum(n for status, n in found["statuses"].items() if status in ("429", "503"))
        other = found["requests"] - refused - found["statuses"].get("200", 0)
        clients = record["overload_clients" if phase == "overload" else "clients"]
        parts = {phase: found, **{f"{phase}, {k}": v for k, v in found["by_kind"].items()}}
        for name, part in parts.items():
            counts = [""] * 4
            if part is found:
                counts = [str(clients), f"{found['seconds']:g} s", number(found["per_second"])]
                counts.append(f"{refused:,}" + (f", {other:,} failed" if other else ""))
            times = [
                "" if part[key] is None else f"{number(part[key])} ms"
                for key in ("p50_ms", "p99_ms")
            ]
            rows.append([name, *counts[:3], *times, counts[3]])
    header = ["phase", "clients", "time", "answers per second", "p50", "p99", "refused (429, 503)"]
    memory, graph = record["memory"], record["graph"]
    return (
        f"{table(header, rows)}\n\nMemory of the process in the mixed phase: "
        f"{memory['start_megabytes']:.0f} MB after a tenth of the time, "
        f"{memory['end_megabytes']:.0f} MB at the end ({100 * memory['growth']:+.1f} %), at most "
        f"{memory['largest_megabytes']:.0f} MB. The graph has {graph['nodes']:,} nodes, and the "
        f"network sees {graph['hops']} hops. The queue takes {record['queue']} requests."
    )


TABLES: dict[str, Callable[[Record], str]] = {
    "k_largest": k_largest,
    "layer": layer,
    "recompute": recompute,
    "fusion": fusion,
    "training_step": training_step,
    "epoch": epoch,
    "profile_epoch": profile_epoch,
    "precision": precision,
    "compile": compiling,
    "subgraph": subgraph,
    "first_command": first_command,
    "tables": tables,
    "table_reader": table_reader,
    "fit_memory": fit_memory,
    "large": large,
    "store_loader": store_loader,
    "own_defaults": own_defaults,
    "structural": structural,
    "variants": variants,
    "huge_pages": huge_pages,
    "scaling": scaling,
    "service_load": service_load,
}


def attack_table(name: str) -> str:
    """The table of a report of `make fuzz`, `make crash` or `make faults`, or an empty text."""
    path = RESULTS / f"{name}.json"
    if not path.exists():
        return ""
    report = json.loads(path.read_text("utf-8"))
    body = {"fuzz": _fuzz, "crash": _crash, "faults": _faults}[name](report)
    versions = report["versions"]
    cores = report["machine"]["cores"] if name == "fuzz" else report["cores"]
    where = f"{cores} cores, Python {versions['python']}, torch {versions['torch']}"
    return f"{body}\n\n*{where}; `{report['command']}`, seed {report['seed']}*"


def _fuzz(report: Record) -> str:
    rows = [
        [name, f"{found['cases']:,}", f"{found['refused']:,}", f"{found['failed']:,}"]
        for name, found in report["targets"].items()
    ]
    sums = [
        f"{sum(found[key] for found in report['targets'].values()):,}"
        for key in ("cases", "refused", "failed")
    ]
    header = ("target", "cases", "refused in one line", "failed")
    return table(header, [*rows, ["**all**", *(f"**{value}**" for value in sums)]])


def _crash(report: Record) -> str:
    rows = []
    for name, found in report["commands"].items():
        left = found["left"]
        counts = [found["calls"], found["trials"], *(left.get(state, 0) for state in STATES)]
        rows.append([name, *map(str, counts), str(found["next command equal"])])
    sums = [f"**{sum(int(row[i]) for row in rows)}**" for i in range(2, 7)]
    header = ("command", "file changes", "kills", *STATES.values(), "next command equal")
    return table(header, [*rows, ["**all**", "", *sums]])


def _faults(report: Record) -> str:
    runs = report["runs"]
    kinds = sorted({kind for run in runs for kind in run["faults"]})
    rows = [[kind, *(str(run["faults"].get(kind, 0)) for run in runs)] for kind in kinds]
    for name in ("happened", "restarts", "epochs", "weights and history"):
        rows.append([f"**{name}**", *(str(run.get(name, "broken")) for run in runs)])
    return table(("fault", *(f"{run['workers']} workers" for run in runs)), rows)
