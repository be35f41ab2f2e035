"""All targets by name: functions of a :class:`~tests.fuzz.source.Source`.

A target returns if the case passes, raises :class:`~tests.fuzz.rules.Refused` if wrong input was
refused with one clear line, and raises anything else if it found a defect.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module

from ..source import Source

Target = Callable[[Source], None]

# Modules and functions. They are imported on first use: the process that forks others must not
# import the package, whose threads do not survive a fork.
TARGETS = {
    "k_largest": "operators.k_largest_target",
    "k_largest_gradients": "operators.gradients_target",
    "index_arrays": "arrays.index_arrays_target",
    "select_subgraph": "graphs.select_subgraph_target",
    "subgraph": "graphs.subgraph_target",
    "check_graph": "graphs.check_graph_target",
    "edge_index": "conversions.edge_index_target",
    "scipy": "conversions.scipy_target",
    "adjacency": "conversions.adjacency_target",
    "tables_text": "tables.text_target",
    "tables_damaged": "tables.damaged_target",
    "npz": "files.npz_target",
    "planetoid": "files.planetoid_target",
    "run_folder": "runs.finished_target",
    "checkpoint": "runs.checkpoint_target",
    "store": "stores.store_target",
}
UNLISTED = {"faulty": "faulty.faulty_target"}


@cache
def target(name: str) -> Target:
    """The function of a target."""
    module, _, function = (TARGETS | UNLISTED)[name].partition(".")
    found: Target = getattr(import_module(f".{module}", __name__), function)
    return found
