"""Tables against the records they are made of, with the standard library's statistics."""

import math
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lgcn.paper import printed as paper
from lgcn.paper.plan import Plan
from lgcn.paper.plans import ABLATION_BASE, make_plans
from lgcn.paper.records import Records
from lgcn.paper.tables import (
    ROUGH_PRODUCTS,
    RULE_ROW,
    Table,
    make_table,
    mean_and_std,
    timings,
)
from lgcn.paper.timing import write_times

from .fakes import fake_record, fake_times, fill, filled_record, write_fake


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {plan.target: plan for plan in make_plans("all", seeds=3, trials=1)}


@pytest.fixture(scope="module")
def folder(plans: dict[str, Plan], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of all runs of three seeds."""
    path = tmp_path_factory.mktemp("records")
    fill(list(plans.values()), path)
    return path


@pytest.fixture(scope="module")
def tables(plans: dict[str, Plan], folder: Path) -> dict[str, Table]:
    return {target: make_table(plan, folder) for target, plan in plans.items()}


def text(table: Table, row: str, dataset: str, column: str) -> str:
    entry = table.entry(row, dataset)
    assert entry is not None
    [found] = [c for c in table.columns if c.title == column]
    return found.text(entry)


def test_mean_and_deviation() -> None:
    values = [0.2, 0.5, 0.9]
    assert mean_and_std(values) == (statistics.mean(values), statistics.stdev(values))
    assert mean_and_std([0.3]) == (0.3, None)
    assert mean_and_std([]) == (None, None)


@pytest.mark.parametrize(
    "target", ["table2", "table3", "table4", "table5", "figure5", "ablation", "text", "best"]
)
def test_entries_are_what_the_records_say(
    target: str, plans: dict[str, Plan], folder: Path, tables: dict[str, Table]
) -> None:
    plan, table, stored = plans[target], tables[target], Records(folder)
    expected = sum(len(plan.on(dataset)) for dataset in plan.datasets)
    rows = [entry for entry in table.entries if entry["row"] != RULE_ROW]
    assert len(rows) == expected
    for dataset in plan.datasets:
        for row in plan.on(dataset):
            entry = table.entry(row.label, dataset)
            assert entry is not None
            found = [stored.find(job)[0] for job in plan.jobs(row, dataset)]
            results = [record["result"] for record in found if record is not None]
            unit = 1 if "ppi" in dataset else 100
            assert entry["seeds"] == entry["seeds_wanted"] == len(results) == len(found)
            for key, name in (("test_score", "honest"), ("test_score_released_rule", "released")):
                values = [unit * result[key] for result in results]
                assert entry[name] == pytest.approx(statistics.mean(values))
                if len(values) > 1:
                    assert entry[f"{name}_std"] == pytest.approx(statistics.stdev(values))
                else:
                    assert entry[f"{name}_std"] is None
            printed = row.printed.get(dataset)
            assert entry["paper"] == (printed.mean if printed else None)


def test_how_numbers_are_written(tables: dict[str, Table]) -> None:
    entry = tables["table2"].entry("GCN", "cora")
    assert entry is not None
    shown = f"{entry['honest']:.1f} ± {entry['honest_std']:.1f} (3)"
    assert text(tables["table2"], "GCN", "cora", "honest") == shown
    assert text(tables["table2"], "GCN", "cora", "paper") == "81.5"
    assert text(tables["table2"], "GAT", "cora", "paper") == "83.0 ± 0.7 †"
    label = "LGCN_sub (released program)"
    assert text(tables["table2"], label, "pubmed", "paper") == "79.5 ± 0.2"
    assert text(tables["table3"], label, "ppi", "paper") == "0.772 ± 0.002"
    entry = tables["table3"].entry("all zeros", "ppi")
    assert entry is not None
    assert text(tables["table3"], "all zeros", "ppi", "honest") == f"{entry['honest']:.3f} (1)"
    cells = text(tables["table3"], "all zeros", "ppi", "label cells")
    assert cells == f"{entry['label_accuracy']:.3f}"


def test_missing_runs_are_counted(plans: dict[str, Plan], tmp_path: Path) -> None:
    plan = plans["table2"]
    row = next(row for row in plan.rows if row.system == "gcn")
    jobs = plan.jobs(row, "cora")
    for job in jobs[:2]:
        write_fake(tmp_path, filled_record(job, 0))
    table = make_table(plan, tmp_path)
    entry = table.entry("GCN", "cora")
    assert entry is not None
    assert (entry["seeds"], entry["seeds_wanted"]) == (2, 3)
    assert text(table, "GCN", "cora", "honest").endswith("(2 of 3)")
    assert text(table, "GCN", "citeseer", "honest") == "-"
    assert text(table, "GCN", "citeseer", "released rule") == "-"
    assert any("missing" in note for note in table.notes)


def test_differences_of_the_ablation(tables: dict[str, Table]) -> None:
    table = tables["ablation"]
    for dataset in table.datasets:
        base, other = table.entry(ABLATION_BASE, dataset), table.entry("Adam", dataset)
        assert base is not None
        assert other is not None
        assert base["difference"] is None
        assert other["difference"] == pytest.approx(other["honest"] - base["honest"])
        error = math.sqrt(base["honest_std"] ** 2 / 3 + other["honest_std"] ** 2 / 3)
        assert other["difference_error"] == pytest.approx(error)
        rule = table.entry(RULE_ROW, dataset)
        assert rule is not None
        assert rule["difference"] == pytest.approx(base["released"] - base["honest"])
        assert rule["difference_error"] == pytest.approx(0, abs=1e-9)  # 1.2 points in each run
        assert text(table, RULE_ROW, dataset, "difference").startswith("+1.2 ± 0.0")


def test_what_is_special_on_ppi_is_said(tables: dict[str, Table]) -> None:
    for target, table in tables.items():
        said = any("1000 steps" in note for note in table.notes)
        assert said == (target in ("table3", "figure5")), target
        most = "Maximum number of epochs: LGCN 950, GAT 300, GraphSAGE-mean 950, GCNII 1200."
        epochs = any(most in note for note in table.notes)
        assert epochs == (target == "best-ppi"), target


@pytest.mark.parametrize("target", ["table3", "figure5", "best-ppi"])
def test_quick_runs_have_other_limits_on_ppi(target: str) -> None:
    [quick] = make_plans(target, quick=True)
    said = make_table(quick, Path("nowhere"), []).notes
    assert not any("1000 steps" in note or "Maximum number of epochs" in note for note in said)


def test_rough_products_are_said(plans: dict[str, Plan], tmp_path: Path) -> None:
    plan = replace(plans["best-ppi"], datasets=("ppi",))
    jobs = plan.all_jobs()
    for number, job in enumerate(jobs):
        record = fake_record(job)
        record["machine"] |= {"float32_products": "highest" if number else "high"}
        write_fake(tmp_path, record)
    assert ROUGH_PRODUCTS in make_table(plan, tmp_path).notes
    write_fake(tmp_path, fake_record(jobs[0]))
    assert ROUGH_PRODUCTS not in make_table(plan, tmp_path).notes


def test_differences_of_the_best_preset(tables: dict[str, Table]) -> None:
    table = tables["best"]
    for dataset in table.datasets:
        first, *others = (table.entry(row, dataset) for row in table.labels)
        assert first is not None
        assert first["difference"] is None
        assert len(others) == 3
        for other in others:
            assert other is not None
            assert other["difference"] == pytest.approx(other["honest"] - first["honest"])
    assert RULE_ROW not in table.labels


def test_runs_with_the_split_of_one_seed_are_compared(
    plans: dict[str, Plan], tmp_path: Path
) -> None:
    plan = plans["best-graphs"]
    scores = {"LGCN (best)": (0.5, 0.6, 0.7), "GCN": (0.48, 0.59, 0.68), "GAT": (0.48, 0.59)}
    for row in plan.rows:
        for job, score in zip(plan.jobs(row, "wordnet31"), scores.get(row.label, ()), strict=False):
            record = filled_record(job, 0)
            record["result"]["test_score"] = score
            write_fake(tmp_path, record)
    table = make_table(plan, tmp_path)
    entry = table.entry("GCN", "wordnet31")
    assert entry is not None
    assert entry["difference"] == pytest.approx(-5 / 3)
    error = statistics.stdev([2, 1, 2]) / math.sqrt(3)  # not that of 50 to 70, of 5.8 points
    assert entry["difference_error"] == pytest.approx(error)
    assert text(table, "GAT", "wordnet31", "difference") == "-1.5 ± 0.5"  # without the third seed


def test_times_and_their_ratios(plans: dict[str, Plan], tables: dict[str, Table]) -> None:
    table = tables["table5"]
    titles = [column.title for column in table.columns]
    assert "seconds, CPU" in titles
    assert "seconds, GPU" not in titles  # none were measured
    assert "Our times: CPU a fake, 2 threads." in table.notes
    assert text(table, "GCN", "cora", "seconds, CPU") == "2 (1x)"
    assert text(table, "LGCN_whole", "cora", "seconds, CPU") == "3 (1.5x)"
    assert text(table, "LGCN_whole", "pubmed", "seconds, paper") == "1080 (28x)"
    assert text(table, "LGCN_sub, Algorithm 1", "pubmed", "seconds, paper") == "-"
    entry = table.entry("LGCN_sub, one hop", "citeseer")
    assert entry is not None
    assert entry["times_gcn_paper"] == pytest.approx(3.6 / 4)
    assert entry["nodes_paper"] == 442
    assert entry["nodes"] == pytest.approx((500 + 501 + 502 + 3 * 600) / 6)
    assert text(table, "LGCN_sub, one hop", "cora", "nodes") == "644"


def test_times_on_a_gpu_are_columns_of_their_own(plans: dict[str, Plan], tmp_path: Path) -> None:
    plan = plans["table5"]
    fill([plan], tmp_path)
    write_times(tmp_path, fake_times(timings(plan, "cora", "cuda")))
    table = make_table(plan, tmp_path)
    assert text(table, "GCN", "cora", "seconds, GPU") == "2 (1x)"
    assert text(table, "GCN", "pubmed", "seconds, GPU") == "-"


def test_notes(tables: dict[str, Table]) -> None:
    for table in tables.values():
        said = any("not PPI scores" in note for note in table.notes)
        assert said == ("ppi-rederived" in table.datasets)
        of_graphs = table.target in ("graphs", "graph-parts")
        rule = "Test graphs choose nothing" if of_graphs else "uses the test set"
        assert any(rule in note for note in table.notes)
        assert not any("--quick" in note for note in table.notes)
    [quick] = make_plans("table4", quick=True)
    assert "--quick" in make_table(quick, Path("nowhere"), ["more"]).notes[0]
    assert make_table(quick, Path("nowhere"), ["more"]).notes[-1] == "more"


def test_each_row_has_a_command(tables: dict[str, Table]) -> None:
    commands: dict[str, Any] = dict(tables["figure5"].commands)
    assert (
        commands["k = 8"] == "lgcn train --dataset DATASET --preset default --seed SEED --set k=8"
    )
    split = tables["best-graphs"].commands["GCN"]
    assert split.endswith("--seed SEED --set dataset_options.split_seed=SEED")
    assert 'load_dataset("DATASET"), seed=SEED)' in tables["table2"].commands["DeepWalk"]


def test_paper_s_k_is_where_its_number_stands(tables: dict[str, Table]) -> None:
    for entry in tables["figure5"].entries:
        best = entry["row"] == f"k = {paper.FIGURE_K[entry['dataset']]}"
        assert (entry["paper"] is not None) == best
