"""One step of training: what is kept, what is captured, and that nothing changes by it."""

import weakref
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lgcn import Graph, load_dataset
from lgcn.errors import TrainingDiverged, UsageError
from lgcn.training import Settings, loop, train
from lgcn.training.cuda_graphs import can_capture
from lgcn.training.data import TrainingData
from lgcn.training.loop import train_epochs
from lgcn.training.step import Step

from .graphs import settings, small_graph


@pytest.fixture
def graph() -> Graph:
    return small_graph()


def make_step(graph: Graph, config: Settings, fixed: bool) -> Step:
    torch.manual_seed(0)
    model = torch.nn.Linear(graph.num_features, graph.num_classes)

    class Scores(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = model

        def forward(self, x: torch.Tensor, graph: Graph) -> torch.Tensor:
            out: torch.Tensor = self.linear(x)
            return out

    scores = Scores()
    optimizer = torch.optim.SGD(scores.parameters(), lr=0.1)
    return Step(scores, optimizer, config, torch.device("cpu"), fixed)


def test_a_step_is_that_of_the_training_nodes(graph: Graph) -> None:
    step = make_step(graph, settings(), fixed=False)
    before = step.model.linear.weight.detach().clone()
    assert graph.x is not None
    assert graph.y is not None
    logits = step.model(graph.x, graph)[graph.train_mask]
    expected = torch.nn.functional.cross_entropy(logits, graph.y[graph.train_mask])
    (gradient,) = torch.autograd.grad(expected, step.model.linear.weight)
    loss = step(graph)
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(step.model.linear.weight.detach(), before - 0.1 * gradient)


def test_fixed_batches_are_prepared_once(graph: Graph) -> None:
    step = make_step(graph, settings(), fixed=True)
    step(graph)
    step(graph)
    assert len(step._kept) == 1
    sampled = make_step(graph, settings(), fixed=False)
    sampled(graph)
    assert not sampled._kept


def test_a_batch_without_training_nodes_is_no_step(graph: Graph) -> None:
    assert graph.train_mask is not None
    part = graph.subgraph((~graph.train_mask).nonzero().squeeze(1))
    step = make_step(part, settings(), fixed=False)
    before = step.model.linear.weight.detach().clone()
    assert step(part) is None
    assert torch.equal(step.model.linear.weight, before)


class WithExtraLoss(nn.Module):
    """A linear map whose n-th pass has n times the squares of the scores as extra loss."""

    def __init__(self, in_channels: int, num_classes: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_channels, num_classes)
        self.passes = 0
        self.extra: Tensor | None = None

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        out: Tensor = self.linear(x)
        self.passes += 1
        self.extra = self.passes * out.square().mean()
        return out

    def take_extra_loss(self) -> Tensor:
        found, self.extra = self.extra, None
        assert found is not None
        return found


def step_with_extra_loss(graph: Graph, **given: Any) -> Step:
    torch.manual_seed(0)
    model = WithExtraLoss(graph.num_features, graph.num_classes)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return Step(model, optimizer, settings(**given), torch.device("cpu"), fixed=False)


@pytest.mark.parametrize("views", [1, 3])
def test_the_extra_loss_of_a_network_is_added(graph: Graph, views: int) -> None:
    step = step_with_extra_loss(graph, views=views, agreement=0.0)
    assert graph.x is not None
    assert graph.y is not None
    weight, bias = step.model.linear.weight, step.model.linear.bias
    before = weight.detach().clone()
    scores = graph.x @ weight.t() + bias
    expected = nn.functional.cross_entropy(scores[graph.train_mask], graph.y[graph.train_mask])
    expected = expected + (1 + views) / 2 * scores.square().mean()  # the mean of 1, ..., views
    (gradient,) = torch.autograd.grad(expected, weight)
    torch.testing.assert_close(step(graph), expected.detach())
    torch.testing.assert_close(weight.detach(), before - 0.1 * gradient)
    assert step.model.passes == views


def test_a_step_with_extra_loss_keeps_nothing(graph: Graph) -> None:
    step, found = step_with_extra_loss(graph), []
    take = step.take_extra_loss
    assert take is not None

    def watched() -> Tensor:
        extra = take()
        found.append(weakref.ref(extra))
        return extra

    step.take_extra_loss = watched
    step(graph)
    assert len(found) == step.settings.optimisation.views
    assert all(extra() is None for extra in found)
    assert step.model.extra is None


@pytest.mark.slow
def test_a_compiled_network_has_the_same_extra_loss(graph: Graph) -> None:
    given = {"views": 1, "agreement": 0.0}
    plain, compiled = (step_with_extra_loss(graph, **given, compile=c) for c in (False, True))
    for _ in range(3):
        torch.testing.assert_close(compiled(graph), plain(graph))
    torch.testing.assert_close(compiled.model.linear.weight, plain.model.linear.weight)


def test_what_can_be_captured() -> None:
    def captured(**given: Any) -> bool:
        chosen = settings(**given)
        return can_capture(chosen.build_model(5, 3), chosen)

    assert captured()
    assert not captured(capture=False)
    assert not captured(optimizer="nadam")
    assert not captured(zeros="pad", adj_dropout=0.1)
    assert captured(zeros="pad", adj_dropout=0.0)
    assert captured(zeros="pad", adj_dropout=0.1, layer="gcn")
    assert not can_capture(torch.nn.Linear(5, 3), settings())


def test_epochs_alone_give_the_weights_of_the_whole_training(graph: Graph) -> None:
    config = settings(max_epochs=3, evaluate_every=3, training="whole")
    alone, whole = train_epochs(graph, config, 3), train(graph, config).model
    for one, other in zip(alone.parameters(), whole.parameters(), strict=True):
        assert torch.equal(one, other)


def test_epochs_alone_tell_when_training_diverged(graph: Graph) -> None:
    with pytest.raises(TrainingDiverged, match=r"the loss became (nan|inf) in epoch \d"):
        train_epochs(graph, settings(lr=1e30), 5)


def test_bfloat16_is_for_gpus(graph: Graph) -> None:
    with pytest.raises(UsageError, match="precision=bfloat16 is for GPUs, got device cpu"):
        train(graph, settings(precision="bfloat16", device="cpu"))


@pytest.mark.gpu
def test_bfloat16_trains_and_differs_little(graph: Graph) -> None:
    exact = train(graph, settings(dropout=0.0, device="cuda"))
    half = train(graph, settings(dropout=0.0, device="cuda", precision="bfloat16"))
    assert abs(exact.record["val_score"] - half.record["val_score"]) < 0.2
    pairs = list(zip(exact.model.parameters(), half.model.parameters(), strict=True))
    assert all(p.dtype == torch.float32 for _, p in pairs)
    assert any(not torch.equal(p, q) for p, q in pairs)


@pytest.mark.slow
def test_a_compiled_model_trains_the_same(graph: Graph) -> None:
    plain = train_epochs(graph, settings(dropout=0.0, adj_dropout=0.0), 3)
    compiled = train_epochs(graph, settings(dropout=0.0, adj_dropout=0.0, compile=True), 3)
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_replayed_steps_are_the_eager_ones(training: str) -> None:
    graph = load_dataset("digits")
    runs = [
        train_epochs(graph, settings(device="cuda", training=training, resample=False, **given), 8)
        for given in ({"capture": True}, {"capture": False}, {"capture": True})
    ]
    for one, eager, again in zip(*(run.parameters() for run in runs), strict=True):
        assert torch.equal(one, again)
        torch.testing.assert_close(one, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.gpu
@pytest.mark.parametrize("model", ["lgcn", "gcn", "mlp"])
def test_sparse_features_are_replayed_too(model: str) -> None:
    graph = load_dataset("digits")
    assert graph.x is not None
    sparse = replace(graph, x=graph.x.to_sparse_csr())
    given = {"model": model, "dropout": 0.5, "device": "cuda", "training": "whole"}
    runs = [
        train_epochs(sparse, settings(**given, capture=capture), 8) for capture in (True, False)
    ]
    for replayed, eager in zip(*(run.parameters() for run in runs), strict=True):
        torch.testing.assert_close(replayed, eager, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_an_epoch_waits_once_for_the_device() -> None:
    graph = load_dataset("digits")
    config = settings(device="cuda", training="subgraph", resample=False, n_init=20, max_nodes=200)
    train_epochs(graph, config, 4)  # compiles
    model, _, loader, step = loop._prepare(TrainingData(graph, config), torch.device("cuda"))
    model.train()
    batches = list(loader.epoch(1))
    for _ in range(4):
        for batch in batches:
            step(batch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        losses = [step(batch) for batch in batches]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(losses) > 1
    assert all(loss is not None and bool(loss.isfinite()) for loss in losses)
