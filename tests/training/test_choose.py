"""Which graphs are trained whole: decided by counts, for each kind of device."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from lgcn.graph import Graph
from lgcn.training import Settings, choose
from lgcn.training.choose import (
    LARGE_NODES,
    Known,
    describe,
    training_choice,
    whole_graph_work,
)
from lgcn.training.groups import SamplingSettings


def ring(num_nodes: int, hops: int = 1) -> Graph:
    """Each node is joined to the next ones."""
    nodes = torch.arange(num_nodes)
    edges = [torch.stack([nodes, nodes.roll(hop)]) for hop in range(1, hops + 1)]
    y = torch.arange(num_nodes) % 3
    everything = {"x": torch.ones(num_nodes, 2), "y": y, "train_mask": y >= 0, "val_mask": y >= 0}
    return replace(Graph.from_edge_index(torch.cat(edges, dim=1)), **everything)


def own(**given: Any) -> Settings:
    return Settings.create(dataset="tables", **{"labels": "few", "device": "cpu", **given})


def lgcn_work(settings: Settings, nodes: int, entries: int) -> float:
    """The work of a step by hand: 15 per value of a grid, 1 per selected entry, 1/2 per summed."""
    model = settings.model
    widths = [model.hidden_channels]
    for _ in range(model.num_layers):
        new = widths[-1] if model.cnn in ("shared", "depthwise") else model.lgcl_channels
        widths.append(widths[-1] + new)
    grids = sum(widths[:-1]) * nodes * (model.k + 1 + model.mean)
    selected = sum(widths[:-1]) * entries
    summed = selected * model.mean + widths[-1] * model.hops * entries
    return 15 * grids + selected + summed / 2


@pytest.mark.parametrize("labels", ["few", "many"])
def test_the_work_of_a_step(labels: str) -> None:
    settings = own(labels=labels)
    assert settings.model.work(1000, 20_000) == lgcn_work(settings, 1000, 20_000)


def test_work_counts_epochs_and_views() -> None:
    graph = ring(100)
    settings = own(max_epochs=7, views=3)
    assert whole_graph_work(graph, settings) == 21 * settings.model.work(100, 200)
    assert whole_graph_work(graph, own(views=3, max_steps=5)) == 15 * settings.model.work(100, 200)


# Nodes and entries of graphs that were trained whole before the work was limited, and of the graph
# of benchmarks/time_to_score.py.
STAY_WHOLE = {
    "amazon_computers": (13_752, 491_722),
    "debian_bookworm": (63_436, 633_838),
    "wordnet31": (117_791, 368_166),
}


@pytest.mark.parametrize("labels", ["few", "many"])
def test_known_graphs_stay_whole(labels: str) -> None:
    settings = own(labels=labels)
    passes = settings.optimisation.max_epochs * settings.optimisation.views
    for nodes, entries in STAY_WHOLE.values():
        assert passes * settings.model.work(nodes, entries) <= choose.WORK["cpu"]
    assert passes * settings.model.work(200_000, 3_800_000) > choose.WORK["cpu"]
    assert passes * settings.model.work(200_000, 3_800_000) < choose.WORK["cuda"]


def test_much_work_means_sub_graphs_and_few_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(5000, hops=3)
    settings = own(max_nodes=100)
    work = whole_graph_work(Known.of(graph), settings)
    monkeypatch.setitem(choose.WORK, "cpu", work)
    whole = settings.resolve(graph)
    assert whole.sampling.training == "whole"
    assert (whole.sampling.subgraphs_per_epoch, whole.evaluation.evaluate_on) == (None, "graph")
    monkeypatch.setitem(choose.WORK, "cpu", work - 1)
    parts = settings.resolve(graph)
    assert parts.sampling.training == "subgraph"
    assert parts.sampling.n_init == 100 // 10
    # A third of the work of 50 times as many nodes.
    assert parts.sampling.subgraphs_per_epoch == 50 // 3
    # Scoring all nodes is a third of a step on them with one view: as much as 8 of the 16 steps of
    # an epoch, which has two views. Twice that and a little is two epochs.
    assert (parts.evaluation.evaluate_on, parts.evaluation.evaluate_every) == ("graph", 2)
    assert parts.resolve(graph) is parts


def test_networks_that_diffuse_get_large_sub_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose.WORK, "cpu", 1)
    graph = ring(500)
    found = {labels: own(labels=labels).resolve(graph).sampling for labels in ("few", "many")}
    assert (found["few"].max_nodes, found["few"].n_init) == (20_000, 2000)
    assert found["few"].scored_nodes == "start"
    assert (found["many"].max_nodes, found["many"].n_init) == (2000, 50)
    assert found["many"].scored_nodes == "all"
    assert own(scored_nodes="all").resolve(graph).sampling.scored_nodes == "all"
    assert own(max_nodes=300).resolve(graph).sampling.max_nodes == 300


def test_graphs_scored_on_a_sample_are_scored_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose.WORK, "cpu", 1)
    monkeypatch.setattr(choose, "EVALUATED_VALUES", 1)
    found = own(max_nodes=100).resolve(ring(5000))
    assert (found.evaluation.evaluate_on, found.evaluation.evaluate_every) == ("sampled", 1)


def test_an_epoch_has_some_sub_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose.WORK, "cpu", 1)
    found = own(max_nodes=100).resolve(ring(5000))
    assert found.sampling.subgraphs_per_epoch == choose.FEWEST_SUBGRAPHS


def test_many_labels_get_clusters_with_a_halo_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose.WORK, "cuda", 1)
    monkeypatch.setattr("lgcn.graph.metis.has_metis", lambda: True)
    graph = ring(500)

    def sampling(**given: Any) -> SamplingSettings:
        return own(**{"labels": "many", "device": "cuda", **given}).resolve(graph).sampling

    found = sampling()
    assert (found.sampler, found.clusters, found.halo) == ("clusters", 20, 1)
    assert (found.max_nodes, found.n_init) == (20_000, None)
    assert sampling(sampler="bfs").sampler == "bfs"
    assert sampling(n_init=50).sampler == "bfs"
    assert sampling(labels="few").sampler == "bfs"
    monkeypatch.setattr(choose, "CLUSTER_MEMORY", 1)
    assert sampling().sampler == "bfs"
    monkeypatch.undo()
    monkeypatch.setitem(choose.WORK, "cuda", 1)
    monkeypatch.setattr("lgcn.graph.metis.has_metis", lambda: False)
    assert sampling().sampler == "bfs"


def test_stores_are_trained_as_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(500)
    store = Settings.create(dataset="store", device="cpu")
    tables = Settings.create(dataset="tables", device="cpu")
    for work in (10**12, 1):
        monkeypatch.setitem(choose.WORK, "cpu", work)
        assert store.resolve(graph).replace(dataset="tables") == tables.resolve(graph)


def test_given_settings_keep_their_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(choose.WORK, "cpu", 1)
    graph = ring(500)
    given = own(subgraphs_per_epoch=3, evaluate_every=1).resolve(graph)
    assert (given.sampling.subgraphs_per_epoch, given.evaluation.evaluate_every) == (3, 1)
    by_hand = own(training="subgraph").resolve(graph)
    assert (by_hand.sampling.subgraphs_per_epoch, by_hand.evaluation.evaluate_every) == (None, 1)


@pytest.mark.parametrize(
    ("name", "there", "kind"),
    [
        ("cpu", True, "cpu"),
        ("cuda:1", False, "cuda"),
        ("auto", True, "cuda"),
        ("auto", False, "cpu"),
    ],
)
def test_kinds_of_devices(
    name: str, there: bool, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert choose.device_kind(name) == kind


def test_the_first_line_says_what_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = ring(5000)
    settings = own()
    text = describe(graph, settings.resolve(graph), settings)
    assert "5,000 nodes" in text
    assert "2.0 neighbours on average, 2 features, 3 classes, 5,000 training nodes" in text
    assert text.endswith("on the whole graph")
    monkeypatch.setitem(choose.WORK, "cpu", 1)
    text = describe(graph, settings.resolve(graph), settings)
    assert (
        "sub-graphs of up to 20,000 nodes, because the whole graph would be slow on a CPU" in text
    )
    by_hand = own(training="subgraph")
    assert "because" not in describe(graph, by_hand.resolve(graph), by_hand)
    monkeypatch.setattr(choose, "WHOLE_GRAPH_VALUES", 1)
    assert "much memory" in describe(graph, settings.resolve(graph), settings)


def test_propagated_inputs_count_in_the_choice_of_the_whole_graph() -> None:
    """Their copies are as wide as the input, whatever the width of the network."""
    edges = torch.randint(0, 2000, (2, 4000), generator=torch.Generator().manual_seed(0))
    narrow = Graph.from_edge_index(edges, 2000, x=torch.rand(2000, 4))
    one_each = torch.arange(2001), torch.zeros(2000, dtype=torch.long), torch.ones(2000)
    x = torch.sparse_csr_tensor(*one_each, (2000, 40_000), check_invariants=True)
    wide = Graph.from_edge_index(edges, 2000, x=x)
    asked = Settings.create(dataset="tables", preset="propagated", device="cpu")
    plain = asked.replace(embedding="linear")
    assert asked.model.averages
    assert not plain.model.averages
    for settings, graph, expected in (
        (asked, narrow, "whole"),
        (asked, wide, "subgraph"),
        (plain, wide, "whole"),
    ):
        found = training_choice(Known.of(graph), settings.replace(k=8))
        assert found["training"] == expected
    sub = training_choice(Known.of(wide), asked)
    assert (sub["max_nodes"], sub["scored_nodes"]) == (LARGE_NODES, "start")
    work = [whole_graph_work(Known.of(wide), s.replace(max_steps=1)) for s in (plain, asked)]
    assert work[1] > 50 * work[0]
