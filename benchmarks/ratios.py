"""The ratios of a record, and which of them got worse since another one.

Times differ from machine to machine, ratios of times that were measured in one run much less.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

Record = dict[str, Any]

# How the names of ratios begin in the results of a record; a larger one is better, or a smaller.
LARGER = ("speedup", "ratio_", "batch_speedup")
SMALLER = ("times_", "recomputing_takes_times")
# What tells the results of a record apart.
IDENTITY = (
    *("graph", "graphs", "dataset", "ids", "degrees", "input", "nodes", "edges", "width"),
    *("channels", "in_channels", "out_channels", "k", "about", "what"),
)
# Benchmarks that keep seconds alone: whose ratios count, and to what.
BESIDE = {
    "layer": ("LGConv", "SAGEConv, CSR"),
    "recompute": ("LGConv", "SAGEConv, CSR"),
    "training_step": ("LGCN", "GCN"),
    "whole_graphs": ("LGCN", "PyG's GIN"),
}


class Ratio(NamedTuple):
    value: float
    larger_is_better: bool

    def loss(self, before: "Ratio") -> float:
        """How many times worse it is than before."""
        old, new = before.value, self.value
        worse, better = (old, new) if self.larger_is_better else (new, old)
        return worse / better


def ratios(name: str, record: Record) -> dict[str, Ratio]:
    """All ratios in the record of a benchmark, by what they are of; none if it has no ratios."""
    found: dict[str, Ratio] = {}
    results = record.get("results")
    for result in results if isinstance(results, list) else []:
        about = ", ".join(f"{key} {result[key]}" for key in IDENTITY if key in result)
        for what, ratio in _of_result(name, result):
            found[f"{about}: {what}"] = ratio
    return found


def _of_result(name: str, result: Record) -> Iterator[tuple[str, Ratio]]:
    if name == "speed" and not result["unit"].startswith(("ms", "s ")):  # times are no ratio
        yield result["unit"].partition(" (")[0], Ratio(result["value"], result["at_least"])
    for key, value in result.items():
        if key.startswith(LARGER + SMALLER):
            parts = value if isinstance(value, dict) else {"": value}
            for part, number in parts.items():
                yield f"{key} {part}".strip(), Ratio(number, key.startswith(LARGER))
    if name in BESIDE:
        ours, baseline = BESIDE[name]
        seconds = dict(_seconds(result))
        for (system, way), value in seconds.items():
            if system.startswith(ours):
                yield f"{system} / {baseline}, {way}", Ratio(value / seconds[baseline, way], False)


def _seconds(result: Record) -> Iterator[tuple[tuple[str, str], float]]:
    """Seconds by system and by what was timed."""
    for system, value in result.get("seconds", {}).items():
        yield (system, "seconds"), value
    for system, numbers in result.get("layers", {}).items():
        for way, value in numbers.items():
            if way.startswith("seconds_"):
                yield (system, way), value


def worse(
    before: dict[str, Ratio], now: dict[str, Ratio], factor: float
) -> list[tuple[str, Ratio, Ratio]]:
    """The ratios, worst first, that are more than so many times worse than before.

    A ratio that only one of both has is not compared.
    """
    both = [(name, before[name], now[name]) for name in before.keys() & now.keys()]
    lost = [(name, old, new) for name, old, new in both if new.loss(old) > factor]
    return sorted(lost, key=lambda found: (-found[2].loss(found[1]), found[0]))
