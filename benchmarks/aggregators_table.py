"""The tables of `benchmarks.aggregators`, from its records."""

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks._common import results_file
from benchmarks.aggregators_plan import (
    MAX_EPOCHS,
    OPTIONAL,
    PATIENCE,
    PUBLISHED,
    SETTINGS,
    SYSTEMS,
    TASKS,
    key,
)
from benchmarks.report_tables import Record, machine_line, table
from lgcn.paper.json_lines import read_lines

OURS, BESIDE = "lgcl+mean", ("mean", "max")  # what is subtracted from our score
Scores = Mapping[str, Sequence[float]]


def aggregators(name: str) -> str:
    """The table of that name with its caption: `"settings"`, `"scores"` or `"differences"`.

    All but the first are empty if there is no record.
    """
    if name == "settings":
        return _settings()
    path = results_file("aggregators")
    records = list(read_lines(path, key).records.values()) if path.exists() else []
    return {"scores": scores_table, "differences": differences_table}[name](records)


def common_scores(records: Sequence[Record], task: str) -> dict[str, list[float]]:
    """The test scores of a task in per cent, by system, over the seeds that all of them have."""
    found: dict[str, dict[int, float]] = {}
    for record in records:
        if (record["task"], record["part"]) == (task, "test"):
            found.setdefault(record["system"], {})[record["seed"]] = 100 * record["test_score"]
    if not found:
        return {}
    seeds = sorted(set.intersection(*(set(scores) for scores in found.values())))
    return {
        system: [found[system][seed] for seed in seeds] for system in SYSTEMS if system in found
    }


def scores_table(records: Sequence[Record]) -> str:
    """Mean and standard deviation of each system on each graph."""
    rows = []
    tested = {record["system"] for record in records if record["part"] == "test"}
    systems = [system for system in SYSTEMS if system in tested]
    for task in (*TASKS, *OPTIONAL):
        scores = common_scores(records, task)
        runs = len(next(iter(scores.values()), []))
        if not runs:
            continue
        means = {system: statistics.mean(values) for system, values in scores.items()}
        cells = []
        for system in systems:
            if system not in scores:
                cells.append("-")
                continue
            text = f"{means[system]:.1f}"
            if runs > 1:
                text += f" ± {statistics.stdev(scores[system]):.1f}"
            cells.append(f"**{text}**" if means[system] == max(means.values()) else text)
        rows.append([f"{task} ({runs})", *cells])
    if not rows:
        return ""
    caption = (
        "Test scores in per cent, mean ± standard deviation (runs that all systems finished): ROC "
        f"AUC for {' and '.join(PUBLISHED)}, micro-F1 for {OPTIONAL[0]}, else accuracy. Bold: "
        f"highest mean, whether or not the difference is significant. {_apart(records)}"
    )
    return "\n\n".join(
        [table(["graph", *systems], rows), caption + _reduced(records), _on(records)]
    )


def differences_table(records: Sequence[Record]) -> str:
    """Our score less that of others, paired by seed, beside the numbers of the graph."""
    of_graphs = {record["task"]: record for record in records if record["part"] == "graph"}
    found = []
    for task in (*TASKS, *OPTIONAL):
        scores = common_scores(records, task)
        if task not in of_graphs or not {OURS, *BESIDE} <= scores.keys():
            continue
        if len(scores[OURS]) < 2:
            continue
        apart = [
            [a - b for a, b in zip(scores[OURS], scores[other], strict=True)] for other in BESIDE
        ]
        found.append((statistics.mean(apart[0]), task, apart))
    rows = []
    for _, task, apart in sorted(found, reverse=True):
        cells = []
        for one in apart:
            error = statistics.stdev(one) / len(one) ** 0.5
            cells.append(f"{statistics.mean(one):+.1f} ± {error:.1f}")
        rows.append([f"{task} ({len(apart[0])})", *cells, *_numbers(of_graphs[task])])
    if not rows:
        return ""
    header = [
        *("graph", *(f"{OURS} minus {other}" for other in BESIDE)),
        *("nodes", "mean degree", "90 % have at most", "more than k", "homophily", "adjusted"),
        *("features", "non-zeros", "training nodes", "labels per class"),
    ]
    caption = (
        "Differences in points, mean ± standard error (runs), paired by seed and split; the "
        "largest gain over the mean first."
    )
    return "\n\n".join([table(header, rows), caption + _reduced(records)])


def _numbers(graph: Record) -> list[str]:
    def share(value: float | None) -> str:
        return "-" if value is None else f"{value:.2f}"

    return [
        f"{graph['nodes']:,}",
        f"{graph['mean_degree']:.1f}",
        f"{graph['degree_90']:.0f}",
        f"{100 * graph['more_than_k']:.0f} %",
        share(graph["homophily"]),
        share(graph["adjusted_homophily"]),
        f"{graph['features']:,}",
        f"{100 * graph['non_zeros']:.1f} %",
        f"{graph['training_nodes']:,}",
        f"{graph['labels_per_class']:,.0f}",
    ]


def _apart(records: Sequence[Record]) -> str:
    """How far the numbers of parameters are from those of `mean` with the same settings."""
    found: dict[tuple[Any, ...], int] = {
        (record["task"], record["setting"], record["system"]): record["parameters"]
        for record in records
        if record["part"] == "search" and "parameters" in record
    }
    shares = [
        abs(count / found[task, setting, "mean"] - 1)
        for (task, setting, _), count in found.items()
        if (task, setting, "mean") in found
    ]
    most = 100 * max(shares, default=0.0)
    return f"Numbers of parameters differ by at most {most:.1f} % from those of *mean*."


def _reduced(records: Sequence[Record]) -> str:
    """A warning if the runs were shorter than planned."""
    limits = {
        (record["max_epochs"], record["patience"]) for record in records if "max_epochs" in record
    }
    if limits <= {(MAX_EPOCHS, PATIENCE)}:
        return ""
    text = " and ".join(f"{epochs} epochs, patience {patience}" for epochs, patience in limits)
    return f" **Reduced runs**: {text}."


def _on(records: Sequence[Record]) -> str:
    machines = [record["machine"] for record in records if record["part"] == "machine"]
    if not machines:
        return ""
    commands = dict.fromkeys(machine["command"] for machine in machines)
    return machine_line("aggregators", {"machine": {**machines[0], "command": "; ".join(commands)}})


def _settings() -> str:
    names = list(dict.fromkeys(name for one in SETTINGS for name in one))
    rows = [
        [str(number), *(str(one.get(name, "default")) for name in names)]
        for number, one in enumerate(SETTINGS)
    ]
    return table(["settings", *(f"`{name}`" for name in names)], rows)
