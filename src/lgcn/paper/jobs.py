"""One run: which system, data set, seed and settings, and how it is run."""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from lgcn.datasets import load_dataset
from lgcn.paper.systems import SYSTEMS

# Graphs without a split: 20 labels a class are for training, or half of all labels.
GRAPHS = (
    "amazon_computers",
    "coauthor_cs",
    "wordnet31",
    "debian_bookworm",
    "wordnet31-half",
    "debian_bookworm-half",
)
# Settings that do not belong to what is measured, or stand in the job itself.
NOT_RECORDED = ("dataset", "dataset_options", "seed", "device", "memory", "num_workers")


@dataclass(frozen=True)
class Job:
    """A run. Make it with :func:`make_job`, so that equal runs are equal jobs."""

    system: str
    dataset: str
    seed: int
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """DATASET/SYSTEM-DIGEST/seed-N, where its record lies."""
        digest = hashlib.sha256(canonical(dict(self.settings)).encode()).hexdigest()[:8]
        return f"{self.dataset}/{self.system}-{digest}/seed-{self.seed}"

    @property
    def dataset_options(self) -> dict[str, Any]:
        return split_options(self.dataset, self.seed)

    @property
    def cost(self) -> float:
        """How long it takes, roughly, to start the longest first."""
        sizes = {"cora": 1.0, "citeseer": 1.0, "pubmed": 4.0, "ppi": 60.0, "ppi-rederived": 60.0}
        return SYSTEMS[self.system].cost * sizes.get(self.dataset, 10.0)

    def to_dict(self) -> dict[str, Any]:
        return {
            "system": self.system,
            "dataset": self.dataset,
            "seed": self.seed,
            "settings": dict(self.settings),
        }


def split_options(dataset: str, seed: int) -> dict[str, Any]:
    """Where a graph comes without a split, the seed of a run draws it."""
    return {"split_seed": seed} if dataset in GRAPHS else {}


def make_job(system: str, dataset: str, seed: int, settings: Mapping[str, Any]) -> Job:
    """The run of a system with settings above its own.

    Settings that the recipe has anyway are left out: a run that two tables need is one job.
    """
    given = {**SYSTEMS[system].settings, **SYSTEMS[system].on.get(dataset, {}), **settings}
    if SYSTEMS[system].function is None:
        from lgcn.training import Config

        recipe = given.get("recipe", "default")
        base = Config.create(dataset=dataset, recipe=recipe).to_dict()
        full = Config.create(dataset=dataset, **{**given, "recipe": recipe}).to_dict()
        changed = {key: full[key] for key in sorted(given) if full[key] != base[key]}
        given = {"recipe": recipe, **changed}
    return Job(system, dataset, seed, given)


def full_settings(job: Job) -> dict[str, Any]:
    """All settings of the run, those of the recipe and the defaults too."""
    if SYSTEMS[job.system].function is not None:
        return dict(job.settings)
    return dict(_full_settings(job.dataset, canonical(dict(job.settings))))


@cache  # hundreds of records have the same
def _full_settings(dataset: str, settings: str) -> Mapping[str, Any]:
    from lgcn.training import Config

    config = Config.create(dataset=dataset, **json.loads(settings)).to_dict()
    return {key: value for key, value in config.items() if key not in NOT_RECORDED}


def command(job: Job) -> str:
    """The command line that repeats the run."""
    function = SYSTEMS[job.system].function
    if function is None:
        parts = ["lgcn", "train", "--dataset", job.dataset]
        settings = dict(job.settings)
        if "recipe" in settings:
            parts += ["--recipe", settings.pop("recipe")]
        parts += ["--seed", str(job.seed)]
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
    """Trains and scores; gives what was measured."""
    graph = _load(job.dataset, root, **job.dataset_options)
    function = SYSTEMS[job.system].function
    if function is None:
        from lgcn.training import Config, train
        from lgcn.utils.memory import release_memory

        config = Config.create(
            dataset=job.dataset,
            dataset_options=job.dataset_options,
            seed=job.seed,
            device=device,
            **dict(job.settings),
        )
        record = train(graph, config).record
        release_memory()  # others run beside this one
        return record
    module, _, name = function.partition(":")
    result: dict[str, Any] = getattr(import_module(module), name)(
        graph, seed=job.seed, **job.settings
    )
    return result


@lru_cache(1)  # a process mostly has runs of one data set, but splits are many
def _load(dataset: str, root: str | None, **options: Any) -> Any:
    return load_dataset(dataset, root, **options)


def canonical(value: Any) -> str:
    """The same text for the same settings."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _toml(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)
