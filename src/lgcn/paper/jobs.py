"""A job: one run of a system on a data set with a seed and settings, and how it is run."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from lgcn.datasets import load_dataset
from lgcn.paper.systems import SYSTEMS

# Graphs without a split: 20 labels per class are for training, or half of all labels.
GRAPHS = (
    "amazon_computers",
    "coauthor_cs",
    "wordnet31",
    "debian_bookworm",
    "wordnet31-half",
    "debian_bookworm-half",
)
# Graphs with ten published splits, scored by ROC AUC: a run takes that of its seed's last digit.
PUBLISHED = ("minesweeper", "tolokers")
PUBLISHED_SPLITS = 10
# Sets of whole graphs with public folds.
GRAPH_SETS = (
    "DD",
    "NCI1",
    "PROTEINS",
    "ENZYMES",
    "IMDB-BINARY",
    "IMDB-MULTI",
    "REDDIT-BINARY",
    "COLLAB",
)
# Settings that do not affect the result, or that are fields of the job.
NOT_RECORDED = ("dataset", "dataset_options", "seed", "device", "memory", "num_workers")


@dataclass(frozen=True)
class Job:
    """One run. Make it with :func:`make_job`, so that equal runs are equal jobs."""

    system: str
    dataset: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    fold: int | None = None  # of a set of whole graphs

    @property
    def id(self) -> str:
        """A short name, DATASET/SYSTEM-DIGEST/seed-N; the digest is that of the settings."""
        digest = hashlib.sha256(canonical(as_recorded(self.settings)).encode()).hexdigest()[:8]
        fold = "" if self.fold is None else f"fold-{self.fold}/"
        return f"{self.dataset}/{fold}{self.system}-{digest}/seed-{self.seed}"

    @property
    def loaded(self) -> str:
        """The data set as `lgcn.load_dataset` calls it."""
        return self.dataset if self.fold is None else "graphs"

    @property
    def dataset_options(self) -> dict[str, Any]:
        if self.fold is not None:
            return {"path": self.dataset, "fold": self.fold}
        return split_options(self.dataset, self.seed)

    @property
    def cost(self) -> float:
        """A rough estimate of its time: the longest runs start first."""
        sizes = {"cora": 1.0, "citeseer": 1.0, "pubmed": 4.0, "ppi": 60.0, "ppi-rederived": 60.0}
        sizes |= {"COLLAB": 80.0, "REDDIT-BINARY": 60.0, "DD": 40.0, "NCI1": 20.0, "PROTEINS": 6.0}
        return SYSTEMS[self.system].cost * sizes.get(self.dataset, 10.0)

    def to_dict(self) -> dict[str, Any]:
        fold = {} if self.fold is None else {"fold": self.fold}
        return {
            "system": self.system,
            "dataset": self.dataset,
            **fold,
            "seed": self.seed,
            "settings": as_recorded(self.settings),
        }


def split_options(dataset: str, seed: int) -> dict[str, Any]:
    """Options of a data set: the seed of a run also draws or chooses the split of some graphs."""
    if dataset in PUBLISHED:
        return {"split": seed % PUBLISHED_SPLITS}
    return {"split_seed": seed} if dataset in GRAPHS else {}


def make_job(
    system: str, dataset: str, seed: int, settings: Mapping[str, Any], fold: int | None = None
) -> Job:
    """The job of a system with settings that override its own.

    Settings that equal those of the preset are omitted, so that a run that two tables need is one
    job. So are settings that the system's model does not have.
    """
    given = {**SYSTEMS[system].settings, **SYSTEMS[system].on.get(dataset, {}), **settings}
    job = Job(system, dataset, seed, given, fold)
    if SYSTEMS[system].function is None:
        from lgcn.training import Settings
        from lgcn.training.settings import flat_names

        preset = given.get("preset", "default")
        plain = Settings.create(
            dataset=job.loaded, dataset_options=job.dataset_options, preset=preset
        )
        base = plain.flat()
        of_lgcn = flat_names("lgcn").keys() - base.keys()
        full = plain.replace(**{key: given[key] for key in given if key not in of_lgcn}).flat()
        changed = {key: full[key] for key in sorted(full) if full[key] != base[key]}
        job = replace(job, settings={"preset": preset, **changed})
    return job


def full_settings(job: Job) -> dict[str, Any]:
    """All settings of a run, including those of the preset and the defaults, as in records."""
    if SYSTEMS[job.system].function is not None:
        return dict(job.settings)
    path = None if job.fold is None else job.dataset
    return dict(_full_settings(job.loaded, path, canonical(dict(job.settings))))


@cache  # hundreds of records share their settings
def _full_settings(dataset: str, path: str | None, settings: str) -> Mapping[str, Any]:
    from lgcn.training import Settings

    options = {} if path is None else {"path": path}
    chosen = Settings.create(dataset=dataset, dataset_options=options, **json.loads(settings))
    flat = chosen.flat()
    return as_recorded({key: value for key, value in flat.items() if key not in NOT_RECORDED})


def as_recorded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by the flat names that records have: in these a preset is called recipe."""
    return {"recipe" if key == "preset" else key: settings[key] for key in settings}


def command(job: Job) -> str:
    """The command that repeats a run."""
    function = SYSTEMS[job.system].function
    if function is None:
        data = ["--dataset", job.dataset]
        if job.fold is not None:
            data = ["--graphs", job.dataset, "--fold", str(job.fold)]
        parts = ["lgcn", "train", *data]
        settings = dict(job.settings)
        if "preset" in settings:
            parts += ["--preset", settings.pop("preset")]
        parts += ["--seed", str(job.seed)]
        if job.fold is None:
            settings |= {f"dataset_options.{key}": v for key, v in job.dataset_options.items()}
        for key, value in settings.items():
            parts += ["--set", f"{key}={_toml(value)}"]
        return shlex.join(parts)
    module, _, name = function.partition(":")
    options = "".join(f", {key}={value!r}" for key, value in job.settings.items())
    code = (
        f"from lgcn import load_dataset; from {module} import {name}; "
        f'print({name}(load_dataset("{job.dataset}"), seed={job.seed}{options}))'
    )
    return shlex.join(["python", "-c", code])


def run_job(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    """Trains and scores a system; returns its result."""
    graph = _load(job.loaded, root, **job.dataset_options)
    function = SYSTEMS[job.system].function
    if function is None:
        from lgcn.training import Settings, train
        from lgcn.utils.memory import release_memory

        settings = Settings.create(
            dataset=job.loaded,
            dataset_options=job.dataset_options,
            seed=job.seed,
            device=device,
            **dict(job.settings),
        )
        record = train(graph, settings).record
        release_memory()  # for the other worker processes
        return record
    module, _, name = function.partition(":")
    result: dict[str, Any] = getattr(import_module(module), name)(
        graph, seed=job.seed, **job.settings
    )
    return result


@lru_cache(1)  # most runs of a process share a data set, but there are many splits
def _load(dataset: str, root: str | None, **options: Any) -> Any:
    return load_dataset(dataset, root, **options)


def canonical(value: Any) -> str:
    """JSON that is equal for equal settings."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _toml(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
