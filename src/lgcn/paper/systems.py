"""The systems of the paper's tables and those beside them, by the names that ``--models`` takes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

INSTALL = 'pip install "lgcn[reproduce]"'
QUICK_EPOCHS = 2


@dataclass(frozen=True)
class System:
    """What a table calls a system, and how it is trained.

    Either :func:`lgcn.training.train` trains it, with the settings here below those of a job, or a
    function of its own does, named by ``module:function``. The LGCN has several presets, of which a
    table takes some; other systems have one.
    """

    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings on a data set
    function: str | None = None
    needs: str | None = None  # a module that comes with an extra
    random: bool = True  # whether the seed makes a difference
    cost: float = 1.0  # roughly, relative to GCN: the longest runs start first
    # --quick: does it run? The scores mean nothing.
    quick: Mapping[str, Any] = field(default_factory=lambda: {"max_epochs": QUICK_EPOCHS})

    @property
    def missing(self) -> bool:
        """Whether it needs an extra that is not installed."""
        return self.needs is not None and find_spec(self.needs) is None


SYSTEMS: dict[str, System] = {
    "lgcn": System("LGCN_sub", cost=4),
    "lgcn-gcn": System("LGCN_sub-GCN", {"layer": "gcn"}, cost=3),
    "lgcn-whole": System("LGCN_whole", {"training": "whole"}, cost=5),
    "graph-lgcn": System("LGCN", {"preset": "graphs"}, cost=5),
}


def register_system(name: str, system: System) -> None:
    """Adds a system to those that tables can have."""
    SYSTEMS[name] = system
