"""The comparison of `best` with tuned baselines."""

import argparse
from typing import Any

import pytest
import torch
from benchmarks.own_best_networks import Tuned
from benchmarks.own_best_table import SYSTEMS, common_scores

from benchmarks import own_best
from lgcn.training import Settings
from tests.training.graphs import small_graph


def test_every_setting_of_a_grid_is_valid_and_another_one() -> None:
    for kind, grid in own_best.GRIDS.items():
        found = [Settings.create(dataset="tables", **settings) for settings in grid]
        assert 6 <= len(found) <= 8
        for place, one in enumerate(found):
            assert one not in found[:place]
            assert one.model.name in (kind, "tuned")


@pytest.mark.parametrize("kind", own_best.GRIDS)
def test_the_networks_see_the_edges_or_do_not(kind: Any) -> None:
    graph = small_graph(50)
    assert graph.x is not None
    options = {"residual": True, "norm": "batch", "heads": 2, "dropout": 0.0}
    model = Tuned(
        8,
        3,
        hidden_channels=8,
        num_layers=2,
        kind=kind,
        input_dropout=0.0,
        input_scale=1.0,
        **options,
    ).eval()
    changed = graph.x.clone()
    changed[graph.col[0].long()] += 1
    same = torch.equal(model(changed, graph)[0], model(graph.x, graph)[0])
    assert same == (kind == "mlp")


def test_tasks_come_split_by_split_and_published_ones_apart() -> None:
    arguments = argparse.Namespace(
        first_split=0,
        splits=2,
        datasets=["cora", "minesweeper"],
        tasks=list(own_best.TASKS),
        systems=["default", "best"],
    )
    tasks = list(own_best.all_tasks(arguments))
    assert [task[0] for task in tasks] == [0] * 6 + [1] * 6
    assert {task[2] for task in tasks if task[1] == "minesweeper"} == {"published"}


def test_the_table_counts_splits_that_all_systems_have() -> None:
    records = [
        {"number": number, "system": system, "test_score": 0.5 + 0.1 * number}
        for number in range(3)
        for system in SYSTEMS
        if (number, system) != (1, "gat")
    ]
    scores = common_scores(records)
    assert set(scores) == set(SYSTEMS)
    assert all(values == pytest.approx([50, 70]) for values in scores.values())
    assert common_scores([one for one in records if one["system"] != "mlp"]) == {}
