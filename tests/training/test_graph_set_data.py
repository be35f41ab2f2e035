"""Training on whole graphs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lgcn import train
from lgcn.errors import UsageError
from lgcn.graph import Graph, GraphSet
from lgcn.training.graph_scores import score_graphs
from lgcn.training.graph_set_data import GraphSetData, without_edges
from lgcn.training.model_spec import ModelSpec
from lgcn.training.settings import Settings
from tests.training.whole_graphs import forget, register, settings, some_graphs


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register()
    yield
    forget()


def test_graphs_are_learned_by_the_loop_that_trains_on_nodes(tmp_path: Path) -> None:
    result = train(some_graphs(), settings(), out=tmp_path / "run")
    assert result.record["val_score"] > 0.9
    assert result.record["steps"] == 15  # one batch of 30 graphs per epoch
    assert result.spec.unit == "graph"
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["unit"] == "graph"
    assert metrics["splits"]["val"]["nodes"] == 15
    assert metrics["baselines"]["features"] is not None
    with np.load(tmp_path / "run" / "split.npz") as split:
        assert split["train"].sum() == 30


def test_scores_are_those_of_one_graph_after_the_other() -> None:
    graphs = some_graphs(20)
    result = train(graphs, settings(max_epochs=3))
    found = score_graphs(result.model, graphs)
    for number in range(20):
        one = graphs.select([number]).graph
        with torch.no_grad():
            expected = result.model(one.features(), one)
        torch.testing.assert_close(found[number : number + 1], expected)
    embedded = score_graphs(result.model, graphs, embed=True)
    assert embedded.shape == (20, settings().model.hidden_channels)


def test_the_same_seed_gives_the_same_weights() -> None:
    graphs = some_graphs()
    one, two, other = (
        train(graphs, settings(seed=seed, dropout=0.2, max_epochs=4)).model.state_dict()
        for seed in (1, 1, 2)
    )
    for name, value in one.items():
        assert torch.equal(value, two[name])
    assert any(not torch.equal(value, other[name]) for name, value in one.items())


def test_a_run_resumes_to_the_same_end(tmp_path: Path) -> None:
    graphs = some_graphs()
    whole = train(graphs, settings(max_epochs=6, dropout=0.2)).model.state_dict()
    out = tmp_path / "run"

    def stop(state: Any) -> None:
        if state.epoch == 3:
            signal_all()

    def signal_all() -> None:
        import os
        import signal

        os.kill(os.getpid(), signal.SIGINT)

    from lgcn.errors import TrainingInterrupted

    with pytest.raises(TrainingInterrupted, match="after epoch"):
        train(graphs, settings(max_epochs=6, dropout=0.2), out=out, on_epoch=stop)
    resumed = train(graphs, settings(max_epochs=6, dropout=0.2), out=out, resume=True)
    for name, value in resumed.model.state_dict().items():
        assert torch.equal(value, whole[name])


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_other_kinds_of_labels_are_learned(task: str) -> None:
    graphs = some_graphs()
    y = graphs.y
    assert y is not None
    labels = torch.stack([y, 1 - y], 1).float() if task == "multilabel" else 3.0 * y + 1
    graphs = graphs.with_targets(y=labels.float(), label_names=None)
    result = train(graphs, settings(max_epochs=30, lr=0.01))
    assert result.spec.task == task
    assert result.record["val_score"] > 0.5


def test_views_can_agree_on_graphs() -> None:
    result = train(some_graphs(), settings(views=2, agreement=1.0, dropout=0.3, max_epochs=5))
    assert result.record["epochs"] == 5


def test_weights_of_classes_and_graphs_count_in_the_loss() -> None:
    graphs = some_graphs()
    plain = train(graphs, settings(max_epochs=2)).model.state_dict()
    heavy = train(graphs, settings(max_epochs=2, class_weight={"yes": 9.0})).model.state_dict()
    weighted = graphs.with_targets(sample_weight=torch.linspace(0, 1, len(graphs)))
    by_graph = train(weighted, settings(max_epochs=2)).model.state_dict()
    for other in (heavy, by_graph):
        assert any(not torch.equal(value, other[name]) for name, value in plain.items())


def test_nodes_without_features_get_some_from_their_edges() -> None:
    graphs = some_graphs().with_graph(x=None)
    data = GraphSetData(graphs, settings())
    assert data.spec.structure is not None
    assert data.spec.structure.positions == "none"
    assert data.spec.num_features == data.graphs.num_features > 0
    stored = ModelSpec.from_dict(json.loads(json.dumps(_as_dict(data.spec))))
    again = stored.prepare_graphs(graphs.select([4, 2]))
    assert again.graph.x is not None
    assert data.graphs.graph.x is not None
    # What a graph gets does not depend on the graphs beside it.
    torch.testing.assert_close(again.graph.x, data.graphs.select([4, 2]).graph.x)


def _as_dict(spec: ModelSpec) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(spec)


def test_features_are_scaled_by_the_training_graphs_alone() -> None:
    graphs = some_graphs()
    x = graphs.graph.features().clone()
    x[int(graphs.ptr[30]) :] *= 1000
    changed = graphs.with_graph(x=x)
    scales = [
        GraphSetData(one, settings(input_scale=None)).settings.model.input_scale
        for one in (graphs, changed)
    ]
    assert scales[0] == scales[1]


def test_simple_models_see_sizes_and_mean_features() -> None:
    graphs = some_graphs(5)
    found = without_edges(graphs).x
    assert found is not None
    for number in range(5):
        one = graphs.select([number]).graph
        expected = [np.log1p(one.num_nodes), np.log1p(one.num_edges), *one.features().mean(0)]
        np.testing.assert_allclose(found[number].numpy(), expected, rtol=1e-5)


def test_a_graph_without_nodes_and_one_without_edges_are_scored() -> None:
    graphs = some_graphs()
    bare = Graph(
        torch.zeros(4, dtype=torch.long),
        torch.empty(0, dtype=torch.long),
        x=torch.randn(3, 4),
        ptr=torch.tensor([0, 0, 3]),
    )
    more = GraphSet.create(bare, y=torch.tensor([0, 1]), ids=["none", "loose"])
    masks = {key: torch.zeros(2, dtype=torch.bool) for key in ("train_mask", "val_mask")}
    more = more.with_targets(test_mask=torch.ones(2, dtype=torch.bool), **masks)
    both = GraphSet.concat([graphs, more.with_targets(label_names=("no", "yes"))])
    result = train(both, settings(max_epochs=2))
    assert torch.isfinite(score_graphs(result.model, both)).all()


def test_a_batch_has_at_most_so_many_graphs_and_nodes() -> None:
    data = GraphSetData(some_graphs(), settings(graphs_per_batch=8, nodes_per_batch=30))
    batches = list(data.loader().epoch(1))
    assert sum(len(batch) for batch in batches) == 30
    assert all(len(batch) <= 8 and batch.num_nodes <= 30 for batch in batches)
    assert "60 graphs of" in data.describe(settings())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"train_mask": None}, "no train graphs"),
        ({"val_mask": None}, "no val graphs"),
        ({"y": None}, "no labels"),
        ({"y": torch.full((60,), -1)}, "graphs without a label"),
    ],
)
def test_what_training_needs_is_said(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        train(some_graphs().with_targets(**change), settings())


def test_models_of_nodes_and_of_graphs_are_not_confused() -> None:
    with pytest.raises(UsageError, match=r"model=lgcn predicts nodes.*use model=.*sums"):
        train(some_graphs(), Settings.create())
    graphs = some_graphs()
    one = replace(graphs.graph, y=torch.zeros(graphs.num_nodes, dtype=torch.long), ptr=None)
    with pytest.raises(UsageError, match="model=sums predicts whole graphs"):
        train(one, settings())
    with pytest.raises(UsageError, match="predicts nodes, got 60 whole graphs"):
        train(graphs, Settings.create(model="boosting"))


def test_coordinates_of_nodes_are_refused() -> None:
    with pytest.raises(UsageError, match="positions=learnt is for one graph"):
        train(some_graphs(), settings(positions="learnt"))


def test_one_class_and_one_graph_are_said() -> None:
    one = some_graphs().select([0])
    with pytest.raises(UsageError, match="no val graphs"):
        train(one, settings())
