"""The benchmark of explanations: its metrics by hand, its graphs, its table."""

import argparse
import math
from pathlib import Path

import pytest
import torch
from benchmarks.explain_graphs import Task, make_task
from benchmarks.explain_methods import (
    METHODS,
    Field,
    TrainedPGExplainer,
    cut_field,
    integrated_gradients,
    masked_score,
    noisy,
    page_rank,
)
from benchmarks.explain_table import ORDER, common, overview
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from benchmarks import explain, explain_table
from lgcn import LGCN, Graph


@pytest.fixture
def network() -> LGCN:
    torch.manual_seed(0)
    return LGCN(3, 2, hidden_channels=4, lgcl_channels=4, num_layers=1, k=2).eval()


@pytest.fixture
def field(network: LGCN) -> Field:
    edges = torch.tensor([[0, 1, 2, 3, 4, 5, 1], [1, 2, 3, 4, 5, 0, 4]])
    graph = Graph.from_edge_index(edges, 6, x=torch.randn(6, 3), y=torch.arange(6) % 2)
    return cut_field(network, graph, 2)


def test_the_metrics_of_an_explanation_are_those_of_the_edges_that_are_left(
    network: LGCN, field: Field
) -> None:
    importance = torch.arange(12.0)  # those into the outermost node are left out
    found = explain.at_sparsity(field, importance, 4, seed=0)
    full = network(field.x, field.part.graph)[0].softmax(0)

    def chances(mask: torch.Tensor) -> torch.Tensor:
        set_masks(network, mask, field.edge_index, apply_sigmoid=False)
        scores = network(field.x, field.part.graph)[0]
        clear_masks(network)
        return scores.softmax(0)

    mask = (importance >= 8).float()
    kept, left = chances(mask), chances(1 - mask)
    assert found["fidelity_minus"] == float(kept.argmax() != full.argmax())
    assert found["fidelity_plus"] == float(left.argmax() != full.argmax())
    divergence = sum(q * math.log(q / p) for p, q in zip(full.tolist(), kept.tolist(), strict=True))
    assert found["unfaithfulness"] == pytest.approx(1 - math.exp(-divergence), abs=1e-5)
    chosen = int(full.argmax())
    assert found["drop_with_only"] == pytest.approx(float(full[chosen] - kept[chosen]), abs=1e-6)
    assert found["drop_without"] == pytest.approx(float(full[chosen] - left[chosen]), abs=1e-6)


def test_areas_and_overlaps_by_hand() -> None:
    importance = torch.tensor([0.9, 0.5, 0.5, 0.1])
    reasons = torch.tensor([True, True, False, False])
    assert explain.roc_auc(importance, reasons) == (1 + 1 + 0.5 + 1) / 4
    assert explain.roc_auc(importance, torch.ones(4, dtype=torch.bool)) is None
    one, other = torch.arange(20.0), torch.arange(20.0)
    other[[10, 0]] = other[[0, 10]]  # the tenth from the top changes places with the last
    assert explain.overlap(one, other, seed=0) == 0.9
    assert explain.top_edges(torch.tensor([1.0, 3.0, 2.0]), 2, seed=0).tolist() == [1, 2]
    orders = {tuple(explain.top_edges(torch.zeros(5), 5, seed).tolist()) for seed in range(5)}
    assert len(orders) > 1  # ties give nobody an advantage


def test_integrated_gradients_add_up_and_page_rank_is_a_flow(field: Field) -> None:
    ends = [float(masked_score(field, torch.full((12,), value))) for value in (1.0, 0.0)]
    total = torch.zeros(12)
    for step in range(200):
        mask = torch.full((12,), (step + 0.5) / 200, requires_grad=True)
        total += torch.autograd.grad(masked_score(field, mask), mask)[0] / 200
    torch.testing.assert_close(integrated_gradients(field, 0), total.abs(), rtol=0.1, atol=0.02)
    assert float(total.sum()) == pytest.approx(ends[0] - ends[1], rel=0.05)
    flow, target = page_rank(field, 0), field.edge_index[1]
    assert 0.5 < float(flow.sum()) <= 1  # the walk is somewhere; outermost nodes end it
    assert flow[target == 0].sum() > flow[target == 1].sum()


def test_every_method_gives_one_importance_per_edge(field: Field) -> None:
    assert tuple(METHODS) == ORDER
    for name, method in METHODS.items():
        found = TrainedPGExplainer([field], 0) if method is None else method
        importance = found(field, 0)
        assert importance.shape == (12,), name
        assert importance.isfinite().all(), name
        assert importance.max() > importance.min(), name
    changed = noisy(field, 0)
    assert not torch.equal(changed.x, field.x)
    torch.testing.assert_close(changed.x, field.x, rtol=0.06, atol=0)


@pytest.mark.parametrize(
    ("name", "classes", "size", "inside"),
    [
        ("BA-Shapes", 4, 5, 12),
        ("BA-Community", 8, 5, 12),
        ("Tree-Cycles", 2, 6, 12),
        ("Tree-Grid", 2, 9, 24),
    ],
)
def test_motifs_have_their_sizes_and_edges(name: str, classes: int, size: int, inside: int) -> None:
    task = make_task(name, 0)
    assert task.motif is not None
    assert task.graph.num_classes == classes
    assert torch.equal(torch.bincount(task.motif[task.nodes]).unique(), torch.tensor([size]))
    order = torch.cat([task.nodes[-1:], torch.arange(task.graph.num_nodes)])
    reasons = task.reasons(order, task.graph.edge_index + 1)
    assert reasons is not None
    assert int(reasons.sum()) == inside


def test_a_run_goes_on_and_its_table_compares_the_same_networks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: LGCN
) -> None:
    torch.manual_seed(0)
    edges = torch.randint(30, (2, 60))
    graph = Graph.from_edge_index(edges, 30, x=torch.randn(30, 3), y=torch.arange(30) % 2)
    task = Task(graph, torch.arange(30) // 5, torch.arange(30))
    monkeypatch.setattr(explain, "make_task", lambda name, seed: task)
    monkeypatch.setattr(explain, "trained", lambda task, name, seed: (network, 0.5))
    arguments = argparse.Namespace(
        **{"out": tmp_path / "explain.jsonl", "datasets": ["BA-Shapes"], "minutes": None},
        **{"methods": ["ours", "saliency"], "seeds": 2, "nodes": 2, "processes": 1},
    )
    explain.run(arguments)
    written = arguments.out.read_text()
    explain.run(arguments)
    assert arguments.out.read_text() == written
    assert len(written.splitlines()) == 4
    monkeypatch.setattr(explain_table, "results_file", lambda name: arguments.out)
    text = explain_table.explanations()
    assert "**BA-Shapes**: 2 networks, test accuracy 50 %, 4 nodes" in text
    assert "| ours |" in text
    records = [
        {"method": method, "seed": seed}
        for method, seed in (("ours", 0), ("ours", 1), ("random", 1))
    ]
    assert [len(found) for found in common(records).values()] == [1, 1]


def test_no_network_starts_too_late() -> None:
    assert explain.measured_list(explain.Job("BA-Shapes", 0, ("ours",), 2, until=0)) == []


def test_the_overview_counts_where_ours_is_better() -> None:
    def record(plus: float, minus: float, unfaithful: float, time: float) -> list[dict[str, float]]:
        fidelity = {"fidelity_plus": plus, "fidelity_minus": minus, "unfaithfulness": unfaithful}
        return [{**fidelity, "again": 1, "perturbed": 1, "milliseconds": time}]

    graphs = [
        {"ours": record(0.5, 0.5, 0.1, 2), "GNNExplainer": record(0.4, 0.5, 0.3, 300)},
        {"ours": record(0.7, 0.1, 0.5, 4), "GNNExplainer": record(0.6, 0.2, 0.4, 400)},
    ]
    lines = overview(graphs).splitlines()
    assert lines[2].startswith("| ours | 0.60 | 0.30 | 0.30 |")
    assert lines[2].endswith("| 100.0 to 150.0 |")
    assert "| 4 / 1 / 6 |" in lines[3]
