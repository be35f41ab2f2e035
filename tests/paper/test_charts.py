"""Charts: all are drawn, the same numbers give the same file, and nothing breaks on gaps."""

from pathlib import Path

import pytest

from lgcn.paper.plan import Plan
from lgcn.paper.plans import TARGETS, make_plans
from lgcn.paper.tables import make_table

from .fakes import fill

pytest.importorskip("matplotlib", reason="charts need matplotlib")
from lgcn.paper.charts import draw


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    datasets = ["cora", "wordnet31", "minesweeper", "ppi-rederived", "PROTEINS"]
    found = make_plans("all", datasets=datasets, seeds=2)
    return {plan.target: plan for plan in found}


@pytest.fixture(scope="module")
def folder(plans: dict[str, Plan], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records")
    fill(list(plans.values()), path)
    return path


@pytest.mark.parametrize("target", list(TARGETS))
def test_charts(target: str, plans: dict[str, Plan], folder: Path, tmp_path: Path) -> None:
    table = make_table(plans[target], folder)
    path = draw(table, tmp_path)
    assert path == tmp_path / f"{target}.svg"
    assert b"<svg" in path.read_bytes()
    assert list(tmp_path.iterdir()) == [path]


def test_the_same_numbers_give_the_same_file(
    plans: dict[str, Plan], folder: Path, tmp_path: Path
) -> None:
    table = make_table(plans["table4"], folder)
    first = draw(table, tmp_path).read_bytes()
    assert draw(table, tmp_path).read_bytes() == first


@pytest.mark.parametrize("target", ["table2", "table5", "figure5", "ablation", "text", "best"])
def test_without_any_record(target: str, plans: dict[str, Plan], tmp_path: Path) -> None:
    path = draw(make_table(plans[target], tmp_path / "none"), tmp_path)
    assert path.stat().st_size > 0
