"""Planetoid-T: its contexts, its losses, and that it learns without the labels of test nodes."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph
from lgcn.errors import TrainingDiverged, UsageError
from lgcn.paper.baselines.planetoid import training as planetoid
from lgcn.paper.baselines.planetoid.contexts import Contexts, ContextSampler
from lgcn.paper.baselines.planetoid.training import PlanetoidT, train_planetoid

RandomGraph = Callable[..., Graph]
QUICK: dict[str, Any] = {"max_epochs": 20, "contexts_per_node": 300, "embedding_channels": 8}
COUNT = 20_000


@pytest.fixture
def communities() -> Graph:
    """Two groups of 40 nodes that have most edges inside, and features of little use."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(80) // 40
    chance = torch.where(y[:, None] == y, 0.2, 0.005)
    edges = (torch.rand(80, 80, generator=generator) < chance).triu(1)
    place = torch.arange(80) % 40
    return Graph.from_edge_index(
        edges.nonzero().t(),
        80,
        x=torch.randn(80, 6, generator=generator) + 0.3 * y[:, None],
        y=y,
        train_mask=place < 5,
        val_mask=(place >= 5) & (place < 15),
        test_mask=place >= 15,
        name="communities",
    )


def distances(graph: Graph) -> torch.Tensor:
    """Steps from each node to each other along the rows of the adjacency."""
    n = graph.num_nodes
    found = torch.full((n, n), n)
    found.fill_diagonal_(0)
    for i in range(n):
        found[i, graph.col[graph.rowptr[i] : graph.rowptr[i + 1]]] = 1
    for middle in range(n):
        found = torch.minimum(found, found[:, middle, None] + found[middle])
    return found


@pytest.mark.parametrize("window", [1, 3])
def test_graph_contexts_lie_within_the_window_of_a_walk(
    random_graph: RandomGraph, window: int
) -> None:
    graph = random_graph(60, 0.02, undirected=True, train_mask=torch.arange(60) < 6)
    sampler = ContextSampler(graph, graph_share=1, positive_share=1, window=window)
    node, context, sign = sampler.sample(10 * COUNT)
    assert (sign == 1).all()
    apart = distances(graph)
    assert set(apart[node, context].tolist()) <= set(range(window + 1))
    assert (apart[node, context] == window).any()
    alone = graph.rowptr.diff() == 0
    assert alone.any()
    assert not alone[node].any()
    near = (apart <= window) & ~torch.eye(60, dtype=torch.bool)
    met = torch.zeros(60, 60, dtype=torch.bool)
    met[node, context] = True
    assert met[near].float().mean() > 0.95


def test_walks_end_where_a_node_has_no_neighbours() -> None:
    graph = Graph.as_given(
        torch.tensor([[1, 2], [0, 1]]),  # 0 takes from 1, and 1 from 2
        3,
        y=torch.tensor([0, 1, 0]),
        train_mask=torch.tensor([True, True, False]),
    )
    sampler = ContextSampler(graph, graph_share=1, positive_share=1, window=2, walk_length=5)
    node, context, _ = sampler.sample(4000)
    pairs, counts = torch.stack([node, context]).unique(dim=1, return_counts=True)
    assert pairs.t().tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    # From 0 the walk 0, 1, 2 with six pairs, from 1 the walk 1, 2 with two.
    expected = 2000 * np.array([1 / 6, 1 / 6, 1 / 6, 1 / 6 + 1 / 2, 1 / 6, 1 / 6 + 1 / 2])
    assert np.abs(counts.numpy() - expected).max() < 5 * 1333**0.5


def test_pairs_of_a_walk_are_all_as_likely() -> None:
    graph = Graph.as_given(
        torch.tensor([[1, 2, 3, 4], [0, 1, 2, 3]]),
        5,
        y=torch.zeros(5, dtype=torch.long),
        train_mask=torch.ones(5, dtype=torch.bool),
    )
    # Walks from 0 have 14 pairs at most two steps apart, those from 1 have 10.
    sampler = ContextSampler(graph, graph_share=1, positive_share=1, window=2, walk_length=4)
    node, context, _ = sampler.sample(COUNT)
    counts = torch.zeros(5, 5)
    counts.index_put_((node, context), torch.ones(COUNT), accumulate=True)
    expected = torch.zeros(5, 5)
    for start in range(4):
        pairs = [
            (i, c) for i in range(start, 5) for c in range(start, 5) if i != c and abs(i - c) <= 2
        ]
        for i, c in pairs:
            expected[i, c] += COUNT / 4 / len(pairs)
    assert ((counts == 0) == (expected == 0)).all()
    met = expected > 0
    # 14 kinds of pairs, 13 degrees of freedom: beyond 42 once in 10,000 times
    assert ((counts - expected)[met] ** 2 / expected[met]).sum() < 42


def test_label_contexts_agree_or_not_as_the_sign_says(random_graph: RandomGraph) -> None:
    graph = random_graph(30, 0.1, train_mask=torch.arange(30) < 12)
    node, context, sign = ContextSampler(graph, graph_share=0, positive_share=0.5).sample(COUNT)
    assert graph.y is not None
    assert node.max() < 12
    assert context.max() < 12
    assert torch.equal(graph.y[node] == graph.y[context], sign == 1)
    assert (node != context).all()
    met = torch.zeros(12, 12)
    met.index_put_((node, context), torch.ones(COUNT), accumulate=True)
    same = graph.y[:12, None] == graph.y[:12]
    for part, pairs in ((same & ~torch.eye(12, dtype=torch.bool), 36), (~same, 96)):
        counts = met[part]
        assert len(counts) == pairs
        assert (counts - COUNT / 2 / pairs).abs().max() < 5 * (COUNT / 2 / pairs) ** 0.5


def test_the_only_node_of_a_class_is_its_own_context(random_graph: RandomGraph) -> None:
    graph = random_graph(30, 0.1, train_mask=torch.arange(30) < 4)  # classes 0, 1, 2, 0
    node, context, _ = ContextSampler(graph, graph_share=0, positive_share=1).sample(1000)
    pairs = torch.stack([node, context], 1).unique(dim=0)
    assert pairs.tolist() == [[0, 3], [1, 1], [2, 2], [3, 0]]


def test_shares_are_those_asked_for(communities: Graph) -> None:
    # Two nodes have a label that is read, so all pairs with another are from the graph.
    graph = replace(communities, train_mask=torch.arange(80) % 40 < 1)
    node, context, sign = ContextSampler(graph, positive_share=0.8, graph_share=0.3).sample(COUNT)
    deviation = COUNT**-0.5  # at most twice that of a share
    assert float((sign == 1).double().mean()) == pytest.approx(0.8, abs=2 * deviation)
    assert set(sign.tolist()) == {-1.0, 1.0}
    labels = torch.tensor([0, 40])
    from_graph = ~(torch.isin(node, labels) & torch.isin(context, labels))
    # Few pairs of the graph are of these two nodes alone.
    assert 0.27 < float(from_graph.double().mean()) < 0.3 + 2 * deviation
    assert float((sign[from_graph] == 1).double().mean()) == pytest.approx(0.8, abs=0.03)
    negative = context[from_graph & (sign == -1)]
    assert negative.unique().numel() == 80


def test_equal_seeds_give_equal_contexts(communities: Graph) -> None:
    def lot(seed: int, number: int) -> Contexts:
        return ContextSampler(communities, seed=seed).sample(50, number)

    for first, second in zip(lot(1, 2), lot(1, 2), strict=True):
        assert torch.equal(first, second)
    assert not torch.equal(lot(1, 2).node, lot(1, 3).node)
    assert not torch.equal(lot(1, 2).node, lot(2, 2).node)


def test_labels_outside_the_training_nodes_are_not_read(communities: Graph) -> None:
    assert communities.y is not None
    assert communities.train_mask is not None
    hidden = torch.where(communities.train_mask, communities.y, -1)
    for first, second in zip(
        ContextSampler(communities).sample(1000),
        ContextSampler(replace(communities, y=hidden)).sample(1000),
        strict=True,
    ):
        assert torch.equal(first, second)


def test_the_context_loss_and_its_gradient() -> None:
    torch.manual_seed(0)
    model = PlanetoidT(3, 6, 2, embedding_channels=4).double()
    with torch.no_grad():
        model.embedding.normal_()
        model.context.normal_()
    contexts = Contexts(
        torch.tensor([0, 1, 0, 5]), torch.tensor([1, 1, 2, 0]), torch.tensor([1.0, -1.0, -1.0, 1.0])
    )
    loss = model.context_loss(contexts)
    loss.backward()
    e, w = model.embedding.detach().numpy(), model.context.detach().numpy()
    expected, e_grad, w_grad = 0.0, np.zeros((6, 4)), np.zeros((6, 4))
    for i, c, sign in zip(*(part.tolist() for part in contexts), strict=True):
        margin = sign * sum(e[i, k] * w[c, k] for k in range(4))
        expected += np.log(1 + np.exp(-margin))
        e_grad[i] -= sign / (1 + np.exp(margin)) * w[c]
        w_grad[c] -= sign / (1 + np.exp(margin)) * e[i]
    assert float(loss.detach()) == pytest.approx(expected)
    for parameter, grad in ((model.embedding, e_grad), (model.context, w_grad)):
        assert parameter.grad is not None
        np.testing.assert_allclose(parameter.grad.to_dense().numpy(), grad, rtol=1e-10)


@pytest.mark.parametrize("layout", [torch.strided, torch.sparse_csr])
def test_the_network_is_that_of_the_formula(layout: torch.layout) -> None:
    torch.manual_seed(0)
    model = PlanetoidT(3, 6, 2, embedding_channels=4)
    nodes, y = torch.tensor([4, 1, 2]), torch.tensor([0, 1, 1])
    x = torch.randn(3, 3).relu()
    e = model.embedding.detach()[nodes]
    by_x, by_e = model.from_features.linear, model.from_embedding
    a, b = x @ by_x.weight.t() + by_x.bias, e @ by_e.weight.t() + by_e.bias
    both = torch.cat([a.exp() / a.exp().sum(1, True), b.exp() / b.exp().sum(1, True)], 1)
    out = both @ model.classifier.weight.t() + model.classifier.bias
    given = x if layout == torch.strided else x.to_sparse_csr()
    torch.testing.assert_close(model(given, nodes), out)
    loss = sum(
        -torch.log(scores.exp()[i, y[i]] / scores.exp()[i].sum()) / 3
        for scores in (a, b, out)
        for i in range(3)
    )
    torch.testing.assert_close(model.loss(given, nodes, y), loss)
    assert repr(model) == "PlanetoidT(6 nodes, embedding_channels=4)"


def test_two_communities_are_told_apart(communities: Graph) -> None:
    record = train_planetoid(communities, **QUICK)
    assert record.pop("seconds") > 0
    assert record.pop("val_score") >= 0.9
    assert record.pop("test_score") >= 0.9
    assert record.pop("test_score_released_rule") >= 0.9
    assert 1 <= record.pop("best_epoch") <= record["epochs"]
    assert record == {
        "metric": "accuracy",
        "seed": 0,
        "epochs": 20,
        "steps": 200,
        "parameters": 2 * 80 * 8 + (6 + 1) * 2 + (8 + 1) * 2 + (4 + 1) * 2,
    }


def test_embeddings_are_what_tells_them_apart(communities: Graph) -> None:
    alone = train_planetoid(communities, **QUICK, context_lr=1e-9)
    assert alone["test_score"] < 0.85


def test_sparse_features_train_like_dense_ones(communities: Graph) -> None:
    assert communities.x is not None
    dense = replace(communities, x=communities.x.relu())
    assert dense.x is not None
    sparse = replace(communities, x=dense.x.to_sparse_csr())
    records = [train_planetoid(graph, **QUICK) for graph in (dense, sparse)]
    assert records[0]["val_score"] == pytest.approx(records[1]["val_score"], abs=0.05)
    assert records[0]["test_score"] == pytest.approx(records[1]["test_score"], abs=0.05)


def test_labels_of_test_nodes_change_test_scores_alone(communities: Graph) -> None:
    assert communities.y is not None
    assert communities.test_mask is not None
    y = torch.where(communities.test_mask, 1 - communities.y, communities.y)
    given, other = (
        train_planetoid(graph, **QUICK) for graph in (communities, replace(communities, y=y))
    )
    assert other["test_score"] == pytest.approx(1 - given["test_score"])
    for key in ("val_score", "best_epoch", "epochs"):
        assert given[key] == other[key]


def test_equal_seeds_agree_and_leave_the_global_ones_alone(communities: Graph) -> None:
    torch.manual_seed(5)
    first = train_planetoid(communities, **QUICK, seed=3)
    after = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(1), after)
    second = train_planetoid(communities, **QUICK, seed=3)
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_patience_ends_the_training(communities: Graph) -> None:
    record = train_planetoid(communities, **{**QUICK, "max_epochs": 100}, patience=4)
    assert record["epochs"] == record["best_epoch"] + 4


def test_a_short_run_has_a_short_pre_training(
    communities: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    sample = ContextSampler.sample

    def counted(self: ContextSampler, count: int, number: int = 0) -> Contexts:
        sizes.append(count)
        return sample(self, count, number)

    monkeypatch.setattr(ContextSampler, "sample", counted)
    options = {"contexts_per_node": 500, "context_batch_size": 20}
    train_planetoid(communities, max_epochs=2, **options)
    assert sizes == [200] * 20 + [20] * (2 * planetoid.STEPS)
    sizes.clear()
    train_planetoid(communities, max_epochs=30, **options)
    assert sizes.count(200) == 200


def test_many_training_nodes_come_in_batches(communities: Graph) -> None:
    batches = planetoid._batches(communities, 4, seed=0)
    passes = [[next(batches) for _ in range(3)] for _ in range(2)]  # of 10 training nodes
    for batch in passes:
        assert [len(nodes) for nodes, _ in batch] == [4, 4, 2]
        nodes, y = (torch.cat(parts) for parts in zip(*batch, strict=True))
        assert nodes.sort().values.tolist() == [0, 1, 2, 3, 4, 40, 41, 42, 43, 44]
        assert torch.equal(y, nodes // 40)
    assert not torch.equal(passes[0][0][0], passes[1][0][0])


def test_a_graph_without_test_nodes_has_no_test_score(communities: Graph) -> None:
    record = train_planetoid(replace(communities, test_mask=None), max_epochs=2)
    assert record["test_score"] is None
    assert record["test_score_released_rule"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_epochs": 0}, "max_epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"contexts_per_node": -1}, r"contexts_per_node must .* got -1"),
        ({"feature_length": 0.0}, "feature_length must be positive, got 0.0"),
        ({"positive_share": 1.5}, "positive_share must be a probability from 0 to 1, got 1.5"),
        ({"graph_share": -0.1}, "graph_share must be a probability from 0 to 1, got -0.1"),
        ({"window": 0}, "window must be at least 1, got 0"),
        ({"walk_length": 0}, "walk_length must be at least 1, got 0"),
    ],
)
def test_wrong_options_are_named(communities: Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train_planetoid(communities, **options)


def test_graphs_that_cannot_be_learned_from(communities: Graph) -> None:
    several = torch.nn.functional.one_hot(torch.arange(80) // 40)
    empty = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 80)
    one_class = torch.arange(80) < 5
    cases = [
        (
            {"y": several},
            "one class per node, but the nodes of communities can have several labels",
        ),
        ({"x": None}, "communities has no features"),
        ({"train_mask": one_class}, "train_mask of communities must have nodes of two classes"),
        ({"rowptr": empty.rowptr, "col": empty.col}, "communities must have edges"),
    ]
    for fields, message in cases:
        changes: dict[str, Any] = fields
        with pytest.raises(UsageError, match=message):
            train_planetoid(replace(communities, **changes), max_epochs=1)
    with pytest.raises(UsageError, match="must have classes"):
        ContextSampler(replace(communities, y=None))


def test_either_kind_of_context_is_enough(communities: Graph) -> None:
    only_class = replace(communities, train_mask=torch.arange(80) < 5)
    assert ContextSampler(only_class, graph_share=1).sample(10).node.shape == (10,)
    empty = Graph.as_given(torch.empty(2, 0, dtype=torch.long), 80)
    no_edges = replace(communities, rowptr=empty.rowptr, col=empty.col)
    assert ContextSampler(no_edges, graph_share=0).sample(10).node.shape == (10,)


def test_a_loss_that_is_no_number_is_told(communities: Graph) -> None:
    with pytest.raises(TrainingDiverged, match="A smaller lr, context_lr or feature_length"):
        train_planetoid(communities, max_epochs=3, lr=1e38)
