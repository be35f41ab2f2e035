"""The experiment on whole graphs: validation graphs choose, test graphs do not."""

import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import load_graphs, train
from lgcn.errors import DataError, UsageError
from lgcn.paper.graph_plan import BLIND, FOLDS, OWN, TRIALS, GraphPlan
from lgcn.paper.graph_table import fold_results, graph_entry
from lgcn.paper.jobs import GRAPH_SETS, Job, make_job, run_job
from lgcn.paper.plan import Row
from lgcn.paper.plans import make_plans
from lgcn.paper.printed import FAIR_COMPARISON
from lgcn.paper.records import Records, make_record
from lgcn.paper.reproduce import reproduce
from lgcn.paper.systems import SYSTEMS
from lgcn.paper.tables import make_table
from lgcn.training import Settings

from .fakes import MACHINE, fake_result

# What a system is told of nodes besides their labels.
INPUTS = "structural_features"


def plan(**options: Any) -> GraphPlan:
    [found] = make_plans("graphs", **options)
    assert isinstance(found, GraphPlan)
    return found


def record(job: Job, val: float, test: float = 0.5) -> dict[str, Any]:
    return make_record(job, fake_result(test, val_score=val), MACHINE)


def one_row(**options: Any) -> tuple[GraphPlan, Row]:
    one = plan(datasets=["ENZYMES"], models=["gin"], **options)
    return one, one.rows[0]


def test_every_system_has_the_same_budget() -> None:
    full = plan()
    assert full.datasets == GRAPH_SETS
    assert full.rows[0].system == OWN
    for row in full.rows:
        for dataset in GRAPH_SETS:
            jobs = full.jobs(row, dataset)
            assert len({job.id for job in jobs}) == len(jobs) == FOLDS * full.trials
            assert Counter(job.fold for job in jobs) == dict.fromkeys(range(FOLDS), full.trials)
    assert full.trials == len(next(iter(TRIALS.values())))


def test_every_system_that_sees_edges_has_the_same_inputs_and_limits() -> None:
    full = plan()
    for row in full.rows:
        inputs, limits = [], set()
        for job in full.trial_jobs(row, "NCI1"):
            chosen = Settings.create(dataset="graphs", **job.settings)
            inputs.append(chosen.structural_features)
            limits.add((chosen.optimisation.max_epochs, chosen.optimisation.patience))
        if row.system == BLIND:
            assert set(inputs) == {"degree"}
        else:
            assert inputs == ["degree", "yes", "degree", "yes"]
            assert limits == {(300, 50)}


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_highest_validation_score_is_chosen_and_the_test_score_is_not_looked_at(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    one, row = one_row()
    jobs = one.jobs(row, "ENZYMES")
    scores = st.lists(st.sampled_from([0.1, 0.5, 0.9]), min_size=len(jobs), max_size=len(jobs))
    val, test = data.draw(scores), data.draw(scores)
    stored = Records(tmp_path_factory.mktemp("records"))
    stored.add("graphs", *map(record, jobs, val, test))
    found = one.runs(row, "ENZYMES", stored)
    for fold in range(FOLDS):
        here = [place for place, job in enumerate(jobs) if job.fold == fold]
        best = int(here[np.argmax([val[place] for place in here])])  # the first of equal ones
        assert [job.seed for job in found[fold]] == [0, 1, 2]
        assert {job.id.rpartition("/")[0] for job in found[fold]} == {
            jobs[best].id.rpartition("/")[0]
        }
    assert one.more_jobs(stored) == [job for fold in range(FOLDS) for job in found[fold][1:]]


def test_a_fold_without_all_runs_of_the_search_is_left_out(tmp_path: Path) -> None:
    one, row = one_row(trials=2)
    jobs = one.jobs(row, "ENZYMES")
    stored = Records(tmp_path)
    stored.add("graphs", *(record(job, 0.5) for job in jobs[:5]))  # two folds and a half
    assert list(one.runs(row, "ENZYMES", stored)) == [0, 1]
    table = make_table(one, tmp_path)
    entry = table.entry("GIN", "ENZYMES")
    assert entry is not None
    assert (entry["seeds"], entry["seeds_wanted"]) == (2, 10)
    assert (entry["runs"], entry["runs_wanted"]) == (2, 30)
    texts = {column.title: column.text(entry) for column in table.columns}
    assert texts["honest"].endswith("(2 of 10)")
    assert texts["runs"] == "2 of 30"
    assert texts["published"] == "-"


def test_a_score_is_the_mean_over_folds_of_the_mean_over_runs(tmp_path: Path) -> None:
    one, row = one_row(trials=1)
    stored = Records(tmp_path)
    stored.add("graphs", *(record(job, 0.5, 0.01 * job.fold) for job in one.jobs(row, "ENZYMES")))
    stored.add("graphs", *(record(job, 0.6, 0.01 * job.seed) for job in one.more_jobs(stored)))
    folds = [statistics.mean([0.01 * fold, 0.01, 0.02]) for fold in range(10)]
    found, records = fold_results(one, row, "ENZYMES", stored)
    assert [found[fold]["test_score"] for fold in range(10)] == pytest.approx(folds)
    assert len(records) == 30
    entry = graph_entry(one, row, "ENZYMES", found, len(records))
    assert entry["honest"] == pytest.approx(100 * statistics.mean(folds))
    assert entry["honest_std"] == pytest.approx(100 * statistics.stdev(folds))
    assert entry["val"] == pytest.approx(100 * statistics.mean([0.5, 0.6, 0.6]))


def test_differences_are_between_equal_folds(tmp_path: Path) -> None:
    one = plan(datasets=["PROTEINS"], models=[OWN, "gin"], trials=1, seeds=1)
    stored = Records(tmp_path)
    for row, folds in zip(one.rows, (range(10), range(4)), strict=True):
        jobs = [job for job in one.jobs(row, "PROTEINS") if job.fold in folds]
        shift = 0.02 if row.system == "gin" else 0.0
        stored.add("graphs", *(record(job, 0.5, 0.01 * job.fold + shift) for job in jobs))
    table = make_table(one, tmp_path)
    entry = table.entry("GIN", "PROTEINS")
    assert entry is not None
    assert entry["difference"] == pytest.approx(2.0)
    assert entry["difference_error"] == pytest.approx(0.0, abs=1e-9)
    assert entry["paper"] == FAIR_COMPARISON["gin"]["PROTEINS"].mean == 73.3


def run_fake(job: Job, root: str | None = None, device: str = "cpu") -> dict[str, Any]:
    """Trials with structural features are better on validation graphs."""
    return record(job, 0.7 if job.settings.get(INPUTS) == "yes" else 0.6)


def without_data(*_: Any, **__: Any) -> None:
    raise DataError("there is no set ENZYMES. Looked for x")


def test_search_and_runs_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lgcn.datasets.check_dataset", lambda *_, **__: None)
    one, _ = one_row()
    first = reproduce([one], tmp_path, run=run_fake)
    assert (first.run, first.failed) == (10 * 4 + 10 * 2, [])
    [table] = first.tables
    assert table.entries[0]["runs"] == 30
    second = reproduce([one], tmp_path, run=run_fake)
    assert (second.run, second.reused) == (0, 60)
    monkeypatch.setattr("lgcn.datasets.check_dataset", without_data)
    with pytest.raises(Exception, match="ENZYMES is left out: there is no set ENZYMES"):
        reproduce([one], tmp_path, run=run_fake)


def test_parts_of_the_network_are_replaced_one_by_one() -> None:
    [parts] = make_plans("graph-parts")
    base, *others = (parts.jobs(row, "NCI1")[0].settings for row in parts.rows)
    for changed in others:
        assert len(dict(changed.items() - base.items())) == 1
        assert base.items() <= changed.items()
    assert {job.seed for job in parts.all_jobs()} == {0}
    assert len(parts.all_jobs()) == len(parts.rows) * len(parts.datasets) * FOLDS


@pytest.mark.usefixtures("data_root")
def test_a_run_trains_on_its_fold() -> None:
    job = make_job(BLIND, "ENZYMES", 4, {"max_epochs": 2}, 3)
    found = run_job(job)
    chosen = Settings.create(
        dataset="graphs",
        dataset_options={"path": "ENZYMES", "fold": 3},
        preset=BLIND,
        max_epochs=2,
        seed=4,
        device="cpu",
    )
    expected = train(load_graphs("ENZYMES", fold=3), chosen).record
    for key in ("val_score", "test_score", "epochs", "parameters"):
        assert found[key] == expected[key]
    other = run_job(make_job(BLIND, "ENZYMES", 4, {"max_epochs": 2}, 2))
    assert other["val_score"] != found["val_score"]


def test_a_preset_knows_a_set_of_graphs_by_its_name() -> None:
    for name, variant in (("NCI1", "fingerprint"), ("COLLAB", "multiset")):
        options = {"path": name, "fold": 0}
        made = Settings.create(dataset="graphs", dataset_options=options, preset=BLIND)
        assert made.flat()["variant"] == variant
        assert make_job(BLIND, name, 0, {}, 0).settings == {"preset": BLIND}


def test_published_figures_are_of_systems_and_sets_of_the_table() -> None:
    assert FAIR_COMPARISON.keys() <= SYSTEMS.keys() & TRIALS.keys()
    for row in FAIR_COMPARISON.values():
        assert row.keys() < set(GRAPH_SETS)


@pytest.mark.parametrize(
    ("target", "trials", "message"),
    [
        ("table2", 2, "--trials is for graphs"),
        ("graphs", 0, "--trials must be from 1 to 4, got 0"),
        ("graphs", 5, "--trials must be from 1 to 4, got 5"),
    ],
)
def test_a_wrong_number_of_trials(target: str, trials: int, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plans(target, trials=trials)
