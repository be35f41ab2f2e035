"""The experiment on whole graphs: public folds, and settings chosen on validation graphs alone.

Each of the ten folds has training, validation and test graphs. In each, every system is trained
with the same number of settings (`TRIALS`). The one with the highest validation score is trained
three times, and the mean of the three test scores is the score of the fold.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lgcn.paper.jobs import GRAPH_SETS, Job, make_job
from lgcn.paper.plan import Plan, Row
from lgcn.paper.printed import FAIR_COMPARISON
from lgcn.paper.systems import SYSTEMS

if TYPE_CHECKING:
    from lgcn.paper.records import Records

FOLDS, RUNS = 10, 3
QUICK_FOLDS, QUICK_TRIALS = 1, 2
OWN = "graph-lgcn"
BLIND = "structure_blind"
# All systems that see edges have the same limits.
LIMITS: Mapping[str, Any] = {"max_epochs": 300, "patience": 50}
# What systems know of nodes besides their labels. Half of the trials have what the fair comparison
# has: the degree where nodes have no labels. The others have eleven numbers that edges give.
DEGREE: dict[str, Any] = {"structural_features": "degree"}
EDGES: dict[str, Any] = {"structural_features": "yes"}
# The settings that are tried, for every system the same number.
TRIALS: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    OWN: (
        DEGREE,
        EDGES,
        DEGREE | {"readout": "sum+k_largest"},
        EDGES | {"hidden_channels": 64, "lgcl_channels": 64, "readout": "mean+max"},
    ),
    "gin": (
        DEGREE,
        EDGES,
        DEGREE | {"hidden_channels": 32, "readout": "mean", "dropout": 0.0},
        EDGES | {"hidden_channels": 32, "num_layers": 2},
    ),
    "graphsage": (
        DEGREE,
        EDGES,
        DEGREE | {"aggregator": "mean", "num_layers": 5},
        EDGES | {"aggregator": "mean"},
    ),
    "dgcnn": (
        DEGREE | {"lr": 0.001},
        EDGES | {"lr": 0.001},
        DEGREE,
        EDGES | {"lr": 0.001, "num_layers": 4},
    ),
    BLIND: (
        DEGREE,
        DEGREE | {"hidden_channels": 32},
        DEGREE | {"hidden_channels": 256, "weight_decay": 0.0001},
        DEGREE | {"weight_decay": 0.01},
    ),
}


@dataclass(frozen=True)
class GraphPlan(Plan):
    """The table of whole graphs.

    Args:
        folds: Folds of each set of graphs. (default: 10)
        trials: Settings that are tried per system and fold: the first ones of `TRIALS`.
            (default: all four)
    """

    folds: int = FOLDS
    trials: int = 4

    def settings(self, row: Row, dataset: str) -> dict[str, Any]:
        limits = {} if row.system == BLIND else LIMITS
        return {**limits, **row.settings, **(SYSTEMS[row.system].quick if self.quick else {})}

    @property
    def seeds_per_fold(self) -> int:
        """Runs with the settings that are chosen in a fold."""
        return 1 if self.quick else self.seeds or RUNS

    def trial_jobs(self, row: Row, dataset: str) -> list[Job]:
        """One run per trial, in the first fold."""
        base = self.settings(row, dataset)
        tried = TRIALS[row.system][: self.trials]
        return [make_job(row.system, dataset, 0, {**trial, **base}, 0) for trial in tried]

    def jobs(self, row: Row, dataset: str) -> list[Job]:
        """One run per trial and fold: the search."""
        first = self.trial_jobs(row, dataset)
        return [replace(job, fold=fold) for fold in range(self.folds) for job in first]

    def more_jobs(self, stored: "Records") -> list[Job]:
        """Further runs with the chosen settings; the search has the first of each fold."""
        return [
            job
            for dataset in self.datasets
            for row in self.on(dataset)
            for runs in self.runs(row, dataset, stored).values()
            for job in runs[1:]
        ]

    def runs(self, row: Row, dataset: str, stored: "Records") -> dict[int, list[Job]]:
        """The runs of each fold with the settings that have the highest validation score there.

        Of equal scores, the first counts. A fold of which a run of the search is missing is left
        out.
        """
        found = {}
        tried = self.trial_jobs(row, dataset)
        for fold in range(self.folds):
            jobs = [replace(job, fold=fold) for job in tried]
            records = [stored.find(job)[0] for job in jobs]
            scores = [record["result"]["val_score"] for record in records if record is not None]
            if len(scores) == len(jobs):
                chosen = jobs[scores.index(max(scores))]
                found[fold] = [replace(chosen, seed=seed) for seed in range(self.seeds_per_fold)]
        return found


def graph_plan(preset: str | None) -> GraphPlan:
    """The plan of ``lgcn reproduce graphs``."""
    rows = tuple(
        Row(SYSTEMS[name].title, name, {}, FAIR_COMPARISON.get(name, {})) for name in TRIALS
    )
    title = "Whole graphs: ten public folds, accuracy in %"
    return GraphPlan("graphs", title, GRAPH_SETS, rows)
