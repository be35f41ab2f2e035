"""What settings need of the whole graph is that of the graph before it was cut."""

from pathlib import Path

import pytest
import torch

from lgcn import Graph, open_store
from lgcn.graph import statistics as of_graph
from lgcn.graph.statistics import neighbour_agreement
from lgcn.partition import open_partition
from lgcn.partition.statistics import graph_statistics


def test_they_are_those_of_the_whole_graph(path: Path, store_path: Path) -> None:
    graph = open_store(store_path).graph

    found = open_partition(path).statistics

    assert found["class_counts"] == [4, 3, 3]
    assert (found["num_train"], found["num_val"], found["num_test"]) == (10, 10, 0)
    assert (found["num_classes"], found["task"], found["inductive"]) == (
        3,
        "classification",
        False,
    )
    assert found["suggested_k"] == of_graph.suggest_k(graph)
    assert found["feature_length"] == of_graph.feature_length(graph)
    assert found["labels_per_class"] == of_graph.labels_per_class(graph)
    assert found["neighbour_agreement"] is None  # training nodes are no neighbours
    assert found["target"] is None


def _graph(y: torch.Tensor) -> Graph:
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(len(y), (2, 4 * len(y)), generator=generator)
    return Graph.from_edge_index(edges, len(y), y=y, train_mask=torch.arange(len(y)) % 3 > 0)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_agreement_is_the_same_in_blocks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    y = torch.arange(200) // 20
    graph = _graph(y.double() if kind == "numbers" else y)
    whole = neighbour_agreement(graph)
    monkeypatch.setattr(of_graph, "ENTRIES_AT_ONCE", 50)
    assert whole is not None
    assert neighbour_agreement(graph) == pytest.approx(whole)


def test_unknown_labels_do_not_count() -> None:
    known = torch.arange(60) % 5 > 0
    y = torch.where(known, torch.arange(60) % 3, -1)
    found = graph_statistics(_graph(y))
    train = torch.arange(60) % 3 > 0
    assert found["class_counts"] == torch.bincount(y[known & train], minlength=3).tolist()
    assert found["neighbour_agreement"] is not None

    targets = torch.where(known, torch.arange(60.0).double(), torch.nan)
    found = graph_statistics(_graph(targets))
    assert found["class_counts"] is None
    assert found["target"]["mean"] == pytest.approx(float(targets[known & train].mean()))
    assert -1 <= found["neighbour_agreement"]["alike"] <= 1


def test_labels_of_several_a_node_are_counted_each() -> None:
    y = torch.tensor([[1, 0], [1, 1], [0, 1]] * 20)
    found = graph_statistics(_graph(y))
    assert found["class_counts"] == [20, 40]
    assert found["task"] == "multilabel"
