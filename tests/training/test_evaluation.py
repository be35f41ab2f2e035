"""Scores on whole graphs, by blocks and on a sample: the same where they should be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from lgcn.graph import Graph
from lgcn.training import evaluate, evaluation, metrics, train
from lgcn.training.evaluation import evaluation_graphs

from .graphs import lasting, settings, several_graphs, small_graph


@pytest.mark.parametrize("make", [small_graph, several_graphs])
def test_scores_by_blocks_are_those_of_the_whole(
    make: Callable[[], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = make()
    model = train(graph, settings(max_epochs=2)).model
    parts = evaluation.whole_graphs(graph)
    whole = evaluate(model, parts, ("val", "test"))
    monkeypatch.setattr(evaluation, "BLOCK_NODES", 10)
    monkeypatch.setattr("lgcn.nn.layerwise.MAX_READ_ROWS", 7)
    blocks = evaluate(model, parts, ("val", "test"))
    assert blocks.keys() == whole.keys()
    for split, scores in whole.items():
        assert blocks[split] == pytest.approx(scores, rel=1e-5)


@pytest.mark.parametrize("labels", [1, 2])
def test_a_tally_in_parts_is_that_of_all(labels: int) -> None:
    rng = torch.Generator().manual_seed(labels)
    logits = torch.randn(50, 4, generator=rng)
    y: Tensor = torch.randint(4, (50,), generator=rng)
    if labels == 2:
        y = torch.randint(2, (50, 4), generator=rng)
    tally = metrics.Tally()
    for rows in (slice(0, 20), slice(20, 20), slice(20, 50)):
        tally.add(logits[rows], y[rows])
    expected = {
        "nodes": 50,
        "loss": float(metrics.loss(logits, y)),
        "score": metrics.score(logits, y),
    }
    if labels == 2:
        expected["label_accuracy"] = metrics.label_accuracy(logits, y)
    assert tally.scores() == pytest.approx(expected)


def test_a_sample_scores_each_chosen_node_once() -> None:
    graph = small_graph(400)
    config = settings(evaluate_on="sampled", max_nodes=80)
    parts = evaluation_graphs(graph, config)
    assert all(part.num_nodes <= 80 and part.test_mask is None for part in parts)
    scored = torch.cat([part.n_id[part.val_mask] for part in parts])
    assert len(scored.unique()) == len(scored) == min(60, 20 * 2)
    assert bool(graph.val_mask[scored].all())
    again = evaluation_graphs(graph, config)
    assert all(torch.equal(a.n_id, b.n_id) for a, b in zip(parts, again, strict=True))


def test_a_sample_is_bounded_without_max_nodes() -> None:
    parts = evaluation_graphs(
        small_graph(400), settings(evaluate_on="sampled", max_nodes=None, max_hops=1)
    )
    assert [int(part.val_mask.sum()) for part in parts] == [30, 30]


@pytest.mark.parametrize("make", [small_graph, several_graphs])
def test_sampled_neighbours_score_each_node_once(
    make: Callable[[], Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lgcn.sampling.alternatives.neighbors.N_INIT", 25)
    graph = make()
    config = settings(evaluate_on="neighbors", fanout=(3, 2))
    parts = evaluation_graphs(graph, config)
    for split, other in (("val", "test"), ("test", "val")):
        own = [part for part in parts if part.mask(split) is not None]
        assert all(part.mask(other) is None and not part.train_mask.any() for part in own)
        assert all(int(part.mask(split).sum()) <= 25 for part in own)
        scored = torch.cat([part.n_id[part.mask(split)] for part in own])
        assert torch.equal(scored.sort().values, graph.mask(split).nonzero().squeeze(1))
    assert max(int(part.rowptr.diff().max()) for part in parts) == 3
    again = evaluation_graphs(graph, config)
    assert all(torch.equal(a.n_id, b.n_id) for a, b in zip(parts, again, strict=True))
    full = evaluation_graphs(graph, config.replace(fanout=(90, 80), with_replacement=True))
    assert all(set(part.rowptr.diff().tolist()) <= {90, 80, 0} for part in full)


def test_with_all_neighbours_the_scores_are_those_of_the_whole_graph() -> None:
    graph = several_graphs()
    options: dict[str, Any] = {
        "model": "sage",
        "num_layers": 2,
        "fanout": (100, 100),
        "with_replacement": False,
    }
    model = train(graph, settings(**options, max_epochs=2)).model
    config = settings(**options, evaluate_on="neighbors")
    sampled = evaluate(model, evaluation_graphs(graph, config), ("val", "test"))
    whole = evaluate(model, evaluation.whole_graphs(graph), ("val", "test"))
    for split, scores in whole.items():
        assert sampled[split] == pytest.approx(scores, rel=1e-5)


def test_the_last_scores_are_exact_whatever_the_epochs_were_scored_on() -> None:
    graph = small_graph(400)
    config = settings(evaluate_on="sampled", max_nodes=100, lr=0.02, dropout=0.0, memory="20MB")
    result = train(graph, config)
    scores = evaluate(result.model, [graph], ("val", "test"))
    assert result.record["val_score"] == pytest.approx(scores["val"]["score"])
    assert result.record["test_score"] == pytest.approx(scores["test"]["score"])
    assert result.record["test_score_released_rule"] is None
    assert 0 < result.record["calibration"]["test_after"] < 1


def test_a_sampled_run_repeats() -> None:
    config = settings(evaluate_on="sampled", training="subgraph", max_nodes=60, max_epochs=3)
    first, second = (train(small_graph(), config).record for _ in range(2))
    assert lasting(first) == lasting(second)


def test_the_temperature_takes_so_many_nodes_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph()
    taken: list[int] = []
    monkeypatch.setattr(evaluation, "CALIBRATION_NODES", 25)
    find = evaluation.find_temperature

    def note(logits: Tensor, y: Tensor) -> float:
        taken.append(len(y))
        return find(logits, y)

    monkeypatch.setattr(evaluation, "find_temperature", note)
    train(graph, settings(max_epochs=1))
    assert taken == [20]  # every third of 60


def test_weighted_loss() -> None:
    rng = torch.Generator().manual_seed(0)
    logits, y = torch.randn(6, 3, generator=rng), torch.randint(3, (6,), generator=rng)
    even = torch.full((6,), 1 / 6)
    torch.testing.assert_close(metrics.loss(logits, y, even), metrics.loss(logits, y))
    weight = torch.rand(6, generator=rng)
    own = torch.stack([metrics.loss(logits[i : i + 1], y[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(metrics.loss(logits, y, weight), (weight * own).sum())
    several = torch.randint(2, (6, 3), generator=rng)
    torch.testing.assert_close(metrics.loss(logits, several, even), metrics.loss(logits, several))


def test_features_in_less_memory_train_the_same() -> None:
    graph = small_graph()
    assert graph.x is not None
    x = (graph.x * 20 + 128).clamp(0, 255).to(torch.uint8)
    scale = torch.stack([torch.full((8,), 1 / 20), torch.full((8,), -128 / 20)])
    packed = replace(graph, x=x, feature_scale=scale)
    plain = replace(graph, x=packed.features())
    for training in ("whole", "subgraph"):
        config = settings(training=training, max_nodes=100, max_epochs=2)
        first, second = (lasting(train(g, config).record) for g in (packed, plain))
        assert first == second
