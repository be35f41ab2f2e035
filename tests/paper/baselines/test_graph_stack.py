"""What holds for every baseline that classifies whole graphs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph, load_graphs, train
from lgcn.paper.baselines.graph_stack import GraphStack, Perceptron, check_choice
from lgcn.paper.systems import SYSTEMS
from lgcn.training import Run, Settings
from lgcn.training.graph_scores import score_graphs
from lgcn.training.groups import ModelSettings
from lgcn.training.models import find_model, model_names, network_class
from tests.training.whole_graphs import some_graphs

from .checks import a_reset_draws_all_weights, parameters, sparse_features_equal_dense_ones
from .whole_graphs import FEATURES, features, in_use, side_by_side, some_batch, some_graph

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "gin": [{}, {"readout": "mean", "train_eps": False}],
    "graphsage": [{"aggregator": name} for name in ("mean", "max", "sum")],
    "dgcnn": [{"readout_k": 10}],
    "structure_blind": [{"variant": name} for name in ("fingerprint", "multiset")],
    "patchy_san": [
        {"labelling": name, "width": 12, "field": 4} for name in ("betweenness", "degree", "wl")
    ],
    "diffpool": [
        {"pool_clusters": 5, "embedding_channels": 7},
        {"pool_clusters": 3, "num_layers": 1},
    ],
}
CASES = [(name, options) for name in OPTIONS for options in OPTIONS[name]]
every_network = pytest.mark.parametrize(("name", "options"), CASES, ids=str)


def network(name: str, **options: Any) -> GraphStack:
    torch.manual_seed(0)
    small = {"hidden_channels": 6, "num_layers": 2}
    model = in_use(network_class(name)(FEATURES, 3, **{**small, **options}))
    assert isinstance(model, GraphStack)
    return model


def test_these_are_all_of_them() -> None:
    own = [n for n in model_names() if find_model(n).network.startswith("lgcn.paper")]
    found = {n for n in own if issubclass(network_class(n), GraphStack)}
    assert found == OPTIONS.keys()
    for name in found:
        assert find_model(name).for_graphs
        assert find_model(name).preset == name
        assert SYSTEMS[name].settings == {"preset": name}
    assert [SYSTEMS[name].title for name in OPTIONS] == [
        "GIN",
        "GraphSAGE with read-out",
        "DGCNN",
        "structure-blind baseline",
        "PATCHY-SAN",
        "DiffPool",
    ]


@pytest.mark.parametrize("name", OPTIONS)
def test_the_defaults_of_settings_and_network_agree(name: str) -> None:
    made: ModelSettings = find_model(name).settings(name=name)
    assert made.options() == network_class(name).__init__.__kwdefaults__  # type: ignore[misc]


@every_network
@settings(max_examples=10)
@given(sizes=st.lists(st.integers(0, 14), min_size=1, max_size=5), seed=st.integers(0, 99))
def test_a_batch_gives_the_rows_of_its_graphs_alone(
    name: str, options: dict[str, Any], sizes: list[int], seed: int
) -> None:
    graph, model = some_batch(*sizes, seed=seed), network(name, **options)
    out = model(features(graph), graph)
    assert out.shape == (len(sizes), 3)
    alone = [model(features(one), one) for one in graph.separate()]  # without ptr
    torch.testing.assert_close(out, torch.cat(alone), rtol=1e-4, atol=1e-5)


@every_network
def test_the_order_of_nodes_does_not_matter(name: str, options: dict[str, Any]) -> None:
    model, graph = network(name, **options), some_graph(13)
    order = torch.randperm(13)
    edges = order.argsort()[graph.edge_index]
    other = Graph.from_edge_index(edges, 13, x=features(graph)[order])
    torch.testing.assert_close(model(features(other), other), model(features(graph), graph))


@every_network
def test_graphs_without_nodes_or_edges(name: str, options: dict[str, Any]) -> None:
    loose = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 3, x=torch.ones(3, FEATURES))
    none = Graph.from_edge_index(torch.empty(2, 0, dtype=torch.long), 0, x=torch.ones(0, FEATURES))
    model = network(name, **options)
    for graphs in ([none], [loose], [none, loose, none], [loose, some_graph(4), none]):
        batch = side_by_side(graphs)
        for training in (True, False):
            model.train(training).zero_grad()
            out = model(features(batch), batch)
            assert out.shape == (len(graphs), 3)
            out.square().sum().backward()
            gradients = [p.grad for p in model.parameters() if p.grad is not None]
            assert all(one.isfinite().all() for one in (out, *gradients))


@every_network
def test_no_graphs_have_no_scores(name: str, options: dict[str, Any]) -> None:
    none = replace(some_graph(0), ptr=torch.tensor([0]))
    assert network(name, **options)(features(none), none).shape == (0, 3)


@every_network
def test_sparse_features(name: str, options: dict[str, Any]) -> None:
    sparse_features_equal_dense_ones(network(name, **options), some_batch(9, 0, 12, 1))


@every_network
def test_reset_gradients_and_first_layer(name: str, options: dict[str, Any]) -> None:
    model = network(name, **options).train()
    graph = some_batch(12, 15, 11, 13)
    model(features(graph), graph).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    reads = [p for p in model.first_layer.parameters() if p.dim() > 1]
    assert any(p.size(-1) == FEATURES for p in reads)
    assert a_reset_draws_all_weights(model)


@every_network
def test_the_classifier_sees_the_embeddings(name: str, options: dict[str, Any]) -> None:
    model, graph = network(name, **options), some_batch(9, 12)
    embedded = model.embed(features(graph), graph)
    assert embedded.shape[0] == 2
    torch.testing.assert_close(model.classifier(embedded), model(features(graph), graph))


@every_network
def test_dropout_is_for_training_alone(name: str, options: dict[str, Any]) -> None:
    # Wide, so that it is unlikely that both passes lose the same features.
    model = network(name, **options, dropout=0.5, hidden_channels=32)
    graph = some_batch(9, 12, 11)

    def passes() -> tuple[torch.Tensor, ...]:
        return tuple(model.classifier(model.embed(features(graph), graph)) for _ in range(2))

    assert torch.equal(*passes())
    model.classifier.train()
    assert not torch.equal(*passes())


def test_a_perceptron_is_two_linear_maps() -> None:
    layer, x = Perceptron(4, 6, 2, dropout=0.9).eval(), torch.randn(3, 4)
    hidden = (x @ layer.hidden.weight.t() + layer.hidden.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), hidden @ layer.out.weight.t() + layer.out.bias)


def test_a_wrong_choice_is_named() -> None:
    with pytest.raises(ValueError, match="size must be one of s, m, got 'l'"):
        check_choice("size", "l", ("s", "m"))


@pytest.mark.parametrize("name", OPTIONS)
def test_no_layers_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="num_layers must be at least 1, got 0"):
        network(name, num_layers=0)


@every_network
def test_a_few_epochs_lower_the_loss(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    given = {"hidden_channels": 16, "num_layers": 2, "lr": 0.003, "max_epochs": 4, "device": "cpu"}
    config = Settings.create(model=name, **{**given, **options, "graphs_per_batch": 8})
    result = train(some_graphs(), config, out=tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "result.json").read_text())
    losses = [epoch["train_loss"] for epoch in stored["history"]]
    assert losses[-1] < losses[0]
    loaded, _, _ = Run(tmp_path / "run").load_model()
    graphs = some_graphs(10)
    torch.testing.assert_close(score_graphs(loaded, graphs), score_graphs(result.model, graphs))
    assert result.record["parameters"] == parameters(loaded)


@pytest.mark.usefixtures("data_root")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("gin", {"lr": 0.01}),
        ("graphsage", {"lr": 0.003, "aggregator": "sum"}),
        ("dgcnn", {"lr": 0.003}),
        ("structure_blind", {"lr": 0.003}),
        ("patchy_san", {"lr": 0.003, "width": 18}),
        ("diffpool", {"lr": 0.003, "pool_clusters": 7}),
    ],
)
def test_molecules_are_learned(name: str, given: dict[str, Any]) -> None:
    graphs = load_graphs("MUTAG")
    part = torch.from_numpy(np.random.default_rng(0).permutation(188))
    graphs = graphs.with_targets(train_mask=part < 120, val_mask=part >= 120, test_mask=part < 0)
    config = Settings.create(dataset="MUTAG", model=name, **given, max_epochs=15, device="cpu")
    assert train(graphs, config).record["val_score"] > 0.72  # the larger class has 0.69


def write_rings(folder: Path) -> None:
    """Rings with a chord or without in TU's layout; without, all nodes have the degree 2."""
    folder.mkdir()
    ends, owner, labels, first = [], [], [], 1
    for number in range(30):
        size, chord = 5 + number % 4, number % 2
        pairs = [(i, (i + 1) % size) for i in range(size)] + [(0, 2)] * chord
        ends += [f"{first + a}, {first + b}" for a, b in pairs]
        owner += [str(number + 1)] * size
        labels.append(str(chord))
        first += size
    for part, rows in (("A", ends), ("graph_indicator", owner), ("graph_labels", labels)):
        (folder / f"RINGS_{part}.txt").write_text("\n".join(rows) + "\n")


@pytest.mark.parametrize("name", OPTIONS)
def test_the_command_line_trains_and_predicts(lgcn_: Any, empty_folder: Path, name: str) -> None:
    write_rings(empty_folder / "RINGS")
    output = lgcn_(
        *("train", "--graphs", "RINGS", "--set", f"model={name}", "--set", "max_epochs=2"),
        *("--set", "hidden_channels=8", "--out", "run", "--json"),
    )
    assert output.code == 0, output.err
    assert output.json["model"] == name
    _, chosen, _ = Run(empty_folder / "run").load_model()
    assert chosen.structural_features == ("degree" if name == "structure_blind" else "auto")
    output = lgcn_("predict", "run", "--output", "p.csv")
    assert output.code == 0, output.err
    assert "30 predictions" in output.out
