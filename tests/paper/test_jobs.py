"""Jobs: equal runs are one job, their names stay, and commands and calls do what they say."""

import ast
import shlex
from dataclasses import replace
from typing import Any

import pytest

from lgcn import load_dataset
from lgcn.datasets.graph_source import choose_source
from lgcn.paper import jobs, systems
from lgcn.paper.jobs import Job, canonical, command, full_settings, make_job, run_job
from lgcn.paper.plans import make_plans
from lgcn.paper.systems import SYSTEMS, System
from lgcn.training import Settings, train
from lgcn.training.settings import merge_settings


@pytest.fixture(scope="module")
def all_jobs() -> list[Job]:
    """All runs of seed 0 that anything needs."""
    plans = [*make_plans("all", seeds=1), *make_plans("all", quick=True)]
    return [job for plan in plans for job in plan.all_jobs()]


def config_of(job: Job) -> Settings:
    options = job.dataset_options
    return Settings.create(
        dataset=job.loaded, dataset_options=options, seed=job.seed, **job.settings
    )


def test_settings_that_the_preset_has_are_left_out() -> None:
    plain = make_job("lgcn", "cora", 0, {"preset": "default"})
    assert plain.settings == {"preset": "default"}
    assert make_job("lgcn", "cora", 0, {"k": 8, "max_nodes": 2000}) == plain
    assert make_job("lgcn", "cora", 0, {"k": 16}).settings == {"preset": "default", "k": 16}
    # On PPI, 64 is the preset's.
    assert make_job("lgcn", "ppi", 0, {"k": 64}).settings == {"preset": "default"}


def test_tables_share_runs() -> None:
    plans = {plan.target: plan for plan in make_plans("all")}

    def job(target: str, label: str, dataset: str) -> Job:
        plan = plans[target]
        row = next(row for row in plan.rows if row.label == label)
        return plan.jobs(row, dataset)[0]

    default = job("table2", "LGCN_sub (lgcn's defaults)", "pubmed")
    released = job("table2", "LGCN_sub (released program)", "pubmed")
    assert job("table4", "LGCN_sub (lgcn's defaults)", "pubmed") == default
    assert job("figure5", "k = 8", "pubmed") == default
    assert job("table5", "LGCN_sub, Algorithm 1", "pubmed") == default
    assert job("ablation", "released program", "pubmed") == released
    assert job("table5", "GCN", "pubmed") == job("table2", "GCN", "pubmed")
    assert job("figure5", "k = 64", "ppi") == job("table3", "LGCN_sub (lgcn's defaults)", "ppi")


def test_ids_are_distinct(all_jobs: list[Job]) -> None:
    distinct = {canonical(job.to_dict()) for job in all_jobs}
    assert len({job.id for job in all_jobs}) == len(distinct) > 200


def test_ids_stay() -> None:
    """Records are found by them: these were written by earlier versions."""
    assert make_job("gcn", "cora", 3, {}).id == "cora/gcn-45277762/seed-3"
    changed = make_job("lgcn", "pubmed", 0, {"preset": "released", "dropout": 0.16})
    assert changed.id == "pubmed/lgcn-8f5d37e4/seed-0"
    assert make_job("planetoid", "cora", 0, {}).id == "cora/planetoid-44136fa3/seed-0"


def test_commands_repeat_the_run(all_jobs: list[Job]) -> None:
    for job in all_jobs:
        job = replace(job, seed=7)
        words = shlex.split(command(job))
        if SYSTEMS[job.system].function is not None:
            assert words[:2] == ["python", "-c"]
            call = ast.parse(words[2]).body[-1]
            assert (
                f"seed=7{''.join(f', {k}={v}' for k, v in job.settings.items())})"
                in ast.unparse(call)
            )
            assert ast.unparse(call).count(f"load_dataset('{job.dataset}')") == 1
            continue
        assert words[:2] == ["lgcn", "train"]
        flags = dict(zip(words[2::2], words[3::2], strict=True))
        settings = merge_settings(
            [v for f, v in zip(words[2::2], words[3::2], strict=True) if f == "--set"]
        )
        given = {"preset": flags["--preset"], "seed": 7}
        if job.fold is None:
            given["dataset"] = flags["--dataset"]
        else:
            source = choose_source(graphs=flags["--graphs"], fold=int(flags["--fold"]))
            assert source is not None
            given |= {"dataset": source.dataset, "dataset_options": dict(source.options)}
        assert flags["--seed"] == "7"
        assert Settings.create(**given, **settings) == config_of(job)


def test_full_settings_are_all_that_matter(all_jobs: list[Job]) -> None:
    for job in all_jobs:
        if SYSTEMS[job.system].function is None:
            settings = full_settings(job)
            settings["preset"] = settings.pop("recipe")  # its name in records
            again = replace(job, settings=settings)
            assert config_of(again) == config_of(job)
        else:
            assert full_settings(job) == job.settings


def test_a_run_is_that_of_the_training_loop() -> None:
    job = make_job("gcn", "digits", 5, {"max_epochs": 3})
    result = run_job(job)
    expected = train(load_dataset("digits"), config_of(job)).record
    for key in ("val_score", "test_score", "test_score_released_rule", "epochs", "parameters"):
        assert result[key] == expected[key]
    assert result["epochs"] == 3


def train_stub(graph: Any, *, seed: int, **options: Any) -> dict[str, Any]:
    return {"nodes": graph.num_nodes, "seed": seed, "options": options}


def test_a_run_of_a_system_with_a_function_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    stub = System("Stub", function=f"{__name__}:train_stub")
    monkeypatch.setitem(systems.SYSTEMS, "stub", stub)
    result = run_job(make_job("stub", "digits", 4, {"max_epochs": 2}))
    assert result == {"nodes": 1797, "seed": 4, "options": {"max_epochs": 2}}


def test_data_sets_are_loaded_once() -> None:
    assert jobs._load("digits", None) is jobs._load("digits", None)


def test_longer_runs_cost_more() -> None:
    cost = {
        (system, dataset): Job(system, dataset, 0, {}).cost
        for system in ("gcn", "gat")
        for dataset in ("cora", "pubmed", "ppi")
    }
    assert cost["gcn", "cora"] < cost["gcn", "pubmed"] < cost["gcn", "ppi"]
    assert cost["gcn", "cora"] < cost["gat", "cora"]
