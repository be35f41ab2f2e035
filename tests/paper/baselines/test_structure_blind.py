"""The structure-blind baseline: loops over graphs, and nothing of the edges."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch_geometric.nn import global_add_pool

from lgcn import Graph
from lgcn.paper.baselines.structure_blind.network import StructureBlind, sum_nodes
from lgcn.training import ModelSpec, Settings
from tests.training.whole_graphs import some_graphs

from .checks import parameters
from .whole_graphs import as_pyg, features, some_batch


def classified(model: StructureBlind, x: Tensor) -> Tensor:
    hidden = (model.classifier.hidden.weight @ x + model.classifier.hidden.bias).clamp(min=0)
    return model.classifier.out.weight @ hidden + model.classifier.out.bias


def test_a_fingerprint_is_the_sum_of_the_features() -> None:
    model, graph = StructureBlind(5, 3, variant="fingerprint").eval(), some_batch(4, 0, 7)
    out = model(features(graph), graph)
    for row, part in zip(out, graph.separate(), strict=True):
        total = torch.zeros(5)
        for node in features(part):
            total += node
        torch.testing.assert_close(row, classified(model, total))
    assert parameters(model) == 5 * 128 + 128 + 128 * 3 + 3


def test_a_multiset_is_the_sum_of_a_layers_outputs() -> None:
    model, graph = StructureBlind(5, 3, num_layers=2).eval(), some_batch(4, 0, 7)
    out = model(features(graph), graph)
    for row, part in zip(out, graph.separate(), strict=True):
        total = torch.zeros(128)
        for node in features(part):
            for layer in model.layers:
                node = (layer.linear.weight @ node + layer.linear.bias).clamp(min=0)
            total += node
        torch.testing.assert_close(row, classified(model, total))
    assert parameters(model) == 5 * 128 + 128 + 2 * (128 * 128 + 128) + 128 * 3 + 3


@pytest.mark.parametrize("variant", ["fingerprint", "multiset"])
def test_edges_are_never_read(variant: str) -> None:
    model, graph = StructureBlind(5, 3, variant=variant).eval(), some_batch(6, 7)
    bare = Graph(torch.zeros(14, dtype=torch.long), torch.empty(0, dtype=torch.long), ptr=graph.ptr)
    assert graph.num_edges > 0
    torch.testing.assert_close(model(features(graph), bare), model(features(graph), graph))


def test_sums_equal_pygs_for_dense_and_sparse_features() -> None:
    graph = some_batch(4, 1, 7)
    assert graph.ptr is not None
    x = features(graph) * (features(graph) > 0)
    expected = global_add_pool(x, as_pyg(graph).batch)
    torch.testing.assert_close(sum_nodes(x, graph.ptr), expected)
    torch.testing.assert_close(sum_nodes(x.to_sparse_csr(), graph.ptr), expected)


def test_its_preset_gives_nodes_without_features_their_degree_alone() -> None:
    graphs = some_graphs().with_graph(x=None)
    blind, usual = (
        ModelSpec.of_graphs(graphs, Settings.create(model=name, positions="none"))
        for name in ("structure_blind", "gin")
    )
    assert blind.structure is not None
    assert blind.structure.features == ("log_degree",)
    assert usual.structure is not None
    assert "clustering" in usual.structure.features
    ones = torch.ones(graphs.num_nodes, 1)
    given = ModelSpec.of_graphs(graphs.with_graph(x=ones), Settings.create(model="structure_blind"))
    assert given.structure is None


def test_rewired_graphs_of_the_same_degrees_look_alike() -> None:
    """A ring of six nodes and two triangles, which have other features by default."""
    ring = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])
    triangles = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])
    star = torch.tensor([[0, 0, 0], [1, 2, 3]])
    graph = Graph.concat([Graph.from_edge_index(edges) for edges in (ring, triangles, star)])
    config = Settings.create(model="structure_blind", positions="none")
    for chosen, alike in ((config, True), (config.replace(structural_features="auto"), False)):
        spec = ModelSpec.of(replace(graph, y=torch.zeros(16, dtype=torch.long)), chosen)
        prepared = spec.prepare(graph)
        model = StructureBlind(spec.num_features, 2).eval()
        one, two, _ = model(features(prepared), prepared)
        assert torch.allclose(one, two) == alike


def test_an_unknown_variant_is_named() -> None:
    with pytest.raises(ValueError, match="variant must be one of fingerprint, multiset, got 'set'"):
        StructureBlind(5, 3, variant="set")
