"""Agreement of views against a slow reference, and how it enters a step."""

import numpy as np
import pytest
import torch

from lgcn.errors import UsageError
from lgcn.training import train
from lgcn.training.agreement import agreement, agreement_weight
from lgcn.training.loop import train_epochs

from .graphs import settings, several_graphs, small_graph


def slow(views: list[np.ndarray], temperature: float) -> float:
    """By loops, for probabilities [N, classes] of each view."""
    total = 0.0
    for node in range(len(views[0])):
        mean = sum(view[node] for view in views) / len(views)
        sharp = mean ** (1 / temperature)
        sharp = sharp / sharp.sum()
        for view in views:
            total += float(((view[node] - sharp) ** 2).sum())
    return total / len(views) / len(views[0])


@pytest.mark.parametrize("temperature", [0.2, 0.5, 1.0])
def test_equals_the_reference(temperature: float) -> None:
    views = list(torch.randn(3, 20, 4, generator=torch.Generator().manual_seed(0)))
    expected = slow([view.softmax(1).double().numpy() for view in views], temperature)
    assert float(agreement(views, temperature, multi_label=False)) == pytest.approx(expected)


def test_each_of_several_labels_is_one_of_two_classes() -> None:
    views = list(torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(0)))
    shares = [view.sigmoid().double().numpy().reshape(-1, 1) for view in views]
    expected = slow([np.hstack([share, 1 - share]) for share in shares], 0.5)
    assert float(agreement(views, 0.5, multi_label=True)) == pytest.approx(expected)


def test_sure_views_that_agree_have_nothing_to_learn() -> None:
    view = 100 * torch.eye(4)
    assert float(agreement([view, view], 0.5, multi_label=False)) == pytest.approx(0, abs=1e-12)
    apart = agreement([view, view.roll(1, 0)], 0.5, multi_label=False)
    assert float(apart) == pytest.approx(0.5)


def test_the_target_is_not_learned() -> None:
    view = torch.randn(5, 3, requires_grad=True)
    (gradient,) = torch.autograd.grad(agreement([view, view.detach()], 0.5, False), view)
    prediction = view.softmax(1)
    with torch.no_grad():
        target = prediction**2 / (prediction**2).sum(1, keepdim=True)
    half = (prediction - target).square().sum(1).mean() / 2
    torch.testing.assert_close(gradient, torch.autograd.grad(half, view)[0])


def test_the_weight_grows_with_the_epochs() -> None:
    weights = [agreement_weight(2.0, epoch, 100) for epoch in (1, 50, 100)]
    assert weights == pytest.approx([0.02, 1.0, 2.0])
    assert agreement_weight(2.0, 1000, 100) == 2.0
    assert agreement_weight(2.0, 1, 1) == 2.0


def test_views_without_dropout_change_nothing() -> None:
    plain = settings(dropout=0.0, adj_dropout=0.0)
    graph = small_graph()
    one = train_epochs(graph, plain, 3)
    three = train_epochs(graph, settings(dropout=0.0, adj_dropout=0.0, views=3), 3)
    for a, b in zip(one.parameters(), three.parameters(), strict=True):
        torch.testing.assert_close(a, b)


def test_agreement_makes_predictions_sure() -> None:
    graph = small_graph()
    assert graph.x is not None
    doubt = []
    for weight in (0.0, 5.0):
        config = settings(views=2, agreement=weight, sharpen=0.2, node_dropout=0.5, dropout=0.5)
        model = train_epochs(graph, config, 120).eval()
        with torch.no_grad():
            doubt.append(1 - float(model(graph.x, graph).softmax(1).amax(1).mean()))
    assert doubt[1] < 0.8 * doubt[0]


@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_several_labels_and_graphs_train_with_views(training: str) -> None:
    config = settings(views=2, agreement=1.0, training=training, max_nodes=40, max_epochs=3)
    record = train(several_graphs(), config).record
    assert record["epochs"] == 3
    assert 0 <= record["val_score"] <= 1


def test_one_view_has_nothing_to_agree_with() -> None:
    with pytest.raises(UsageError, match=r"agreement=0.5 .*2 views, got views=1"):
        settings(agreement=0.5)


@pytest.mark.gpu
def test_replayed_steps_agree_as_eager_ones() -> None:
    given = {"views": 2, "agreement": 1.0, "dropout": 0.0, "adj_dropout": 0.0, "device": "cuda"}
    graph = small_graph()
    replayed, eager = (
        train_epochs(graph, settings(**given, capture=capture), 30) for capture in (True, False)
    )
    for one, other in zip(replayed.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
