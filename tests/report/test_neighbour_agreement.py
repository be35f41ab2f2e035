"""The agreement of neighbours, against loops over edges."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.report import neighbour_agreement as module
from lgcn.report.neighbour_agreement import neighbour_agreement


def naive(graph: Graph, node: int) -> float:
    assert graph.y is not None
    unlabelled = graph.unlabelled()
    near = graph.col[graph.rowptr[node] : graph.rowptr[node + 1]].tolist()
    near = [other for other in near if other != node and not unlabelled[other]]
    if unlabelled[node] or not near:
        return float("nan")
    if graph.task == "regression":
        return abs(float(graph.y[node]) - np.mean([float(graph.y[other]) for other in near]))
    if graph.task == "classification":
        return float(np.mean([graph.y[other] == graph.y[node] for other in near]))
    sets = [set(graph.y[one].nonzero().reshape(-1).tolist()) for one in [node, *near]]
    return float(
        np.mean([len(sets[0] & s) / len(sets[0] | s) if sets[0] | s else 1 for s in sets[1:]])
    )


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_agreement_is_that_of_each_nodes_neighbours(
    task: str, random_graph: Callable[..., Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 2000)  # several blocks
    graph = random_graph(40, 0.1, self_loops=True)
    rng = torch.Generator().manual_seed(1)
    hidden = torch.rand(40, generator=rng) < 0.2
    if task == "classification":
        assert graph.y is not None
        graph = replace(graph, y=torch.where(hidden, -1, graph.y))
    elif task == "multilabel":
        y = (torch.rand(40, 3, generator=rng) < 0.4).float()
        graph = replace(graph, y=y, test_mask=~hidden)
    else:
        y = torch.rand(40, generator=rng)
        graph = replace(graph, y=torch.where(hidden, float("nan"), y))
    assert graph.task == task
    nodes = np.arange(40) % 4 != 0
    found = neighbour_agreement(graph, nodes)
    expected = [naive(graph, node) if nodes[node] else float("nan") for node in range(40)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.isfinite(found).sum() > 10
