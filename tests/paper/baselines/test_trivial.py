"""Predictions without a model against loops over the nodes."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph, load_dataset
from lgcn.errors import UsageError
from lgcn.paper.baselines.trivial.predictions import look_up_genes, predict_nothing

# Gene, split and labels of each node.
NODES = [
    (7, "train", [1, 0, 1]),
    (7, "train", [1, 0, 0]),
    (7, "train", [1, 1, 1]),
    (8, "train", [1, 0, 1]),
    (8, "train", [0, 1, 1]),  # 8 differs in the first two labels: neither is predicted
    (7, "val", [1, 1, 0]),  # predicted [1, 0, 1]
    (7, "test", [1, 0, 1]),  # predicted [1, 0, 1]
    (8, "test", [1, 0, 1]),  # predicted [0, 0, 1]
    (9, "test", [1, 0, 0]),  # unknown in training: nothing
]
KEYS = {
    "metric",
    "seed",
    "val_score",
    "test_score",
    "test_score_released_rule",
    "best_epoch",
    "epochs",
    "seconds",
    "parameters",
    "test_label_accuracy",
}


@pytest.fixture
def genes() -> Graph:
    masks = {
        f"{name}_mask": torch.tensor([split == name for _, split, _ in NODES])
        for name in ("train", "val", "test")
    }
    return Graph.as_given(
        torch.empty(2, 0, dtype=torch.long),
        len(NODES),
        y=torch.tensor([labels for _, _, labels in NODES]).float(),
        node_ids=np.array([gene for gene, _, _ in NODES]),
        **masks,
    )


def without_time(record: dict[str, Any]) -> dict[str, Any]:
    assert record.pop("seconds") >= 0
    return record


def test_nothing_is_right_where_labels_are_zero(genes: Graph) -> None:
    record = predict_nothing(genes, seed=3)
    assert record.keys() == KEYS
    assert without_time(record) == {
        "metric": "micro_f1",
        "seed": 3,
        "val_score": 0.0,
        "test_score": 0.0,
        "test_score_released_rule": 0.0,
        "best_epoch": 0,
        "epochs": 0,
        "parameters": 0,
        "test_label_accuracy": pytest.approx(4 / 9),
    }


def test_labels_of_most_training_nodes_of_the_gene(genes: Graph) -> None:
    record = look_up_genes(genes, seed=1, max_epochs=5)
    assert record.keys() == KEYS
    # Validation: 1 hit, 2 predicted, 2 true. Test: 3 hits, 3 predicted, 5 true.
    assert record["val_score"] == pytest.approx(2 * 1 / 4)
    assert record["test_score"] == pytest.approx(2 * 3 / 8)
    assert record["test_score_released_rule"] == record["test_score"]
    assert record["test_label_accuracy"] == pytest.approx(7 / 9)
    assert (record["seed"], record["parameters"], record["best_epoch"]) == (1, 0, 0)


def test_names_of_genes_may_be_texts(genes: Graph) -> None:
    named = replace(genes, node_ids=np.array([f"gene {gene}" for gene, _, _ in NODES]))
    assert without_time(look_up_genes(named)) == without_time(look_up_genes(genes))


def test_equals_a_slow_look_up() -> None:
    rng = np.random.default_rng(0)
    gene, y = rng.integers(0, 40, 300), rng.random((300, 6)) < 0.4
    split = rng.integers(0, 3, 300)
    train, val, test = (torch.from_numpy(split == number) for number in range(3))
    graph = Graph.as_given(
        torch.empty(2, 0, dtype=torch.long),
        300,
        y=torch.from_numpy(y).float(),
        node_ids=gene,
        train_mask=train,
        val_mask=val,
        test_mask=test,
    )
    hits = marked = right = 0
    for i in np.flatnonzero(split == 2):
        same = [j for j in range(300) if split[j] == 0 and gene[j] == gene[i]]
        for label in range(6):
            predicted = 2 * sum(y[j, label] for j in same) > len(same)
            hits += predicted and y[i, label]
            marked += int(predicted) + int(y[i, label])
            right += predicted == y[i, label]
    record = look_up_genes(graph)
    assert record["test_score"] == pytest.approx(2 * hits / marked)
    assert record["test_label_accuracy"] == pytest.approx(right / (split == 2).sum() / 6)


def test_without_test_nodes_there_is_no_test_score(genes: Graph) -> None:
    for mask in (None, torch.zeros(len(NODES), dtype=torch.bool)):
        record = look_up_genes(replace(genes, test_mask=mask))
        assert record["test_score"] is record["test_score_released_rule"] is None
        assert record["test_label_accuracy"] is None
        assert record["val_score"] == pytest.approx(0.5)


@pytest.mark.parametrize("function", [predict_nothing, look_up_genes])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.zeros(len(NODES), dtype=torch.long), "it has one class per node"),
        (None, "it has none"),
    ],
)
def test_classes_are_refused(genes: Graph, function: Any, y: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"must have several labels per node.*{message}"):
        function(replace(genes, y=y))


def test_a_graph_without_genes_is_refused(genes: Graph) -> None:
    with pytest.raises(UsageError, match="genes cannot be looked up: the files of ppi hold no"):
        look_up_genes(replace(genes, node_ids=None))
    with pytest.raises(UsageError, match="has no training nodes"):
        look_up_genes(replace(genes, train_mask=None))


def test_on_real_graphs(data_root: Any) -> None:
    if not (data_root / "ppi" / "ppi_rederived.npz").exists():
        pytest.skip("ppi_rederived.npz is not there")
    graph = load_dataset("ppi-rederived", data_root)
    assert predict_nothing(graph)["test_label_accuracy"] == pytest.approx(0.698, abs=0.001)
    assert look_up_genes(graph)["test_score"] > 0.99  # 5490 of the 5524 have known genes
