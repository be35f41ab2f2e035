"""The nodes that a report shows one by one."""

import numpy as np

from lgcn.report.node_results import NodeResults
from lgcn.report.sample import LISTED, listed_nodes, sample_nodes


def many(size: int = 20_000, task: str = "classification") -> NodeResults:
    rng = np.random.default_rng(0)
    split = rng.choice([-1, 0, 1, 2], size, p=[0.7, 0.1, 0.1, 0.1]).astype(np.int8)
    known = split >= 0
    wrong = np.where(known, (rng.random(size) < 0.3).astype(float), np.nan)
    confidence = rng.random(size).astype(np.float32)
    zeros = np.zeros(size, dtype=np.int32)
    return NodeResults(task, known, split, zeros, confidence, wrong, None, None, None)


def test_a_small_graph_is_shown_whole() -> None:
    results = many(200)
    found = sample_nodes(results, listed_nodes(results), 200)
    assert found.complete
    assert found.nodes.tolist() == list(range(200))


def test_the_sample_has_the_nodes_of_the_tables_and_half_of_it_is_scored() -> None:
    results = many()
    listed = listed_nodes(results)
    found = sample_nodes(results, listed, 1000)
    assert not found.complete
    assert len(found.nodes) == len(set(found.nodes.tolist())) == 1000
    assert set(listed.uncertain) | set(listed.wrong) <= set(found.nodes.tolist())
    assert found.scored == results.scored[found.nodes].sum() >= 500
    assert (results.split[found.nodes] == -1).sum() > 200
    again = sample_nodes(results, listed, 1000)
    assert np.array_equal(found.nodes, again.nodes)


def test_the_tables_have_the_least_certain_and_the_most_confidently_wrong_nodes() -> None:
    results = many(5000)
    listed = listed_nodes(results)
    outside = np.flatnonzero(results.split != 0)
    expected = sorted(outside, key=lambda node: (results.confidence[node], node))[:LISTED]
    assert listed.uncertain.tolist() == expected
    wrong = np.flatnonzero(results.scored & (results.wrong == 1))
    assert (
        listed.wrong.tolist() == sorted(wrong, key=lambda node: -results.confidence[node])[:LISTED]
    )


def test_equal_confidences_are_listed_by_number() -> None:
    results = many(500)
    results.confidence[:] = 0.5
    listed = listed_nodes(results)
    assert listed.uncertain.tolist() == np.flatnonzero(results.split != 0)[:LISTED].tolist()
