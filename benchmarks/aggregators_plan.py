"""What `benchmarks.aggregators` compares: the networks, their settings and sizes, the runs."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import torch

from lgcn.nn.residual import ResidualLGCN
from lgcn.paper.jobs import GRAPHS
from lgcn.training.groups import ResidualSettings

K = 8  # values that an LGCL selects per feature
HEADS = 4  # of attention

_LGCL: dict[str, Any] = {"aggregate": "lgcl", "k": K, "cnn": "depthwise"}
SYSTEMS: dict[str, dict[str, Any]] = {
    "none": {"aggregate": "none"},
    "mean": {"aggregate": "mean"},
    "max": {"aggregate": "max"},
    "sum": {"aggregate": "sum"},
    "gcn": {"aggregate": "gcn"},
    "attention": {"aggregate": "attention", "heads": HEADS},
    "lgcl": {**_LGCL, "mean": False},
    "lgcl+mean": {**_LGCL, "mean": True},
    # One convolution that mixes features, as in the paper: narrower, for as many parameters.
    "lgcl+mean-mixing": {"aggregate": "lgcl", "k": K, "cnn": "single", "mean": True},
}
# Every system is tried with each of these. The width is that of `mean`, see `width`.
SETTINGS: tuple[dict[str, Any], ...] = (
    {
        **{"num_layers": 1, "hidden_channels": 128, "dropout": 0.7, "lr": 0.01},
        **{"norm": "none", "weight_decay": 0.0005, "input_dropout": 0.5},
    },
    {"num_layers": 2, "hidden_channels": 128, "dropout": 0.5, "lr": 0.005},
    {"num_layers": 5, "hidden_channels": 64, "dropout": 0.2, "lr": 0.005},
    {"num_layers": 8, "hidden_channels": 64, "dropout": 0.2, "lr": 0.01},
)
MAX_EPOCHS, PATIENCE = 200, 50
SEARCH_SEEDS = (2000, 2001)  # none of the seeds that are reported, which count from 0
SEEDS = 10
TOLERANCE = 0.03  # share by which the number of parameters may differ from that of `mean`

# The fastest ones first.
TASKS = (
    *("cora", "citeseer", "minesweeper", "pubmed", "amazon_computers", "coauthor_cs", "tolokers"),
    *("debian_bookworm", "debian_bookworm-half", "wordnet31", "wordnet31-half"),
)
OPTIONAL = ("ppi-rederived",)
PUBLISHED = ("minesweeper", "tolokers")  # ten published splits, scored by ROC AUC


class Run(NamedTuple):
    """One piece of work, and the key of its record.

    Args:
        task: The data set.
        part: `"graph"` for its numbers, `"search"` for a run scored on validation nodes alone,
            `"test"` for a run with the settings that were best in the search.
        system: The network; `""` for the graph.
        setting: The number of the settings in the search; -1 elsewhere.
        seed: The seed.
    """

    task: str
    part: str
    system: str = ""
    setting: int = -1
    seed: int = 0


def key(record: Any) -> tuple[Any, ...]:
    """What a record is of."""
    return tuple(record[name] for name in Run._fields)


def plan(tasks: Sequence[str], systems: Sequence[str], seeds: int) -> Iterator[Run]:
    """All runs, in an order in which an early end leaves whole comparisons.

    Runs with a seed need a finished search. So the search of the next graph is started before them:
    no process has to wait.
    """
    for before, task in zip([None, *tasks], [*tasks, None], strict=True):
        if task is not None:
            yield Run(task, "graph")
            for seed in SEARCH_SEEDS:
                for setting in range(len(SETTINGS)):
                    for system in systems:
                        yield Run(task, "search", system, setting, seed)
        if before is not None:
            for seed in range(seeds):
                for system in systems:
                    yield Run(before, "test", system, -1, seed)


def data_options(task: str, seed: int) -> dict[str, Any]:
    """Options of the data set: the published split, or the seed that draws one."""
    if task in PUBLISHED:
        return {"split": seed - SEARCH_SEEDS[0] if seed in SEARCH_SEEDS else seed}
    return {"split_seed": seed} if task in GRAPHS else {}


def model_settings(system: str, setting: int, in_channels: int, num_classes: int) -> dict[str, Any]:
    """Settings of a training, with the width that makes the systems equally large."""
    given = SETTINGS[setting]
    return {**given, **SYSTEMS[system]} | {
        "hidden_channels": width(system, setting, in_channels, num_classes)
    }


@lru_cache(1000)
def width(system: str, setting: int, in_channels: int, num_classes: int) -> int:
    """The width at which a system has about as many parameters as `mean` with these settings."""
    base = SETTINGS[setting]["hidden_channels"]
    sizes = in_channels, num_classes
    wanted = count_parameters("mean", setting, base, *sizes)
    step = HEADS if system == "attention" else 1
    low, high = 1, 4 * base // step  # a network without neighbours is at most twice as wide
    while low < high:
        middle = (low + high) // 2
        if count_parameters(system, setting, middle * step, *sizes) < wanted:
            low = middle + 1
        else:
            high = middle
    return min(
        (max(1, low - 1) * step, low * step),
        key=lambda one: abs(count_parameters(system, setting, one, *sizes) - wanted),
    )


@lru_cache(10_000)
def count_parameters(
    system: str, setting: int, hidden: int, in_channels: int, num_classes: int
) -> int:
    """The number of parameters of a network, which is built without memory."""
    known = ResidualSettings.model_fields.keys()
    given = {**SETTINGS[setting], **SYSTEMS[system], "hidden_channels": hidden}
    with torch.device("meta"):
        options = {name: value for name, value in given.items() if name in known}
        model = ResidualLGCN(in_channels, num_classes, **options)
    return sum(parameter.numel() for parameter in model.parameters())
