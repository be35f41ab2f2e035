"""Trainings in several threads: each gives the model that it gives alone."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from lgcn.estimator import LGCNClassifier
from lgcn.graph import Graph, GraphSet
from lgcn.paper.baselines.planetoid.training import train_planetoid
from lgcn.training import Settings, cuda_graphs, train
from lgcn.training.models import find_model, model_names

from .training.graphs import digest, settings, small_graph
from .training.whole_graphs import some_graphs


@contextmanager
def somebody_drawing() -> Iterator[None]:
    """Another thread draws from torch's global generator, and seeds it, all the while."""
    done = threading.Event()

    def draw() -> None:
        number = 0
        while not done.wait(0.0002):
            torch.manual_seed(number)
            torch.rand(10)
            number += 1

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def data_for(config: Settings) -> Graph | GraphSet:
    """What the model predicts: the nodes of a graph, or whole graphs."""
    return some_graphs() if find_model(config.model.name).for_graphs else small_graph()


def in_threads(config: Settings, fits: int = 6) -> set[str]:
    """The hashes of the weights of trainings on the same data, in four threads."""
    graph = data_for(config)
    with ThreadPoolExecutor(4) as pool:
        return set(pool.map(lambda _: digest(train(graph, config).model), range(fits)))


SUBGRAPHS = {"training": "subgraph", "max_nodes": 60, "n_init": 10, "num_workers": 1}


@pytest.mark.parametrize(
    "given",
    [
        {},
        SUBGRAPHS,
        {"views": 2, "agreement": 1.0, "node_dropout": 0.3, "layer_dropout": 0.3},
        *({"model": model} for model in model_names() if model != "lgcn"),
    ],
    ids=str,
)
def test_trainings_of_one_seed_in_several_threads_give_one_model(given: dict[str, Any]) -> None:
    config = settings(**given, max_epochs=4)
    alone = digest(train(data_for(config), config).model)
    with somebody_drawing():
        assert in_threads(config) == {alone}


def test_fits_of_one_seed_in_several_threads_give_one_model() -> None:
    graph = small_graph()

    def fit(training: str) -> str:
        options = {"training": training, "max_nodes": 60, "max_epochs": 4, "hidden_channels": 8}
        return digest(LGCNClassifier(random_state=0, verbose=False, **options).fit(graph).model_)

    for training in ("whole", "subgraph"):
        alone = fit(training)
        with somebody_drawing(), ThreadPoolExecutor(4) as pool:
            assert set(pool.map(fit, [training] * 6)) == {alone}


@pytest.mark.parametrize("model", model_names())
def test_training_neither_reads_nor_changes_the_global_generator(model: str) -> None:
    config = settings(model=model, max_epochs=2)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = digest(train(data_for(config), config).model)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert digest(train(data_for(config), config).model) == first


def test_the_global_generator_is_everybody_elses_during_training() -> None:
    """A training that puts it back at its end would undo what others did meanwhile."""
    torch.manual_seed(5)
    expected = torch.rand(3)
    drawn: list[torch.Tensor] = []

    def on_epoch(state: Any) -> None:
        if state.epoch == 1:
            torch.manual_seed(5)
        drawn.append(torch.rand(1))

    train(small_graph(), settings(max_epochs=3), on_epoch=on_epoch)
    assert torch.equal(torch.cat(drawn), expected)
    torch.manual_seed(5)
    assert torch.equal(torch.rand(4)[3:], _after_training_with(3))


def _after_training_with(draws: int) -> torch.Tensor:
    """The next number of the global generator after a training whose callback drew some."""
    torch.manual_seed(5)
    config = settings(max_epochs=draws)
    train(small_graph(), config, on_epoch=lambda state: torch.rand(1))
    return torch.rand(1)


def test_planetoid_leaves_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    with ThreadPoolExecutor(2) as pool:
        records = list(
            pool.map(
                lambda _: train_planetoid(small_graph(), max_epochs=1, contexts_per_node=4),
                range(2),
            )
        )
    assert torch.equal(torch.get_rng_state(), before)
    scores = [(record["val_score"], record["test_score"]) for record in records]
    assert scores[0] == scores[1]


def test_what_cudnn_is_told_is_taken_back_by_the_last_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", False)
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with cuda_graphs._deterministic_convolutions:
            inside.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    with cuda_graphs._deterministic_convolutions:
        thread.start()
        assert inside.wait(10)
    assert torch.backends.cudnn.deterministic  # the other thread still needs it
    leave.set()
    thread.join()
    assert not torch.backends.cudnn.deterministic


@pytest.mark.gpu
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"capture": False},
        {"precision": "bfloat16"},
        {**SUBGRAPHS, "resample": False},
    ],
    ids=str,
)
def test_trainings_in_several_threads_of_a_gpu_give_one_model(given: dict[str, Any]) -> None:
    config = settings(**given, max_epochs=8, device="cuda", dropout=0.5)
    before = torch.cuda.get_rng_state()
    alone = train(small_graph(), config).model.cpu()
    assert digest(alone) == digest(train(small_graph(), config).model.cpu())
    graph = small_graph()
    with ThreadPoolExecutor(3) as pool:
        found = pool.map(lambda _: digest(train(graph, config).model.cpu()), range(6))
        assert set(found) == {digest(alone)}
    assert torch.equal(torch.cuda.get_rng_state(), before)
