"""Scores of groups of nodes, against loops over single nodes."""

import numpy as np
import pytest
from scipy.stats import binomtest

from lgcn.report.bins import (
    agreement_bins,
    degree_bins,
    group_score,
    residual_bins,
    wilson,
)
from lgcn.report.node_results import NodeResults


def results(task: str, wrong: np.ndarray, split: np.ndarray | None = None) -> NodeResults:
    size = len(wrong)
    ones = np.ones(size, dtype=np.int32)
    return NodeResults(
        task,
        np.ones(size, dtype=bool),
        np.full(size, 2, dtype=np.int8) if split is None else split,
        ones * 2,
        np.full(size, 0.5, dtype=np.float32),
        wrong.astype(float),
        ones if task == "multilabel" else None,
        ones * 2 if task == "multilabel" else None,
        None,
    )


@pytest.mark.parametrize(("hits", "count"), [(0, 1), (3, 10), (10, 10), (55, 120)])
def test_ranges_of_shares_are_wilsons(hits: int, count: int) -> None:
    expected = binomtest(hits, count).proportion_ci(method="wilson")
    assert wilson(hits / count, count) == pytest.approx((expected.low, expected.high), abs=1e-4)


def test_every_scored_node_is_in_the_bin_of_its_degree() -> None:
    rng = np.random.default_rng(0)
    degree = rng.integers(0, 70, 500)
    wrong = rng.random(500) < 0.4
    split = rng.integers(0, 3, 500).astype(np.int8)
    found = degree_bins(results("classification", wrong, split), degree)
    inside = split == 2
    assert sum(row["nodes"] for row in found) == inside.sum()
    for row in found:
        low, _, high = row["bin"].partition(" to ")
        members = inside & (degree >= int(low)) & (degree <= int(high or low))
        assert row["nodes"] == members.sum()
        assert row["score"] == pytest.approx(1 - wrong[members].mean())
        assert row["low"] <= row["score"] <= row["high"]


def test_nodes_without_labelled_neighbours_have_a_bin_of_their_own() -> None:
    agreement = np.array([0.0, 0.1, 0.2, 0.5, 1.0, 1.0, np.nan])
    wrong = np.array([1, 1, 0, 0, 0, 1, 1])
    found = agreement_bins(results("classification", wrong), agreement)
    assert [(row["bin"], row["nodes"], row["score"]) for row in found] == [
        ("0 to 20 %", 2, 0.0),
        ("20 to 40 %", 1, 1.0),
        ("40 to 60 %", 1, 1.0),
        ("80 to 100 %", 2, 0.5),
        ("unknown", 1, 0.0),
    ]


def test_a_regression_has_mean_absolute_errors_and_groups_of_equal_size() -> None:
    wrong = np.linspace(-2, 2, 100)
    found = agreement_bins(results("regression", wrong), np.arange(100.0))
    assert [row["nodes"] for row in found] == [20] * 5
    assert found[0]["score"] == pytest.approx(np.abs(wrong[:20]).mean())
    assert sum(row["nodes"] for row in residual_bins(results("regression", wrong))) == 100


def test_several_labels_are_scored_by_micro_f1() -> None:
    found = group_score(results("multilabel", np.ones(5)), np.arange(5))
    assert found["score"] == pytest.approx(2 * 5 / (10 + 10))  # 1 hit of 2 predicted and 2 true


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_without_labelled_nodes_there_are_no_groups(task: str) -> None:
    none = results(task, np.zeros(4), np.full(4, -1, dtype=np.int8))
    assert degree_bins(none, np.arange(4)) == []
    assert agreement_bins(none, np.zeros(4)) == []
    assert residual_bins(none) == []


def test_numbers_are_plain() -> None:
    from lgcn.report.names import plain_number

    values = {1432.1: "1,430", 646.4: "646", 0.01234: "0.0123", -25_000: "-25,000", 0: "0"}
    assert {value: plain_number(value, 3) for value in values} == values
    assert plain_number(3.14159, sign=True) == "+3.142"
    assert plain_number(1e-9) == "1e-09"
