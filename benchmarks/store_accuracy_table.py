"""The table of `benchmarks.store_accuracy`, from its records."""

import statistics
from collections.abc import Mapping
from typing import Any

from benchmarks._common import results_file
from benchmarks.report_tables import Record, machine_line, table
from lgcn.paper.json_lines import read_lines

WHOLE = "whole"


def store_accuracy() -> str:
    """The table with its caption and the machine, empty if there is no record."""
    path = results_file("store_accuracy")
    records = list(read_lines(path, key).records.values()) if path.exists() else []
    if not records:
        return ""
    commands = dict.fromkeys(record["machine"]["command"] for record in records)
    machine = {**records[0]["machine"], "command": "; ".join(commands)}
    caption = (
        "Test accuracy in per cent, mean ± standard deviation (seeds). Difference: to the whole "
        "graph, over the seeds that both have."
    )
    return "\n\n".join(
        [_rows(records), caption, machine_line("store_accuracy", {"machine": machine})]
    )


def key(record: Record) -> tuple[Any, ...]:
    """What a record is of."""
    return record["dataset"], record["variant"], record["seed"]


def scores_of(records: list[Record]) -> dict[tuple[str, str], dict[int, float]]:
    """The test scores in per cent by seed, of each data set and variant."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for record in records:
        place = found.setdefault((record["dataset"], record["variant"]), {})
        place[record["seed"]] = 100 * record["test_score"]
    return found


def _rows(records: list[Record]) -> str:
    found = scores_of(records)
    rows = []
    for dataset in sorted({dataset for dataset, _ in found}):
        whole = found[dataset, WHOLE]
        variants = {variant: found[dataset, variant] for name, variant in found if name == dataset}
        shown: list[dict[int, float]] = []
        for variant in sorted(variants, key=lambda name: (name != WHOLE, name)):
            seeds = variants[variant]
            if seeds in shown:  # on a small graph, several variants are the same
                continue
            shown.append(seeds)
            rows.append([dataset, variant, _spread(seeds), _difference(seeds, whole, variant)])
    return table(["graph", "training on", "test accuracy", "difference"], rows)


def _spread(seeds: Mapping[int, float]) -> str:
    values = list(seeds.values())
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread} ({len(values)})"


def _difference(seeds: Mapping[int, float], whole: Mapping[int, float], variant: str) -> str:
    common = seeds.keys() & whole.keys()
    if variant == WHOLE or not common:
        return ""
    return f"{statistics.mean(seeds[seed] - whole[seed] for seed in common):+.1f}"
