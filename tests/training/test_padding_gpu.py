"""Steps on padded sub-graphs on a GPU: replayed, and equal to those that are not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import Graph, load_dataset
from lgcn.training import Settings, loop, padding
from lgcn.training.step import Step

from .graphs import small_graph
from .padded import NETWORKS, gradients, training_on, without_dropout

pytestmark = pytest.mark.gpu


def epochs_on_gpu(graph: Graph, chosen: Settings) -> tuple[list[float], Step, str]:
    """The losses of the steps of three epochs, and what is said about them."""
    data, model, _, loader, step = training_on(graph, chosen, torch.device("cuda"))
    model.train()
    losses = []
    for epoch in (1, 2, 3):
        step.begin_epoch(epoch)
        for batch in step.batches(loader, epoch):
            loss = step(batch)
            if loss is not None:  # a copy: the next replay overwrites it
                losses.append(loss.clone())
    return torch.stack(losses).tolist(), step, data.describe(chosen)


def is_replayed(step: Step) -> bool:
    return step._padded is not None and step._padded[1].capture.replay is not None


def assert_replays_are_exact(graph: Graph, given: dict[str, Any]) -> Step:
    """Without learning: otherwise a rounding can make a step of Adam go the other way."""
    given = {**given, "device": "cuda", "lr": 0.0}
    replayed, step, said = epochs_on_gpu(graph, without_dropout(**given))
    eager, other, _ = epochs_on_gpu(graph, without_dropout(**given, capture=False))
    assert is_replayed(step)
    assert "each step is a CUDA graph" in said
    assert not is_replayed(other)
    assert replayed == pytest.approx(eager, rel=1e-4)
    for one, two in zip(gradients(step), gradients(other), strict=True):
        assert one is not None
        assert two is not None
        scale = float(two.abs().max())  # convolutions round to ten bits
        torch.testing.assert_close(one, two, rtol=1e-2, atol=1e-3 * scale + 1e-6)
    return step


@pytest.mark.parametrize("name", NETWORKS)
def test_replayed_steps_on_changing_subgraphs_are_the_eager_ones(name: str) -> None:
    given = {**NETWORKS[name], "max_nodes": 300, "n_init": 20}
    graph = load_dataset("digits")
    assert_replays_are_exact(graph, given)
    runs = [
        epochs_on_gpu(graph, without_dropout(**given, device="cuda", num_workers=workers))
        for workers in (1, 2)
    ]
    assert runs[0][0][-1] < runs[0][0][0]
    if name == "gcn":  # PyG adds with atomics
        assert runs[0][0] == pytest.approx(runs[1][0], rel=1e-2)
        return
    assert runs[0][0] == runs[1][0]
    weights = [step.model.state_dict().values() for _, step, _ in runs]
    for one, two in zip(*weights, strict=True):
        assert torch.equal(one, two)


@pytest.mark.parametrize("name", ["defaults", "gcn"])
def test_steps_on_sparse_features_are_replayed(name: str) -> None:
    graph = load_dataset("digits")
    assert graph.x is not None
    sparse = replace(graph, x=graph.x.to_sparse_csr())
    assert_replays_are_exact(sparse, {**NETWORKS[name], "max_nodes": 300, "n_init": 20})


def test_steps_on_long_rows_are_replayed() -> None:
    """With a hub that has more neighbours than one program takes."""
    nodes = 4000
    rng = np.random.default_rng(0)
    leaves = np.stack([np.zeros(nodes - 1, np.int64), np.arange(1, nodes)])
    edges = np.concatenate([leaves, rng.integers(0, nodes, (2, 3 * nodes))], axis=1)
    graph = Graph.from_edge_index(
        torch.from_numpy(edges),
        nodes,
        x=torch.from_numpy(rng.normal(size=(nodes, 16))).float(),
        y=torch.from_numpy(rng.integers(0, 3, nodes)),
        train_mask=torch.arange(nodes) % 20 == 0,
        val_mask=torch.arange(nodes) % 20 == 1,
    )
    step = assert_replays_are_exact(graph, {"max_nodes": 3000, "n_init": 40})
    assert step._padded is not None
    assert step._padded[0].sizes.degree > padding.LONGEST_COLUMN


def test_steps_in_bfloat16_are_replayed() -> None:
    given = {**NETWORKS["batch norm"], "max_nodes": 300, "n_init": 20, "precision": "bfloat16"}
    given |= {"device": "cuda", "lr": 0.0}
    graph = load_dataset("digits")
    replayed, step, _ = epochs_on_gpu(graph, without_dropout(**given))
    eager, _, _ = epochs_on_gpu(graph, without_dropout(**given, capture=False))
    assert is_replayed(step)
    assert replayed == pytest.approx(eager, rel=3e-2)


def test_a_replayed_epoch_does_not_wait_for_the_device() -> None:
    chosen = without_dropout(device="cuda", max_nodes=300, n_init=20)
    _, model, _, loader, step = training_on(load_dataset("digits"), chosen, torch.device("cuda"))
    for epoch in (1, 2):
        loop._train_epoch(model, step, loader, epoch)
    torch.cuda.set_sync_debug_mode("error")
    try:
        loss, steps, _ = loop._train_epoch(model, step, loader, 3)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert steps > 1
    assert bool(loss.isfinite())


def test_sizes_that_grow_are_captured_anew() -> None:
    graph = load_dataset("digits")
    losses, captured = [], set()
    for capture in (True, False):
        chosen = without_dropout(device="cuda", max_nodes=200, n_init=20, lr=0.0, capture=capture)
        _, model, _, _, step = training_on(graph, chosen, torch.device("cuda"))
        step.begin_epoch(1)
        model.train()
        found = []
        for size in [100] * 4 + [900] * 4 + [300] * 2:
            loss = step(graph.subgraph(torch.arange(size)))
            assert loss is not None
            found.append(loss.clone())
            if is_replayed(step):
                assert step._padded is not None
                captured.add(step._padded[0].sizes)
        losses.append(torch.stack(found).tolist())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert len(captured) == 2


def test_dropout_draws_new_numbers_in_each_replay_and_the_same_for_a_seed() -> None:
    graph = load_dataset("digits")
    given = {"training": "subgraph", "max_nodes": 300, "n_init": 20, "device": "cuda", "lr": 0.0}
    chosen = Settings.create(**given, resample=True)
    first, step, _ = epochs_on_gpu(graph, chosen)
    again, _, _ = epochs_on_gpu(graph, chosen)
    other, _, _ = epochs_on_gpu(graph, Settings.create(**given, seed=1))
    assert is_replayed(step)
    assert first == again
    assert first != other
    _, model, _, loader, step = training_on(graph, chosen, torch.device("cuda"))
    model.train()
    step.begin_epoch(1)
    batch = loader.batch(1, 0)
    same = [loss.item() for loss in map(step, [batch] * 6) if loss is not None]
    assert len(set(same)) == 6


def test_why_steps_are_not_replayed_is_said() -> None:
    chosen = without_dropout(device="cuda", capture=False)
    data, *_ = training_on(small_graph(), chosen, torch.device("cuda"))
    assert data.describe(chosen).endswith("not CUDA graphs, because capture=false")
