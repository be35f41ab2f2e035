"""Pictures: all are drawn, the same numbers give the same file, and nothing breaks on gaps."""

from pathlib import Path

import pytest

from lgcn.paper.plans import TARGETS, Plan, make_plans
from lgcn.paper.tables import make_table

from .fakes import fill

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
from lgcn.paper.charts import draw


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    found = make_plans("all", datasets=["cora", "wordnet31", "ppi-rederived"], seeds=2)
    return {plan.target: plan for plan in found}


@pytest.fixture(scope="module")
def folder(plans: dict[str, Plan], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("records")
    fill(list(plans.values()), path)
    return path


@pytest.mark.parametrize("target", list(TARGETS))
def test_pictures(target: str, plans: dict[str, Plan], folder: Path, tmp_path: Path) -> None:
    table = make_table(plans[target], folder)
    png, svg = draw(table, tmp_path)
    assert (png.name, svg.name) == (f"{target}.png", f"{target}.svg")
    assert png.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in svg.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [png.name, svg.name]


def test_the_same_numbers_give_the_same_file(
    plans: dict[str, Plan], folder: Path, tmp_path: Path
) -> None:
    table = make_table(plans["table4"], folder)
    first = [path.read_bytes() for path in draw(table, tmp_path)]
    assert [path.read_bytes() for path in draw(table, tmp_path)] == first


@pytest.mark.parametrize("target", ["table2", "table5", "figure5", "ablation", "text", "best"])
def test_without_any_record(target: str, plans: dict[str, Plan], tmp_path: Path) -> None:
    for path in draw(make_table(plans[target], tmp_path / "none"), tmp_path):
        assert path.stat().st_size > 0
