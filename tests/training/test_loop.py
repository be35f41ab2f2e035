"""The training loop: what it learns, what it reports, when it stops, what it refuses."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lgcn.errors import TrainingDiverged, UsageError
from lgcn.graph import Graph
from lgcn.inference import predict
from lgcn.sampling import NeighborLoader
from lgcn.training import Run, State, checks, evaluate, train
from lgcn.training.calibration import expected_calibration_error, find_temperature, probabilities
from lgcn.training.evaluation import evaluation_graphs
from lgcn.training.loop import train_epochs
from lgcn.training.setup import make_loader

from .graphs import digest, lasting, settings, several_graphs, small_graph


@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_it_learns(training: str):
    config = settings(training=training, max_nodes=100, max_epochs=25)
    result = train(small_graph(), config)
    assert result.test_score == result.record["test_score"]
    assert result.record["metric"] == "accuracy"
    assert result.test_score > 0.7  # chance is 1/3


def test_it_learns_several_labels_on_separate_graphs():
    result = train(several_graphs(), settings(max_epochs=25, dropout=0.0))
    assert result.record["metric"] == "micro_f1"
    assert result.record["test_score"] > 0.75
    assert result.record["test_label_accuracy"] != result.record["test_score"]


def test_sampled_neighbours_train_each_node_once_an_epoch():
    graph = several_graphs()
    config = settings(training="subgraph", sampler="neighbors", fanout=(3, 2), n_init=50)
    batches = list(make_loader(graph, config).epoch(1))
    trained = torch.cat([batch.n_id[batch.train_mask] for batch in batches])
    assert torch.equal(trained.sort().values, graph.train_mask.nonzero().squeeze(1))
    assert [int(batch.train_mask.sum()) for batch in batches] == [40, 40, 40]
    assert max(int(batch.rowptr.diff().max()) for batch in batches) == 3
    loader = make_loader(graph, settings(training="subgraph", sampler="neighbors"))
    assert isinstance(loader, NeighborLoader)
    assert (loader.n_init, loader.fanout, loader.with_replacement) == (512, (25, 10), False)
    with_replacement = settings(training="subgraph", sampler="neighbors", with_replacement=True)
    batch = next(make_loader(graph, with_replacement).epoch(0))
    assert set(batch.rowptr.diff().tolist()) == {25}  # all nodes are roots


@pytest.mark.parametrize("aggregator", ["gcn", "mean", "pool", "lstm"])
def test_graphsage_learns_on_sampled_neighbours(aggregator: str):
    options = {"training": "subgraph", "sampler": "neighbors", "evaluate_on": "neighbors"}
    config = settings(
        **options,
        model="sage",
        aggregator=aggregator,
        hidden_channels=16,
        num_layers=2,
        n_init=40,
        fanout=(4, 4),
        max_epochs=30,
        lr=0.02,
        dropout=0.0,
    )
    record = train(several_graphs(), config).record
    assert record["test_score"] > 0.72  # all labels for all nodes: 0.67
    assert record["steps"] == 3 * record["epochs"]
    short = config.replace(max_epochs=3)
    first, second = (train(several_graphs(), short.replace(num_workers=n)).record for n in (0, 2))
    assert lasting(first) == lasting(second)


def test_the_record_agrees_with_the_epochs_shown():
    shown: list[dict[str, Any]] = []
    config = settings(max_epochs=10)
    record = train(small_graph(), config, on_epoch=lambda s: shown.append(s.history[-1])).record
    assert [entry["epoch"] for entry in shown] == list(range(1, 11))
    best = shown[record["best_epoch"] - 1]
    assert best["val_score"] == max(entry["val_score"] for entry in shown)
    assert record["val_score"] == best["val_score"]
    assert record["test_score"] == best["test_score"]
    assert record["test_score_released_rule"] >= record["test_score"]
    assert record["epochs"] == 10
    assert record["out"] is None


def test_the_best_weights_come_back():
    graph = small_graph()
    shown: list[dict[str, Any]] = []
    # Steps this large ruin the model again after its best epoch.
    config = settings(lr=0.5, max_epochs=15, dropout=0.8)
    result = train(graph, config, on_epoch=lambda state: shown.append(state.history[-1]))
    assert result.record["best_epoch"] < 15
    best = shown[result.record["best_epoch"] - 1]
    scores = evaluate(result.model, [graph], ("val", "test"))
    assert scores["val"]["loss"] == best["val_loss"]
    assert scores["val"]["score"] == best["val_score"] == result.record["val_score"]
    assert scores["test"]["score"] == best["test_score"] == result.record["test_score"]
    assert not result.model.training


def test_patience_ends_training():
    record = train(small_graph(), settings(lr=0.0, max_epochs=50, patience=3)).record
    assert (record["best_epoch"], record["epochs"]) == (1, 4)


def test_scores_are_computed_every_so_many_epochs_and_at_the_end():
    epochs: list[int] = []

    def note(state: State) -> None:
        epochs[:] = [entry["epoch"] for entry in state.history]

    train(small_graph(), settings(max_epochs=7, evaluate_every=3), on_epoch=note)
    assert epochs == [3, 6, 7]


@pytest.mark.parametrize(("max_steps", "epochs"), [(1, 1), (3, 1), (7, 2), (8, 2), (100, 6)])
def test_steps_end_training_and_the_end_is_evaluated(max_steps: int, epochs: int):
    shown: list[tuple[int, int]] = []
    config = settings(
        training="subgraph",
        max_nodes=40,
        n_init=8,  # 4 sub-graphs an epoch
        max_steps=max_steps,
        evaluate_every=100,
    )
    result = train(small_graph(), config, on_epoch=lambda s: shown.append((s.epoch, s.steps)))
    steps = min(max_steps, 24)
    assert shown[-1] == (epochs, steps)
    assert (result.record["epochs"], result.record["steps"]) == (epochs, steps)
    assert result.record["best_epoch"] == epochs


def test_steps_that_fill_epochs_change_nothing():
    config = settings(training="subgraph", max_nodes=40, n_init=8)
    by_epochs = train(small_graph(), config.replace(max_epochs=2))
    by_steps = train(small_graph(), config.replace(max_steps=8))
    assert digest(by_steps.model) == digest(by_epochs.model)


def test_rates_of_loader_and_model_are_told():
    shown: list[str] = []
    config = settings(training="subgraph", max_nodes=40, max_epochs=2, num_workers=1)
    record = train(small_graph(), config, on_epoch=lambda s: shown.append(s.rates)).record
    assert re.fullmatch(r"loader \d+/s, model \d+/s", shown[-1])
    assert record["loader_subgraphs_per_second"] > 0
    assert record["model_steps_per_second"] > 0
    whole = train(small_graph(), settings(max_epochs=1)).record
    assert "loader_subgraphs_per_second" not in whole


@pytest.mark.parametrize(
    "given",
    [
        {"start_nodes": "balanced"},
        {"start_nodes": "degree", "subgraphs_per_batch": 2},
        {"sampler": "walks", "max_hops": 2},
        {"sampler": "clusters"},
        {"sampler": "neighbors", "fanout": (8, 8)},
    ],
)
def test_it_learns_from_other_subgraphs(given: dict[str, Any]):
    if given.get("sampler") == "clusters":
        pytest.importorskip("pymetis")
    config = settings(training="subgraph", max_nodes=100, n_init=15, max_epochs=20, **given)
    first, second = (train(small_graph(), config) for _ in range(2))
    assert first.record["test_score"] > 0.65  # chance is 1/3
    assert digest(first.model) == digest(second.model)


def test_features_that_are_not_read_beforehand_are_suspected(monkeypatch: pytest.MonkeyPatch):
    graph = small_graph()
    assert graph.x is not None
    x = graph.x.clone()
    x[graph.train_mask] = float("nan")
    monkeypatch.setattr(checks, "CHECKED_VALUES", 10)
    with pytest.raises(TrainingDiverged, match=r"features \(x\) are NaN"):
        train(replace(graph, x=x), settings())


def test_batches_are_listed_up_to_a_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.training.record.BATCHES_LISTED", 3)
    config = settings(training="subgraph", max_nodes=40, n_init=3, max_epochs=1)
    assert train(small_graph(), config).record["nodes_per_batch"] == [40, 40, 40]


def test_same_seed_same_numbers_other_seed_others():
    graph, config = small_graph(), settings(training="subgraph", max_nodes=100, num_workers=1)
    first, second = train(graph, config), train(graph, config)
    assert digest(first.model) == digest(second.model)
    assert lasting(first.record) == lasting(second.record)
    other = train(graph, config.replace(seed=1))
    assert digest(other.model) != digest(first.model)


def test_the_callers_random_numbers_are_left_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = train(small_graph(), settings(max_epochs=2))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    assert digest(train(small_graph(), settings(max_epochs=2)).model) == digest(first.model)


@pytest.mark.parametrize("training", ["whole", "subgraph"])
def test_training_sees_no_other_graphs_nodes(training: str):
    graph = several_graphs()
    loader = make_loader(graph, settings(training=training, max_nodes=50, n_init=10))
    seen = torch.cat([batch.n_id for batch in loader.epoch(1)])
    assert bool(graph.train_mask[seen].all())
    assert set(seen.tolist()) <= set(range(120))
    assert len(seen) >= 50


def test_features_of_the_other_graphs_do_not_enter_training():
    graph = several_graphs()
    x = graph.x.clone()
    x[~graph.train_mask] = 1000.0

    def losses(graph: Graph) -> list[float]:
        found: list[float] = []
        train(
            graph,
            settings(max_epochs=4),
            on_epoch=lambda state: found.append(state.history[-1]["train_loss"]),
        )
        return found

    assert losses(graph) == losses(replace(graph, x=x))


def test_training_loss_is_that_of_the_training_nodes_alone():
    graph = small_graph()
    y = graph.y.clone()
    y[~graph.train_mask] = 0

    def loss(graph: Graph) -> float:
        found: list[float] = []
        train(
            graph,
            settings(max_epochs=1),
            on_epoch=lambda state: found.append(state.history[-1]["train_loss"]),
        )
        return found[0]

    assert loss(graph) == loss(replace(graph, y=y))


def test_evaluation_is_on_whole_graphs_that_have_something_to_score():
    parts = evaluation_graphs(several_graphs(), settings())
    assert [part.num_nodes for part in parts] == [60, 60]
    assert bool(parts[0].val_mask.all())
    assert bool(parts[1].test_mask.all())


def test_evaluation_on_sub_graphs_takes_each_splits_surroundings():
    graph = small_graph()
    config = settings(evaluate_on="subgraph", max_hops=0)
    val, test = evaluation_graphs(graph, config)
    assert torch.equal(val.n_id, graph.val_mask.nonzero().squeeze(1))
    assert torch.equal(test.n_id, graph.test_mask.nonzero().squeeze(1))
    assert val.test_mask is None
    assert test.val_mask is None
    one_hop = evaluation_graphs(graph, config.replace(max_hops=1))
    assert val.num_nodes < one_hop[0].num_nodes
    record = train(graph, config.replace(max_epochs=2)).record
    assert record["test_score"] is not None


def test_scores_are_over_all_graphs_together():
    graph = several_graphs()
    model = train(graph, settings(max_epochs=1)).model
    parts = [graph.subgraph(torch.arange(0, 60)), graph.subgraph(torch.arange(60, 120))]
    scores = evaluate(model, parts, ("train", "val"))
    assert set(scores) == {"train"}
    assert scores["train"]["nodes"] == 120
    both = [evaluate(model, [part], ("train",))["train"]["loss"] for part in parts]
    assert scores["train"]["loss"] == pytest.approx(sum(both) / 2)


def masked(value: bool) -> Tensor:
    return torch.full((200,), value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": None}, r"synthetic has no labels \(y\)"),
        ({"x": torch.full((200, 8), float("nan"))}, r"must be finite, some are NaN or inf"),
        ({"x": torch.full((200, 8), float("inf")).to_sparse_csr()}, r"must be finite"),
        ({"train_mask": None}, r"no train nodes: train_mask is empty"),
        ({"val_mask": masked(False)}, r"val_mask is empty\. Label more nodes.*'val'.*val="),
        ({"y": torch.full((200,), -1)}, r"train_mask of synthetic has nodes without a label"),
    ],
)
def test_what_training_cannot_do_without(change: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        train(replace(small_graph(), **change), settings())


def test_test_nodes_need_labels_too():
    graph = small_graph()
    y = graph.y.clone()
    y[graph.test_mask.nonzero()[0]] = -1
    with pytest.raises(UsageError, match="test_mask of synthetic has nodes without a label"):
        train(replace(graph, y=y), settings())


def test_test_nodes_are_optional():
    record = train(replace(small_graph(), test_mask=None), settings(max_epochs=1)).record
    assert record["test_score"] is None
    assert record["test_score_released_rule"] is None


def test_nodes_without_a_label_may_be_around():
    graph = small_graph()
    y = graph.y.clone()
    y[graph.test_mask] = -1
    unlabelled = replace(graph, y=y, test_mask=None)
    assert train(unlabelled, settings(max_epochs=1)).record["val_score"] > 0


def test_settings_that_depend_on_the_graph_are_filled_in(tmp_path: Path):
    graph, config = small_graph(), settings(k=None, training="auto")
    result = train(graph, config, out=tmp_path)
    stored, _ = Run(tmp_path).read()
    assert stored == config.resolve(graph)
    assert all(layer.k == stored.model.k for layer in result.model.layers)
    again = train(graph, stored)
    assert digest(again.model) == digest(result.model)
    epochs = config.optimisation.max_epochs
    last = train_epochs(graph, config, epochs)
    assert digest(last) == digest(train_epochs(graph, stored, epochs))


def test_it_starts_from_given_weights():
    graph = small_graph()
    first = train(graph, settings()).model
    still = train(graph, settings(lr=0.0, seed=3), weights=first.state_dict()).model
    assert digest(still) == digest(first)
    moved = train(graph, settings(seed=3), weights=first.state_dict()).model
    assert digest(moved) not in (digest(first), digest(train(graph, settings(seed=3)).model))


def test_weights_that_do_not_fit_are_refused(tmp_path: Path):
    weights = train(small_graph(), settings(max_epochs=1)).model.state_dict()
    with pytest.raises(UsageError, match=r"weights must .*model .*settings"):
        train(small_graph(), settings(hidden_channels=9), weights=weights)
    with pytest.raises(UsageError, match="weights must be None with resume"):
        train(small_graph(), settings(), out=tmp_path, resume=True, weights=weights)


@pytest.mark.parametrize("make", [small_graph, several_graphs])
def test_the_temperature_is_that_of_the_validation_nodes(make: Callable[[], Graph]):
    graph = make()
    result = train(graph, settings(max_epochs=10))
    logits = predict(result.model, graph)
    val, test = graph.val_mask, graph.test_mask
    temperature = result.record["temperature"]
    assert temperature == pytest.approx(find_temperature(logits[val], graph.y[val]), rel=1e-4)

    def error(mask: Tensor, at: float) -> float:
        chances = probabilities(logits[mask], graph.multi_label, at)
        return expected_calibration_error(chances, graph.y[mask])

    expected = {
        "val_before": error(val, 1.0),
        "val_after": error(val, temperature),
        "test_after": error(test, temperature),
    }
    assert result.record["calibration"] == pytest.approx(expected, abs=1e-5)
    # The labels of the test nodes have no part in it.
    other = replace(graph, y=torch.where(mask_like(test, graph.y), 0, graph.y))
    assert train(other, settings(max_epochs=10)).record["temperature"] == temperature
    without = train(replace(graph, test_mask=None), settings(max_epochs=10)).record
    assert without["calibration"]["test_after"] is None


def mask_like(mask: Tensor, y: Tensor) -> Tensor:
    return mask if y.dim() == 1 else mask[:, None].expand_as(y)
