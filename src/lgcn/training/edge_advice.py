"""Which networks read edge features and directions, told before data are read or torch imported."""

from __future__ import annotations

from lgcn.errors import UsageError
from lgcn.training.groups import GraphLGCNSettings, ModelSettings
from lgcn.training.settings import Settings


def check_reads_edges(model: ModelSettings, what: str) -> None:
    """Raises UsageError if a network does not read edge features that it is given.

    Args:
        model: The settings of the network. With ``edge_features=none``, they are left out.
        what: The features, for the message.
    """
    if model.reads_edge_features or getattr(model, "edge_features", None) == "none":
        return
    if hasattr(model, "edge_features"):
        raise UsageError(
            f"aggregate={model.aggregate} does not read {what}: choose another aggregate, or train "
            "without them by edge_features=none"
        )
    others = "" if isinstance(model, GraphLGCNSettings) else "use model=residual, or "
    raise UsageError(
        f"model={model.name} does not read {what}: {others}omit edge_columns, or the graph's "
        "edge_attr"
    )


def refuse_several(what: str) -> UsageError:
    """The error if several networks are asked for, most of which cannot read something."""
    return UsageError(
        f"time_limit and max_trials try several networks, most of which cannot use {what}: omit "
        "both, and train model=residual"
    )


def needs_directed(name: str) -> UsageError:
    """The error if both directions of a graph's edges are to be read, and are the same."""
    return UsageError(
        f"directions=both needs a directed graph, and every edge of {name} counts both ways: use "
        "directions=in, or read the edges with directed=True"
    )


def check_tables(settings: Settings) -> None:
    """Raises UsageError if what the settings say of tables does not fit the network."""
    several = settings.time_limit is not None or settings.max_trials is not None
    both = getattr(settings.model, "directions", "in") == "both"
    if settings.dataset_options.get("edge_columns"):
        check_reads_edges(settings.model, "edge features (edge_columns)")
        if several:
            raise refuse_several("edge features (edge_columns)")
    if both and several:
        raise refuse_several("directions=both")
    if both and settings.dataset == "tables" and not settings.dataset_options.get("directed"):
        raise needs_directed("the tables")
