"""Features of every type that a graph may store."""

import pytest
import torch
from torch import Tensor

from lgcn import Graph

from .graphs import RandomGraph

FEATURES = torch.arange(36.0).view(12, 3) / 4  # which all types hold exactly
STORED = {
    "float32": (FEATURES, None),
    "float64": (FEATURES.double(), None),
    "float16": (FEATURES.half(), None),
    "bfloat16": (FEATURES.bfloat16(), None),
    "uint8": ((FEATURES * 4).byte(), torch.tensor([[0.25] * 3, [0.0] * 3])),
    "sparse": (FEATURES.to_sparse_csr(), None),
    "sparse half": (FEATURES.half().to_sparse_csr(), None),
}


@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize(
    "rows", [None, slice(2, 7), torch.tensor([5, 1, 5]), torch.arange(12) % 3 == 1]
)
def test_features_are_floating_point_numbers(
    random_graph: RandomGraph, kind: str, rows: Tensor | slice | None
) -> None:
    x, scale = STORED[kind]
    graph = random_graph(x=x, feature_scale=scale)
    found = graph.features(rows)
    assert found.dtype == (torch.float64 if kind == "float64" else torch.float32)
    assert found.layout == x.layout
    expected = FEATURES if rows is None else FEATURES[rows]
    assert torch.equal(found.to_dense().float(), expected)


def test_features_in_float_are_not_copied(random_graph: RandomGraph) -> None:
    graph = random_graph()
    assert graph.features() is graph.x
    assert graph.features(slice(2, 4)).data_ptr() == graph.x[2:].data_ptr()


@pytest.mark.parametrize("kind", STORED)
def test_subgraphs_and_their_batches_have_features_to_compute_with(
    random_graph: RandomGraph, kind: str
) -> None:
    x, scale = STORED[kind]
    graph = random_graph(x=x, feature_scale=scale, node_weight=torch.arange(12.0))
    nodes = torch.tensor([7, 2, 9])
    part = graph.subgraph(nodes)
    assert part.feature_scale is None
    assert torch.equal(part.x.to_dense().float(), FEATURES[nodes])
    assert part.node_weight.tolist() == [7, 2, 9]
    both = Graph.concat([part, graph])
    assert both.feature_scale is None
    assert torch.equal(both.x.to_dense().float(), torch.cat([FEATURES[nodes], FEATURES]))
    assert both.node_weight.tolist() == [7, 2, 9, *range(12)]
    assert torch.equal(graph.to_pyg().x.to_dense().float(), FEATURES)


def test_a_graph_without_features_says_so(random_graph: RandomGraph) -> None:
    with pytest.raises(ValueError, match="must have features"):
        random_graph(x=None).features()


@pytest.mark.parametrize("scale", [torch.ones(3), torch.ones(2, 4)])
def test_a_scale_must_fit_the_features(random_graph: RandomGraph, scale: Tensor) -> None:
    with pytest.raises(ValueError, match="feature_scale"):
        random_graph(feature_scale=scale)
    with pytest.raises(ValueError, match="feature_scale"):
        random_graph(x=None, feature_scale=torch.ones(2, 0))


@pytest.mark.parametrize(
    ("offsets", "numbers", "message"),
    [
        ([0, 2**31 - 1, -2], [0, 1], "must not decrease"),
        ([0, 1, 3], [0, 1], "must end with"),
        ([0, 1, 2], [0, 5], "= 5"),
        ([0, 1, 2], [0, -1], "= -1"),
    ],
)
def test_sparse_features_with_wrong_indices_are_refused(
    offsets: list[int], numbers: list[int], message: str
) -> None:
    x = torch.sparse_csr_tensor(
        torch.tensor(offsets).int(),
        torch.tensor(numbers).int(),
        torch.ones(2),
        (2, 3),
        check_invariants=False,
    )
    with pytest.raises(ValueError, match=f"x has wrong indices: .*{message}"):
        Graph.as_given(torch.tensor([[0], [1]]), x=x)
