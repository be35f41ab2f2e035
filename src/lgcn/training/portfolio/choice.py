"""The choice between the default settings, by validation where it is cheap.

There are settings for few labels and for many, and a deep network for graphs whose neighbours
disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lgcn.training.presets import depends_on_labels
from lgcn.training.settings import Settings, flat_names

if TYPE_CHECKING:
    from lgcn.graph import Graph
    from lgcn.training.run_folder import Run

# Two trainings are cheap up to this many nodes and entries of the adjacency: on two CPU cores, one
# takes at most a minute or so.
CHEAP_NODES, CHEAP_ENTRIES = 10_000, 200_000
# The deep network of small graphs whose neighbours disagree. It takes no longer than the settings
# for many labels.
DEEP: Mapping[str, Any] = {
    "preset": "residual",
    "num_layers": 8,
    "lr": 0.01,
    "max_epochs": 200,
    "patience": 50,
}
# Settings that may be given without switching the choice off: they do not change the network.
HARMLESS = ("sampling", "evaluation", "hardware")


def wants_several(settings: Settings, graph: Graph, resumed: Run | None = None) -> bool:
    """Whether several models are trained: a portfolio, or those of `settings_by_validation`.

    Args:
        settings: The settings of the training.
        graph: The graph.
        resumed: The run that goes on, where what it began counts. (default: a new one)
    """
    if resumed is not None and resumed.is_portfolio:
        return True
    asked = settings.time_limit is not None or settings.max_trials is not None
    return asked or settings_by_validation(settings, graph)


def settings_by_validation(settings: Settings, graph: Graph) -> bool:
    """Whether the settings for few and for many labels are both trained, and the best one is kept.

    That is so for ``labels=auto`` and the default preset, if it has settings for both, the graph
    has at most 10,000 nodes and 200,000 entries of the adjacency, and no setting of the network or
    the optimisation was given.

    Args:
        settings: The settings of the training.
        graph: The graph.
    """
    if settings.labels != "auto" or not depends_on_labels(settings.preset, settings.dataset):
        return False
    groups = {name: group for name, (group, _) in flat_names(settings.model.name).items()}
    if any(name in groups and groups[name] not in HARMLESS for name in settings.given):
        return False
    if settings.preset != "default":  # a short training is to stay short
        return False
    return graph.num_nodes <= CHEAP_NODES and graph.num_edges <= CHEAP_ENTRIES


def label_members(settings: Settings, graph: Graph) -> Iterator[tuple[str, Settings]]:
    """The settings for few and for many labels, with their names; first what the rule says.

    If labelled neighbours are of one class hardly more often than by chance, those of a deep
    network follow.
    """
    from lgcn.training.choose import neighbours_agree, wants_many

    flat = settings.flat()
    given = {name: flat[name] for name in settings.given if name != "labels"}
    for labels in ("many", "few") if wants_many(graph) else ("few", "many"):
        yield labels, Settings.create(**{**given, "labels": labels})
    if not neighbours_agree(graph):
        yield "deep", Settings.create(**{**given, **DEEP})
