"""Training on a graph in parts: what is checked, what is weighed, and how nodes are scored."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn import Graph, load_dataset, write_store
from lgcn.errors import UsageError
from lgcn.inference import predict
from lgcn.partition import Partition, open_partition, write_partition
from lgcn.training import Settings, train
from lgcn.training.partition_data import PartitionData
from lgcn.training.shared_data import SharedData
from lgcn.training.weights import training_graph
from lgcn.workers import Workers

Cut = Callable[..., Partition]
SMALL = {"max_epochs": 3, "device": "cpu", "num_workers": 0, "hidden_channels": 8}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load_dataset(
        "synthetic", num_nodes=300, num_features=4, labels_per_class=10, num_val=100
    )


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    def make(graph: Graph, parts: int = 3) -> Partition:
        write_store(tmp_path / "store", graph, overwrite=True)
        options: dict[str, Any] = {"method": "hash", "overwrite": True}
        write_partition(tmp_path / "store", tmp_path / "parts", parts, **options)
        return open_partition(tmp_path / "parts")

    return make


def settings(**given: Any) -> Settings:
    return Settings.create(**{"dataset": "partition", **SMALL, **given})


def test_the_final_scores_are_those_of_the_whole_graph(graph: Graph, cut: Cut) -> None:
    result = train(cut(graph), settings(evaluate_on="graph"))

    logits = predict(result.model, graph)
    for split in ("val", "test"):
        mask = graph.mask(split)
        assert mask is not None
        assert graph.y is not None
        right = (logits.argmax(1) == graph.y)[mask].double().mean()
        assert result.record[f"{split}_score"] == pytest.approx(float(right))
    best = result.history[result.record["best_epoch"] - 1]
    assert best["val_score"] == pytest.approx(result.record["val_score"])


def test_a_regression_is_standardised_by_all_parts(graph: Graph, cut: Cut) -> None:
    assert graph.y is not None
    numbers = replace(graph, y=graph.y.double() * 3 + 5, label_names=None)
    assert numbers.y is not None
    result = train(cut(numbers), settings())

    targets = numbers.y[numbers.train_mask]
    assert result.spec.target_mean == pytest.approx(float(targets.mean()))
    assert result.spec.target_scale == pytest.approx(float(targets.std(correction=0)))
    assert result.record["interval"]["half_width"] > 0


def test_class_weights_are_those_of_the_whole_graph(graph: Graph, cut: Cut) -> None:
    assert graph.train_mask is not None
    unequal = replace(graph, train_mask=graph.train_mask & (torch.arange(300) % 4 != 0))
    chosen = settings(class_weight="balanced")
    data = PartitionData(cut(unequal), chosen, Workers())
    wanted = training_graph(unequal, data.settings, data.spec).sample_weight
    assert wanted is not None

    ratios = []
    for shard in data.shards:
        part = data._training_graph(shard)
        nodes = part.train_mask.nonzero().squeeze(1)
        ratios.append(part.sample_weight[nodes] / wanted[part.n_id[nodes]])
    every = torch.cat(ratios)  # a step divides by the sum, so that one factor does not matter
    torch.testing.assert_close(every, every[:1].expand_as(every))


def test_a_part_without_training_nodes_has_no_sub_graphs(graph: Graph, cut: Cut) -> None:
    partition = cut(graph)
    owned = partition.shard(0).graph.n_id[: partition.shard(0).num_owned]
    assert graph.train_mask is not None
    mask = graph.train_mask.clone()
    mask[owned] = False  # parts by hash depend on the numbers of nodes only

    result = train(cut(replace(graph, train_mask=mask)), settings())

    assert result.record["epochs"] == 3
    assert result.history[-1]["train_loss"] > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"training": "whole"}, "training must be subgraph .* got whole"),
        ({"sampler": "walks", "max_hops": 2}, "sampler must be bfs .* got walks"),
        ({"start_nodes": "degree"}, "start_nodes must be uniform .* got degree"),
        ({"evaluate_on": "subgraph"}, "evaluate_on must be graph or sampled .* got subgraph"),
        ({"subgraphs_per_step": 2}, "subgraphs_per_step must be 3.* got 2"),
        ({"structural_features": "yes"}, "structural_features .* whole graph"),
        ({"model": "boosting"}, "model=boosting needs the whole graph, got 3 parts"),
    ],
)
def test_what_needs_the_whole_graph_is_refused(
    graph: Graph, cut: Cut, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        train(cut(graph), settings(**given))


def test_a_metric_that_validation_nodes_cannot_give_is_refused(graph: Graph, cut: Cut) -> None:
    assert graph.val_mask is not None
    one_class = replace(graph, val_mask=graph.val_mask & (graph.y == 0))
    with pytest.raises(UsageError, match=r"metric=roc_auc cannot be computed: .* class"):
        train(cut(one_class), settings(metric="roc_auc"))


def test_separate_graphs_are_refused(graph: Graph, cut: Cut) -> None:
    nobody = torch.zeros(graph.num_nodes, dtype=torch.bool)
    trained = replace(graph, train_mask=~nobody, val_mask=nobody, test_mask=nobody)
    scored = replace(graph, train_mask=nobody)
    with pytest.raises(UsageError, match="separate graphs"):
        train(cut(Graph.concat([trained, scored])), settings())


class _Several(Workers):
    """Ranks that all say the same."""

    def collect(self, message: Any, what: str) -> list[Any]:
        return [message] * self.size


def test_more_workers_than_parts_are_refused(graph: Graph, cut: Cut) -> None:
    with pytest.raises(UsageError, match=r"3 parts, too few for 4 workers: .*--parts 4"):
        PartitionData(cut(graph), settings(), _Several(0, 4))


def test_what_several_workers_cannot_share_is_refused(graph: Graph) -> None:
    own = settings(dataset="tables")
    with pytest.raises(UsageError, match=r"training=whole .* got 2 workers"):
        SharedData(graph, own.replace(training="whole"), _Several(0, 2))
    with pytest.raises(UsageError, match=r"2 sub-graphs, too few for 3 workers"):
        SharedData(graph, own.replace(subgraphs_per_step=2), _Several(0, 3))
    found = SharedData(graph, own, _Several(0, 2)).settings.sampling
    assert (found.training, found.subgraphs_per_step) == ("subgraph", 2)
