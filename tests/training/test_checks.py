"""What is refused before a training, and what is said of values when one diverges."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from lgcn.errors import TrainingDiverged, UsageError
from lgcn.graph import Graph
from lgcn.nn import LGCN
from lgcn.training import ModelSpec, Settings, checks, divergence, train
from lgcn.training.checks import check_k
from lgcn.utils.out_of_memory import OutOfMemory

from .graphs import settings, small_graph


def weighted(*values: float, rest: float = 1.0) -> Graph:
    graph = small_graph()
    weight = torch.full((graph.num_edges,), rest)
    weight[: len(values)] = torch.tensor(values)
    return replace(graph, edge_weight=weight)


@pytest.mark.parametrize(
    ("values", "rest", "message"),
    [
        ([float("nan")], 1.0, r"edge_weight.* of synthetic must be finite"),
        ([float("inf")], 1.0, r"edge_weight.* of synthetic must be finite"),
        ([-float("inf")], 1.0, r"edge_weight.* of synthetic must be finite"),
        ([1.0, -2.5], 1.0, r"edge_weight.* must .* the smallest is -2\.5.*absolute"),
        ([], 1e38, r"edge_weight.*float32, up to 1e\+38.*divide"),
        ([], 1e-40, r"edge_weight.*float32, at most 1e-40.*multiply"),
    ],
)
def test_weights_that_cannot_be_normalised_are_refused(
    values: list[float], rest: float, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        train(weighted(*values, rest=rest), settings())


@pytest.mark.parametrize("rest", [0.0, 1e-37, 1e30])
def test_other_weights_are_fine(rest: float) -> None:
    record = train(weighted(1.0, 0.0, rest=rest), settings(max_epochs=1)).record
    assert record["val_score"] > 0


@pytest.mark.parametrize("sparse", [False, True])
def test_features_too_small_for_float32_are_refused(sparse: bool) -> None:
    x = small_graph().x * 1e-41
    x = x.to_sparse_csr() if sparse else x
    with pytest.raises(UsageError, match=r"features \(x\) of synthetic .*multiply"):
        train(replace(small_graph(), x=x), settings())


@pytest.mark.parametrize("size", [1e-37, 1e37])
def test_very_small_and_large_features_train_as_others_where_they_are_scaled(size: float) -> None:
    graph = small_graph()
    config = settings(input_scale=None, max_epochs=3)
    scores = [
        train(replace(graph, x=x), config).record["val_score"] for x in (graph.x, graph.x * size)
    ]
    assert scores[1] == pytest.approx(scores[0], abs=0.05)


def test_one_small_value_among_zeros_does_not_overflow_the_scale() -> None:
    graph = small_graph()
    x = torch.zeros_like(graph.x)
    x[0, 0] = 2e-38  # the root mean square is less than float32 can hold one over
    result = train(replace(graph, x=x), settings(input_scale=None, max_epochs=1))
    assert all(bool(torch.isfinite(weight).all()) for weight in result.model.parameters())


def diverges(graph: Graph, **given: Any) -> str:
    with pytest.raises(TrainingDiverged) as error:
        train(graph, settings(input_scale=1.0, max_epochs=5, **given))
    return str(error.value)


def test_features_are_named_where_they_are_the_likely_cause() -> None:
    message = diverges(replace(small_graph(), x=torch.full((200, 8), 3e38)))
    assert "features (x) are very large, up to 3e+38" in message
    assert "input_scale=none" in message
    assert "learning rate" not in message


def test_weights_are_named_where_they_are_the_likely_cause() -> None:
    message = diverges(weighted(rest=1e30), rank="raw", classifier="sum")
    assert "edge_weight) are very large, up to 1e+30" in message
    assert "learning rate" not in message


def test_the_learning_rate_is_named_where_nothing_else_is_known() -> None:
    graph = small_graph()
    assert divergence.unusual_values(graph) is None
    assert divergence.unusual_values(weighted(rest=2.0)) is None
    assert "learning rate" in diverges(graph, lr=1e30)


@pytest.mark.parametrize(
    "x",
    [torch.full((3, 2), -128, dtype=torch.int8), torch.ones(3, 2).bool(), torch.ones(3, 2).half()],
)
def test_features_of_other_types_are_read(x: Tensor) -> None:
    graph = Graph(torch.zeros(4).long(), torch.zeros(0).long(), x=x)
    checks._check_features(graph)
    assert divergence.unusual_values(graph) is None


def test_a_k_beyond_all_degrees_is_warned_about() -> None:
    graph = small_graph()
    largest = int(graph.rowptr.diff().max()) + 1  # with the self-loop
    for k in (checks.USUAL_K, 2 * largest):
        checks.check_k(graph, settings(k=k), LGCN(8, 3, k=k), torch.device("cpu"))
    k = max(checks.USUAL_K, 2 * largest) + 1
    with pytest.warns(UserWarning, match=rf"k={k} .* more than {largest} values .*k={largest} "):
        checks.check_k(graph, settings(k=k), LGCN(8, 3, k=k), torch.device("cpu"))
    for model in (LGCN(8, 3, k=k, num_layers=0), LGCN(8, 3, k=k, layer="gcn")):
        checks.check_k(graph, settings(k=k), model, torch.device("cpu"))


def test_a_k_for_which_there_is_no_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, config = small_graph(), settings(k=100, hidden_channels=16, training="whole")
    with torch.device("meta"):
        model = LGCN(8, 3, k=100, hidden_channels=16)
    needed = 4 * graph.num_nodes * 101 * 16
    monkeypatch.setattr(checks, "available_memory", lambda: needed - 1)
    with pytest.raises(OutOfMemory, match=rf"k=100.* {graph.num_nodes} nodes .*smaller k"):
        checks.check_k(graph, config, model, torch.device("cpu"))
    monkeypatch.setattr(checks, "available_memory", lambda: needed)
    checks.check_k(graph, config, model, torch.device("cpu"))


def two_classes(val_classes: tuple[int, ...]) -> Graph:
    """Validation nodes of these classes only."""
    graph = small_graph()
    y = graph.y % 2
    keep = torch.zeros_like(graph.val_mask)
    for number in val_classes:
        keep |= y == number
    return replace(graph, y=y, val_mask=graph.val_mask & keep)


@pytest.mark.parametrize("metric", ["roc_auc", "average_precision", "macro_f1"])
def test_metrics_that_need_two_classes_among_the_validation_nodes(metric: str):
    with pytest.raises(UsageError, match=f"metric={metric} cannot.*class '1'"):
        train(two_classes((0,)), settings(metric=metric))
    assert train(two_classes((0,)), settings(max_epochs=1)).record["metric"] == "accuracy"


def test_a_class_without_validation_nodes_is_a_warning():
    graph = small_graph()
    graph = replace(graph, val_mask=graph.val_mask & (graph.y < 2))
    with pytest.warns(UserWarning, match=r"metric=macro_f1 .*'2'.*no validation node"):
        train(graph, settings(metric="macro_f1", max_epochs=1))


def test_a_test_split_of_one_class_has_no_roc_auc():
    graph = two_classes((0, 1))
    graph = replace(graph, test_mask=graph.test_mask & (graph.y == 0))
    assert train(graph, settings(metric="roc_auc", max_epochs=2)).record["test_score"] is None


def test_propagated_features_that_memory_cannot_hold_are_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = small_graph()
    chosen = Settings.create(dataset="tables", preset="propagated", training="whole", device="cpu")
    spec = ModelSpec.of(graph)
    model = spec.build_without_memory(chosen.resolve(graph))
    check_k(graph, chosen, model, torch.device("cpu"))
    copies = 4 * graph.num_nodes * graph.num_features * (1 + 3 * chosen.optimisation.views)
    monkeypatch.setattr(checks, "available_memory", lambda: copies - 1)
    with pytest.raises(OutOfMemory, match="embedding=propagated: 8 features of 200 nodes"):
        check_k(graph, chosen, model, torch.device("cpu"))
    monkeypatch.setattr(checks, "available_memory", lambda: copies)
    check_k(graph, chosen, model, torch.device("cpu"))


@pytest.mark.parametrize(
    ("given", "reason"),
    [({"lgcl_dropout": 0.2}, "lgcl_dropout"), ({"adj_dropout": 0.1}, "adj_dropout"), ({}, "edge")],
)
def test_recompute_says_once_where_it_has_no_effect(given: dict[str, Any], reason: str) -> None:
    graph = small_graph()
    if not given:
        graph = replace(graph, edge_attr=torch.rand(graph.num_edges, 2))
    chosen = Settings.create(
        **{"dataset": "tables", "model": "residual", "recompute": True, "max_epochs": 1, **given}
    )
    with pytest.warns(UserWarning, match="recompute") as caught:
        train(graph, chosen)
    found = [str(one.message) for one in caught if "recompute" in str(one.message)]
    assert len(found) == 1
    assert f"no effect with {reason}" in found[0]
