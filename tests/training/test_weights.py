"""Weights of classes and nodes in the loss, against scikit-learn and by hand."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.utils.class_weight import compute_sample_weight

from lgcn.errors import UsageError
from lgcn.graph import Graph
from lgcn.sampling.start_nodes import expected_counts
from lgcn.training import train
from lgcn.training.setup import make_optimizer
from lgcn.training.step import Step
from lgcn.training.weights import loss_weight

from .graphs import digest, settings, small_graph


def unequal_graph() -> Graph:
    """Classes with 4, 8 and 16 training nodes."""
    graph = small_graph()
    mask = torch.zeros(graph.num_nodes, dtype=torch.bool)
    for number, count in enumerate((4, 8, 16)):
        mask[(graph.y == number).nonzero().squeeze(1)[:count]] = True
    return replace(graph, train_mask=mask, val_mask=~mask, test_mask=None)


def random_weights(graph: Graph) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).uniform(0, 3, graph.num_nodes))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("class_weight", ["balanced", {"2": 5.0, "0": 0.0}])
def test_weights_are_those_of_scikit_learn(class_weight: object, own: bool):
    graph = unequal_graph()
    if own:
        graph = replace(graph, sample_weight=random_weights(graph))
    y = graph.y[graph.train_mask].numpy()
    table = class_weight
    if isinstance(class_weight, dict):
        table = {int(name): weight for name, weight in class_weight.items()}
    expected = compute_sample_weight(table, y)
    if own:
        expected = expected * graph.sample_weight[graph.train_mask].numpy()
    found = loss_weight(graph, class_weight)
    np.testing.assert_allclose(found[graph.train_mask], expected / expected.mean(), rtol=1e-6)
    assert not found[~graph.train_mask].any()


def test_equal_weights_are_no_weights():
    graph = small_graph()  # ten training nodes of each class
    assert loss_weight(graph) is None
    assert loss_weight(graph, "balanced") is None
    weighted = replace(graph, sample_weight=torch.full((graph.num_nodes,), 0.3))
    one, other = (train(g, settings(max_epochs=2)).model for g in (graph, weighted))
    assert digest(one) == digest(other)


def test_names_of_classes():
    graph = replace(unequal_graph(), label_names=("cat", "dog", "cow"))
    assert loss_weight(graph, {"dog": 2.0}) is not None
    with pytest.raises(UsageError, match=r"'dgo'.*'dog'"):
        loss_weight(graph, {"dgo": 2.0})
    with pytest.raises(UsageError, match=r"sum to zero.*class_weight"):
        loss_weight(graph, {"cat": 0.0, "dog": 0.0, "cow": 0.0})


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_class_weights_need_classes(task: str):
    graph = small_graph()
    y = (graph.x[:, :4] > 0).long() if task == "multilabel" else graph.x[:, 0].clone()
    with pytest.raises(UsageError, match="class_weight needs one class per node"):
        train(replace(graph, y=y), settings(class_weight="balanced"))


@pytest.mark.parametrize("wrong", [{"a": -1.0}, {"a": float("nan")}, {"a": "b"}, "heavy", 3])
def test_wrong_class_weights(wrong: object):
    with pytest.raises(UsageError, match="class_weight must be one of none, balanced or a table"):
        settings(class_weight=wrong)
    assert settings(class_weight=None).optimisation.class_weight == "none"


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, "must not be negative.*-1"),
        (float("nan"), "finite"),
        (float("inf"), "finite"),
        (0.0, "sum to zero"),
    ],
)
def test_wrong_sample_weights(weight: float, message: str):
    graph = small_graph()
    with pytest.raises(UsageError, match=f"sample_weight.*{message}"):
        train(replace(graph, sample_weight=torch.full((200,), weight)), settings())


def step_loss(graph: Graph) -> tuple[float, torch.Tensor]:
    """The loss of a step without dropout, and the scores before it."""
    chosen = settings(dropout=0.0, input_dropout=0.0, adj_dropout=0.0, views=1, agreement=0.0)
    chosen = chosen.resolve(graph)
    torch.manual_seed(0)
    model = chosen.build_model(graph.num_features, 3)
    logits = model.eval()(graph.x, graph).detach()
    optimizer = make_optimizer(model, chosen)
    step = Step(model.train(), optimizer, chosen, torch.device("cpu"), fixed=False)
    step.begin_epoch(1)
    return float(step(graph)), logits


def test_the_loss_is_the_weighted_mean_over_the_training_nodes_of_the_batch():
    graph = unequal_graph()
    weight = random_weights(graph)
    found, logits = step_loss(replace(graph, sample_weight=weight))
    nodes = graph.train_mask.nonzero().squeeze(1)
    own = F.cross_entropy(logits[nodes], graph.y[nodes], reduction="none").double()
    assert found == pytest.approx(float((weight[nodes] * own).sum() / weight[nodes].sum()))


def test_weights_of_start_nodes_multiply():
    """The expected loss over draws is the weighted mean over all training nodes."""
    graph = unequal_graph()
    weight = random_weights(graph)
    nodes = graph.train_mask.nonzero().squeeze(1)
    weight = weight / weight[nodes].mean()
    counts = expected_counts(graph, nodes, "balanced")
    # A batch in which each node was drawn as often as expected.
    draws = torch.zeros(graph.num_nodes)
    draws[nodes] = torch.from_numpy(counts / counts / len(nodes)).float()
    found, logits = step_loss(replace(graph, sample_weight=weight, node_weight=draws))
    own = F.cross_entropy(logits[nodes], graph.y[nodes], reduction="none").double()
    assert found == pytest.approx(float((weight[nodes] * own).sum() / weight[nodes].sum()))


@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_a_weight_of_zero_leaves_a_node_out(training: str):
    graph = unequal_graph()
    nodes = graph.train_mask.nonzero().squeeze(1)
    weight = torch.ones(graph.num_nodes)
    weight[nodes[::3]] = 0
    chosen = settings(training=training, max_nodes=None, max_epochs=2, dropout=0.0, n_init=28)
    without = graph.train_mask.clone()
    without[nodes[::3]] = False
    first = train(replace(graph, sample_weight=weight), chosen).model
    if training == "subgraph":
        chosen = chosen.replace(n_init=28 - len(nodes[::3]))
    second = train(replace(graph, train_mask=without), chosen).model
    for one, other in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("sampler", ["bfs", "clusters", "walks", "neighbors"])
def test_weights_reach_every_kind_of_sub_graph(sampler: str):
    graph = unequal_graph()
    chosen = settings(training="subgraph", max_nodes=80, n_init=9, sampler=sampler, max_epochs=1)
    plain = train(graph, chosen)
    weighted = train(graph, chosen.replace(class_weight={"0": 50.0}))
    assert digest(plain.model) != digest(weighted.model)


def test_balanced_weights_find_the_rare_class():
    """With a rare class that overlaps the other, weights raise its recall."""
    rng = np.random.default_rng(0)
    n = 600
    y = (rng.random(n) < 0.06).astype(int)
    x = torch.from_numpy(rng.normal(size=(n, 4)) + y[:, None] * 1.2).float()
    ends = torch.from_numpy(rng.integers(0, n, (2, 900)))
    part = rng.integers(0, 3, n)
    graph = Graph.from_edge_index(
        ends,
        n,
        x=x,
        y=torch.from_numpy(y),
        **{
            f"{s}_mask": torch.from_numpy(part == i) for i, s in enumerate(("train", "val", "test"))
        },
    )
    recalls = []
    for class_weight in ("none", "balanced"):
        chosen = settings(class_weight=class_weight, max_epochs=30, classifier="none")
        result = train(graph, chosen)
        with torch.no_grad():
            predicted = result.model(graph.x, graph).argmax(1)
        rare = graph.test_mask & (graph.y == 1)
        recalls.append(float((predicted[rare] == 1).double().mean()))
    assert recalls[1] > recalls[0] + 0.2
