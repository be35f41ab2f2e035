"""A table as rows and data sets, from which its runs follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from lgcn.paper import printed as paper
from lgcn.paper.jobs import Job, make_job
from lgcn.paper.systems import SYSTEMS

if TYPE_CHECKING:
    from lgcn.paper.records import Records

PROTEINS = ("ppi", "ppi-rederived")
SEEDS, PROTEIN_SEEDS = 10, 3
# --quick: on PPI, an epoch has many steps and the networks are wide.
QUICK_PROTEINS: Mapping[str, Any] = {"max_steps": 2, "hidden_channels": 8, "lgcl_channels": 8}


@dataclass(frozen=True)
class Row:
    """A row of a table: a system with its settings, and the paper's numbers for it."""

    label: str
    system: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    printed: Mapping[str, paper.Number] = field(default_factory=dict)
    datasets: tuple[str, ...] | None = None  # if not on all


@dataclass(frozen=True)
class Plan:
    """A table: its data sets, rows and seeds, from which all jobs follow."""

    target: str
    title: str
    datasets: tuple[str, ...]
    rows: tuple[Row, ...]
    seeds: int | None = None  # None: 10, and 3 on PPI
    limits: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # on PPI, by system
    quick: bool = False

    def on(self, dataset: str) -> list[Row]:
        """The rows of a data set."""
        return [row for row in self.rows if row.datasets is None or dataset in row.datasets]

    def settings(self, row: Row, dataset: str) -> dict[str, Any]:
        system = SYSTEMS[row.system]
        protein = dataset in PROTEINS and system.function is None
        settings = {**row.settings, **(self.limits.get(row.system, {}) if protein else {})}
        if not self.quick:
            return settings
        return {**settings, **system.quick, **(QUICK_PROTEINS if protein else {})}

    def jobs(self, row: Row, dataset: str) -> list[Job]:
        """One job per seed; a single one if the seed makes no difference."""
        seeds = self.seeds or (PROTEIN_SEEDS if dataset in PROTEINS else SEEDS)
        if self.quick or not SYSTEMS[row.system].random:
            seeds = 1
        first = make_job(row.system, dataset, 0, self.settings(row, dataset))
        return [replace(first, seed=seed) for seed in range(seeds)]

    def more_jobs(self, stored: "Records") -> list[Job]:
        """Runs that depend on the results of those of `all_jobs`: none in most tables."""
        return []

    def all_jobs(self) -> list[Job]:
        return [
            job
            for dataset in self.datasets
            for row in self.on(dataset)
            for job in self.jobs(row, dataset)
        ]
