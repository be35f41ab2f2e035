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
    function of its own does, named by ``module:function``. The LGCN has several recipes, of which a
    table takes some; other systems have one.
    """

    title: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # settings on a data set
    function: str | None = None
    needs: str | None = None  # a module that comes with an extra
    random: bool = True  # whether the seed makes a difference
    cost: float = 1.0  # roughly, GCN being 1: longest runs start first
    # --quick: does it run? The scores mean nothing.
    quick: Mapping[str, Any] = field(default_factory=lambda: {"max_epochs": QUICK_EPOCHS})

    @property
    def missing(self) -> bool:
        """Whether it needs an extra that is not installed."""
        return self.needs is not None and find_spec(self.needs) is None


_BASELINES = "lgcn.paper.baselines"


def _sage(name: str, cost: float) -> System:
    settings = {"recipe": "sage", "aggregator": name.lower()}
    return System(f"GraphSAGE-{name}", settings, cost=cost)


def _trivial(title: str, function: str) -> System:
    place = f"{_BASELINES}.trivial:{function}"
    return System(title, function=place, random=False, cost=0.1, quick={})


SYSTEMS: dict[str, System] = {
    "deepwalk": System(
        "DeepWalk",
        on={"pubmed": {"walks_per_node": 20}},
        function=f"{_BASELINES}.deepwalk:train_deepwalk",
        needs="gensim",
        cost=30,
        quick={"max_epochs": 1, "length": 10, "dimensions": 8},
    ),
    "planetoid": System("Planetoid", function=f"{_BASELINES}.planetoid:train_planetoid", cost=30),
    "chebyshev": System("Chebyshev", {"recipe": "chebyshev"}, cost=2),
    "gcn": System("GCN", {"recipe": "gcn"}),
    "gcnii": System("GCNII", {"recipe": "gcnii"}, cost=10),
    "gat": System("GAT", {"recipe": "gat"}, cost=8),
    "lgcn": System("LGCN_sub", cost=4),
    "lgcn-gcn": System("LGCN_sub-GCN", {"layer": "gcn"}, cost=3),
    "lgcn-whole": System("LGCN_whole", {"training": "whole"}, cost=5),
    "sage-gcn": _sage("GCN", 1),
    "sage-mean": _sage("mean", 1),
    "sage-pool": _sage("pool", 10),
    "sage-lstm": _sage("LSTM", 20),
    "mlp": System("MLP", {"recipe": "mlp"}),
    "zeros": _trivial("all zeros", "predict_nothing"),
    "lookup": _trivial("look-up of the gene", "look_up_genes"),
}
