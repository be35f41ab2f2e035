"""DeepWalk: what it learns, that equal seeds agree, and what it asks for."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.errors import UsageError
from lgcn.paper.baselines.deepwalk import training as deepwalk
from lgcn.paper.baselines.deepwalk.training import deepwalk_embeddings, train_deepwalk

needs_gensim = pytest.mark.skipif(find_spec("gensim") is None, reason="gensim is not installed")
QUICK: dict[str, Any] = {"walks_per_node": 10, "length": 10, "window": 3, "dimensions": 8}


@pytest.fixture
def cliques() -> Graph:
    """Two cliques of 15 nodes with one edge between them; 3, 4 and 8 nodes of each in a split."""
    block = torch.ones(15, 15).triu(1)
    edges = torch.block_diag(block, block)
    edges[14, 15] = 1
    place = torch.arange(30) % 15
    return Graph.from_edge_index(
        edges.nonzero().t(),
        30,
        y=torch.arange(30) // 15,
        train_mask=place < 3,
        val_mask=(place >= 3) & (place < 7),
        test_mask=place >= 7,
        name="cliques",
    )


@needs_gensim
def test_two_cliques_are_told_apart(cliques: Graph) -> None:
    record = train_deepwalk(cliques, **QUICK)
    assert record.pop("seconds") > 0
    assert record.pop("inverse_regularisation") in deepwalk.INVERSE_REGULARISATION
    assert record == {
        "metric": "accuracy",
        "seed": 0,
        "val_score": 1.0,
        "test_score": 1.0,
        "test_score_released_rule": 1.0,
        "best_epoch": 10,
        "epochs": 10,
        "parameters": 30 * 8 + 2 * 9,
    }


@needs_gensim
def test_nodes_of_a_clique_are_closer_than_others(cliques: Graph) -> None:
    found = deepwalk_embeddings(cliques, **QUICK)
    assert found.shape == (30, 8)
    assert found.dtype == np.float32
    found = found / np.linalg.norm(found, axis=1, keepdims=True)
    same = cliques.y[:, None].numpy() == cliques.y.numpy()
    assert (found @ found.T)[same].mean() > (found @ found.T)[~same].mean() + 0.2


@needs_gensim
def test_equal_seeds_give_equal_embeddings(cliques: Graph) -> None:
    first, again, other = (deepwalk_embeddings(cliques, **QUICK, seed=seed) for seed in (4, 4, 5))
    assert first.tobytes() == again.tobytes()
    assert first.tobytes() != other.tobytes()


@needs_gensim
def test_nodes_without_neighbours_stay_near_zero(cliques: Graph) -> None:
    graph = Graph.as_given(cliques.edge_index, 32)
    length = np.linalg.norm(deepwalk_embeddings(graph, **QUICK), axis=1)
    assert length[30:].max() < length[:30].min()


@needs_gensim
def test_test_labels_are_for_scoring_only(cliques: Graph) -> None:
    assert cliques.y is not None
    swapped = torch.where(cliques.test_mask, 1 - cliques.y, cliques.y)
    record = train_deepwalk(replace(cliques, y=swapped), **QUICK)
    assert (record["val_score"], record["test_score"]) == (1.0, 0.0)


@needs_gensim
def test_max_epochs_limits_the_walks(cliques: Graph) -> None:
    record = train_deepwalk(cliques, **QUICK, max_epochs=3)
    assert (record["epochs"], record["best_epoch"]) == (3, 3)
    assert train_deepwalk(cliques, **QUICK, max_epochs=300)["epochs"] == 10


@needs_gensim
def test_several_labels_a_node(cliques: Graph) -> None:
    """The clique, the other clique, a label of nobody, one of everybody, and one of test nodes."""
    assert cliques.y is not None
    assert cliques.test_mask is not None
    one, none = torch.ones(30), torch.zeros(30)
    y = torch.stack([none, cliques.y, 1 - cliques.y, one, cliques.test_mask], 1)
    record = train_deepwalk(replace(cliques, y=y), **QUICK)
    assert record["metric"] == "micro_f1"
    assert record["val_score"] == 1.0
    # Of the test nodes each has three labels, of which two are found, and no other.
    assert record["test_score"] == pytest.approx(2 * 2 / (2 + 3))
    assert record["test_label_accuracy"] == pytest.approx(4 / 5)


@needs_gensim
def test_a_graph_without_test_nodes_has_no_test_score(cliques: Graph) -> None:
    record = train_deepwalk(replace(cliques, test_mask=None), **QUICK)
    assert record["val_score"] == 1.0
    assert record["test_score"] is None
    assert record["test_score_released_rule"] is None


def test_without_gensim_it_says_what_to_install(
    cliques: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(UsageError, match=r'pip install "lgcn\[deepwalk\]"'):
        train_deepwalk(cliques)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": None}, r"cliques has no labels \(y\)"),
        ({"train_mask": None}, "cliques has no train nodes"),
        ({"val_mask": torch.zeros(30, dtype=torch.bool)}, "cliques has no val nodes"),
        ({"y": torch.full((30,), -1)}, "train_mask of cliques has nodes without a label"),
    ],
)
def test_what_a_graph_lacks_is_named(cliques: Graph, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        train_deepwalk(replace(cliques, **changes))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"dimensions": 0}, "dimensions must be at least 1, got 0"),
        ({"workers": 0}, "workers must be at least 1, got 0"),
        ({"length": 10_001}, r"length must .*10000, got 10001"),
        ({"max_epochs": 0}, "max_epochs must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(cliques: Graph, options: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_deepwalk(cliques, **options)
