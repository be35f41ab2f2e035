"""When features that the edges give help, by validation scores."""

from typing import Any

import pytest
from benchmarks.own_defaults import SPLITS, summary
from benchmarks.report import TABLES

from benchmarks import structural
from lgcn.datasets import synthetic
from lgcn.training import Settings


def test_every_candidate_is_another_choice() -> None:
    found = [Settings.create(**given) for given in structural.CANDIDATES.values()]
    assert len({(one.structural_features, one.positions) for one in found}) == len(found)


def test_tasks() -> None:
    listed = structural.tasks(
        range(2), ["cora:bare", "cora", "tolokers"], list(SPLITS), ["none", "structural"]
    )
    assert (0, "cora:bare", SPLITS[0], "none") not in listed  # nothing to learn from
    assert (0, "cora", SPLITS[0], "none") in listed
    assert (1, "tolokers", "published", "none") in listed
    assert len(listed) == 2 * (2 + 4 + 2)


@pytest.mark.parametrize(
    ("dataset", "split"), [("toy:bare", SPLITS[1]), ("toy", SPLITS[0]), ("tolokers", "published")]
)
def test_a_run_and_its_table(dataset: str, split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, **options: Any) -> Any:
        assert (name == "tolokers") == ("split" in options)
        return synthetic(num_nodes=120, num_classes=2, labels_per_class=20, num_val=40)

    monkeypatch.setattr(structural, "load_dataset", load)
    run = structural.train_once((2000, dataset, split, "structural and spectral"), 2, "cpu")
    assert 0 <= run["val_score"] <= 1
    record = {"runs": [run], "results": summary([run])}
    lines = TABLES["structural"](record).splitlines()
    assert "structural and spectral" in lines[0]
    assert f"{100 * run['val_score']:.1f}" in lines[2]
    assert ("features dropped" in lines[2]) == dataset.endswith(":bare")
