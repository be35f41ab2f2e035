"""A step on several sub-graphs is a step on all of them side by side."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.nn import Module

from lgcn import SubgraphLoader, load_dataset
from lgcn.graph import Graph
from lgcn.nn import LGCN
from lgcn.training import Settings
from lgcn.training.model_spec import ModelSpec
from lgcn.training.setup import make_optimizer
from lgcn.training.shared_step import SharedStep, Unit
from lgcn.training.step import Step
from lgcn.utils.generators import Generators
from lgcn.workers import Workers

CPU = torch.device("cpu")
PLAIN = {"dropout": 0.0, "input_dropout": 0.0, "node_dropout": 0.0, "layer_dropout": 0.0}


@pytest.fixture(scope="module")
def graphs() -> list[Graph]:
    graph = load_dataset("synthetic", num_nodes=300, num_features=4, labels_per_class=10)
    loader = SubgraphLoader(graph, n_init=6, max_nodes=40, scored_nodes="start", num_workers=0)
    return [replace(batch, degree=None) for batch in loader.epoch(0)][:3]


def settings(**given: Any) -> Settings:
    values: dict[str, Any] = {"dataset": "tables", "device": "cpu", "hidden_channels": 8, "k": 4}
    return Settings.create(**{**values, "input_scale": 1.0, **PLAIN, **given})


def after_step(graphs: list[Graph], chosen: Settings, *, shared: bool) -> tuple[float, Module]:
    torch.manual_seed(0)
    model = ModelSpec.of(graphs[0], chosen).build(chosen).train()
    optimizer, generators = make_optimizer(model, chosen), Generators("cpu")
    if shared:
        step: Step = SharedStep(model, optimizer, chosen, CPU, generators, Workers())
        source: Any = [Unit(number, graph) for number, graph in enumerate(graphs)]
    else:
        step = Step(model, optimizer, chosen, CPU, False, generators)
        source = Graph.concat(graphs)
    step.begin_epoch(50)
    loss = step(source)
    assert loss is not None
    return float(loss), model


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", ["few", "many"])
def test_it_is_the_step_on_all_sub_graphs_together(
    graphs: list[Graph], labels: str, weighted: bool
) -> None:
    chosen = settings(labels=labels, batch_norm="none")
    if weighted:
        graphs = [
            replace(graph, sample_weight=torch.rand(graph.num_nodes) + 0.1) for graph in graphs
        ]
    loss, model = after_step(graphs, chosen, shared=True)
    wanted, other = after_step(graphs, chosen, shared=False)
    assert loss == pytest.approx(wanted, rel=1e-5)
    # Gradients, because Adam's first step does not depend on their size.
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert one.grad is not None
        assert two.grad is not None
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-6)


def test_the_extra_loss_of_a_network_is_that_of_all_sub_graphs_together(
    graphs: list[Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def take_extra_loss(model: Module) -> torch.Tensor:
        x = graphs[len(taken)].x if len(taken) < len(graphs) else Graph.concat(graphs).x
        assert x is not None
        taken.append((x @ next(model.parameters()).sum(1, keepdim=True)[: x.size(1)]).square())
        return taken[-1].mean()  # of the nodes

    chosen = settings(labels="many", batch_norm="none")
    plain = after_step(graphs, chosen, shared=False)[0]
    monkeypatch.setattr(LGCN, "take_extra_loss", take_extra_loss, raising=False)
    loss, model = after_step(graphs, chosen, shared=True)
    wanted, other = after_step(graphs, chosen, shared=False)
    assert [len(one) for one in taken] == [*(g.num_nodes for g in graphs), len(taken[-1])]
    assert loss == pytest.approx(wanted, rel=1e-5)
    assert wanted == pytest.approx(plain + float(taken[-1].mean().detach()), rel=1e-5)
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one.grad, two.grad, rtol=1e-4, atol=1e-6)


def test_running_statistics_are_the_mean_over_the_sub_graphs(graphs: list[Graph]) -> None:
    chosen = settings(labels="many", num_layers=1)
    each = [after_step([graph], chosen, shared=True)[1] for graph in graphs]
    _, model = after_step(graphs, chosen, shared=True)
    names = [name for name, _ in model.named_buffers() if "running" in name]
    assert names
    for name in names:
        mean = torch.stack([one.get_buffer(name) for one in each]).mean(0)
        torch.testing.assert_close(model.get_buffer(name), mean)
    assert int(model.get_buffer("norms.0.num_batches_tracked")) == 1


def test_a_sub_graph_draws_by_its_own_number(graphs: list[Graph]) -> None:
    chosen = settings(dropout=0.5)
    first = after_step(graphs[:1], chosen, shared=True)[0]
    again = after_step(graphs[:1], chosen, shared=True)[0]
    assert first == again

    torch.manual_seed(0)
    model = ModelSpec.of(graphs[0], chosen).build(chosen).train()
    optimizer = make_optimizer(model, chosen)
    step = SharedStep(model, optimizer, chosen, CPU, Generators("cpu"), Workers())
    step.begin_epoch(50)
    assert float(step([Unit(7, graphs[0])]) or 0) != first


def test_a_step_without_training_nodes_changes_nothing(graphs: list[Graph]) -> None:
    chosen = settings()
    nobody = torch.zeros(graphs[0].num_nodes, dtype=torch.bool)
    empty = replace(graphs[0], train_mask=nobody)
    model = ModelSpec.of(empty, chosen).build(chosen)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    optimizer = make_optimizer(model, chosen)
    step = SharedStep(model, optimizer, chosen, CPU, Generators("cpu"), Workers())
    step.begin_epoch(1)
    assert step([Unit(0, empty)]) is None
    assert step([]) is None
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
