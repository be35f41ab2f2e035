"""PATCHY-SAN's fields against slow definitions in plain Python, its convolutions against einsum."""

import copy
import itertools
import pickle
import threading
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph, load_graphs
from lgcn.errors import UsageError
from lgcn.paper.baselines.patchy_san import LABELLINGS, WIDTHS, average_nodes, labellings
from lgcn.paper.baselines.patchy_san.field_cache import CACHE, BoundedCache, fields_of_graphs
from lgcn.paper.baselines.patchy_san.labellings import betweenness, labels_of
from lgcn.paper.baselines.patchy_san.network import FieldConvolution, PatchySan
from lgcn.paper.baselines.patchy_san.receptive_fields import Shape
from lgcn.paper.systems import SYSTEMS
from lgcn.training import Settings

from .checks import parameters
from .whole_graphs import FEATURES, features, side_by_side, some_batch, some_graph

Colours = dict[Any, Any]
every_labelling = pytest.mark.parametrize("labelling", LABELLINGS)


def as_nx(graph: Graph) -> nx.Graph:
    out = nx.Graph()
    out.add_nodes_from(range(graph.num_nodes))
    out.add_edges_from((a, b) for a, b in graph.edge_index.t().tolist() if a != b)
    return out


def from_nx(graph: nx.Graph) -> Graph:
    edges = torch.tensor([list(edge) for edge in graph.edges], dtype=torch.long).view(-1, 2)
    size = graph.number_of_nodes()
    x = torch.randn(size, FEATURES, generator=torch.Generator().manual_seed(0))
    return Graph.from_edge_index(edges.t(), size, x=x)


def ranks(keys: Colours) -> Colours:
    """How many have a smaller key."""
    ordered = sorted(keys.values())
    return {node: ordered.index(key) for node, key in keys.items()}


def refined(graph: nx.Graph, keys: Colours) -> Colours:
    """Sorts the nodes of each colour by the colours of their neighbours, until nothing changes."""
    colours = ranks(keys)
    while True:
        words = {
            v: (colours[v], sorted((colours[u] for u in graph[v]), reverse=True)) for v in graph
        }
        new = ranks(words)
        if new == colours:
            return colours
        colours = new


def ranked(graph: nx.Graph, keys: Colours, turn: Colours) -> list[int]:
    """All nodes, the largest colour first; of tied ones, the one whose turn is first."""
    colours = refined(graph, keys)
    while len(set(colours.values())) < len(colours):
        values = list(colours.values())
        tied = max(value for value in values if values.count(value) > 1)
        first = min((v for v in graph if colours[v] == tied), key=lambda v: turn[v])
        colours = refined(graph, {v: (colour, v == first) for v, colour in colours.items()})
    return sorted(graph, key=lambda v: -colours[v])


def labels_by_definition(graph: nx.Graph, labelling: str) -> Colours:
    if labelling == "degree":
        return dict(graph.degree())
    if labelling == "wl":
        return refined(graph, dict.fromkeys(graph, 0))
    found = nx.betweenness_centrality(graph, normalized=False)
    return {v: round(value, 6) for v, value in found.items()}


def fields_by_definition(graph: nx.Graph, shape: Shape) -> list[list[int]]:
    labels = labels_by_definition(graph, shape.labelling)
    table = [[-1] * shape.field for _ in range(shape.width)]
    colours = refined(graph, labels)
    turn = {v: (-colours[v], v) for v in graph}
    roots = ranked(graph, labels, turn)[:: shape.stride][: shape.width]
    for row, root in zip(table, roots, strict=False):
        distances = nx.single_source_shortest_path_length(graph, root)
        hops = 0
        while True:
            near = [v for v, distance in distances.items() if distance <= hops]
            if len(near) >= shape.field or len(near) == len(distances):
                break
            hops += 1
        keys = {v: (-distances[v], labels[v]) for v in near}
        found = ranked(graph.subgraph(near), keys, turn)[: shape.field]
        row[: len(found)] = found
    return table


def fields(graph: Graph, *shape: Any) -> torch.Tensor:
    return fields_of_graphs(graph, Shape(*shape), BoundedCache(0))


SYMMETRIC = {
    "path": nx.path_graph(9),
    "ring": nx.cycle_graph(8),
    "star": nx.star_graph(12),
    "clique": nx.complete_graph(7),
    "two rings": nx.disjoint_union(nx.cycle_graph(5), nx.cycle_graph(6)),
    "tree": nx.balanced_tree(3, 3),
    "prism": nx.circular_ladder_graph(5),
    "two cliques": nx.barbell_graph(5, 2),
}


@settings(max_examples=150)
@given(
    size=st.integers(0, 24),
    share=st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.5, 0.9, 1.0]),
    seed=st.integers(0, 999),
    width=st.integers(1, 12),
    stride=st.integers(1, 3),
    field=st.integers(1, 12),
    labelling=st.sampled_from(LABELLINGS),
)
def test_fields_are_those_of_the_definition(
    size: int, share: float, seed: int, width: int, stride: int, field: int, labelling: str
) -> None:
    graph, shape = some_graph(size, seed, share), Shape(width, stride, field, labelling)
    found = fields_of_graphs(graph, shape, BoundedCache(0))
    assert found.shape == (1, width, field)
    assert found[0].tolist() == fields_by_definition(as_nx(graph), shape)


@every_labelling
@pytest.mark.parametrize("name", SYMMETRIC)
def test_fields_of_symmetric_graphs_are_those_of_the_definition(name: str, labelling: str) -> None:
    for shape in (Shape(5, 1, 4, labelling), Shape(50, 1, 10, labelling)):
        found = fields_of_graphs(from_nx(SYMMETRIC[name]), shape, BoundedCache(0))
        assert found[0].tolist() == fields_by_definition(SYMMETRIC[name], shape)


def test_a_sequence_and_its_fields_by_hand() -> None:
    # Node 1 has the neighbours 0, 2 and 3; a path leads on from 3.
    edges = torch.tensor([[0, 1, 1, 3, 4], [1, 2, 3, 4, 5]])
    graph = Graph.from_edge_index(edges, 7)
    found = fields(graph, 4, 2, 3, "degree")[0].tolist()
    # By degree: 1 (three), then 3, whose neighbours have more than those of 4, then 4. Then 0, 2
    # and 5, of which 5 has the smaller neighbour, and 6, which has none.
    assert found == [[1, 3, 0], [4, 3, 5], [2, 1, 3], [6, -1, -1]]


@every_labelling
@pytest.mark.parametrize("seed", range(8))
def test_betweenness_and_labels_are_networkx_s(labelling: str, seed: int) -> None:
    graph = some_graph(15, seed, 0.1 + 0.05 * seed)
    rowptr, col = graph.rowptr.long().numpy(), graph.col.long().numpy()
    labels = labels_of(rowptr, col, labelling)
    wanted = labels_by_definition(as_nx(graph), labelling)
    assert ranks(dict(enumerate(labels.tolist()))) == ranks(wanted)
    assert labels.max() < 15
    # Both directions of each pair count.
    expected = nx.betweenness_centrality(as_nx(graph), normalized=False)
    np.testing.assert_allclose(betweenness(rowptr, col) / 2, list(expected.values()), atol=1e-9)


def images(graph: nx.Graph, table: list[list[int]]) -> list[list[Any]]:
    """What a field says without node numbers: degrees, and which of its nodes have an edge."""
    out = []
    for row in table:
        nodes = [v for v in row if v >= 0]
        edges = [(i, j) for i, a in enumerate(nodes) for j, b in enumerate(nodes) if b in graph[a]]
        out.append([[graph.degree(v) for v in nodes], edges])
    return out


@every_labelling
@settings(max_examples=30)
@given(size=st.integers(1, 25), trees=st.integers(1, 3), seed=st.integers(0, 999))
def test_fields_of_trees_do_not_depend_on_the_order_of_nodes(
    labelling: str, size: int, trees: int, seed: int
) -> None:
    parts = [nx.random_labeled_tree(size, seed=seed + n % 2) for n in range(trees)]
    graph = nx.disjoint_union_all(parts)
    order = np.random.default_rng(seed).permutation(len(graph)).tolist()
    other = nx.Graph()
    other.add_nodes_from(range(len(graph)))
    other.add_edges_from((order[a], order[b]) for a, b in graph.edges)
    shape = (12, 1, 6, labelling)
    found = [fields(from_nx(one), *shape)[0].tolist() for one in (graph, other)]
    assert images(graph, found[0]) == images(other, found[1])


def differs_everywhere(graph: Graph) -> bool:
    colours = refined(as_nx(graph), dict.fromkeys(range(graph.num_nodes), 0))
    return len(set(colours.values())) == graph.num_nodes


@every_labelling
@settings(max_examples=30)
@given(size=st.integers(7, 20), seed=st.integers(0, 999), shuffle=st.integers(0, 99))
def test_the_order_of_nodes_does_not_matter_if_all_colours_differ(
    labelling: str, size: int, seed: int, shuffle: int
) -> None:
    seeds = itertools.count(seed)
    graph = next(g for g in (some_graph(size, s, 0.3) for s in seeds) if differs_everywhere(g))
    order = torch.from_numpy(np.random.default_rng(shuffle).permutation(size))
    other = Graph.from_edge_index(order[graph.edge_index], size)  # node i becomes order[i]
    before, after = fields(graph, 8, 1, 5, labelling), fields(other, 8, 1, 5, labelling)
    assert torch.equal(torch.where(before < 0, -1, order[before]), after)


@every_labelling
def test_nodes_that_look_the_same_are_read_in_their_order(labelling: str) -> None:
    path, x = nx.path_graph(3), torch.tensor([[1.0], [0.0], [2.0]])
    model = PatchySan(1, 2, width=4, field=3, labelling=labelling).eval()
    assert fields(from_nx(path), 3, 1, 3, labelling)[0].tolist() == [
        [1, 0, 2],
        [0, 1, 2],
        [2, 1, 0],
    ]
    graph = from_nx(path)
    assert not torch.allclose(model(x, graph), model(x.flip(0), graph))


@pytest.mark.parametrize("sizes", [(3, 4), (4, 3)])
def test_refinement_cannot_tell_apart_rings_of_different_lengths(sizes: tuple[int, int]) -> None:
    graph = from_nx(nx.disjoint_union(*map(nx.cycle_graph, sizes)))
    for labelling in ("degree", "wl"):
        first = fields(graph, 1, 1, 9, labelling)
        assert (first >= 0).sum() == sizes[0]  # the root is the node with the smallest number
    assert (fields(graph, 1, 1, 9, "betweenness") >= 0).sum() == 4


@every_labelling
def test_it_equals_convolutions_over_the_grid(labelling: str) -> None:
    graph = some_batch(17, 4, 0, 30)
    model = PatchySan(FEATURES, 3, hidden_channels=7, width=14, field=4, labelling=labelling).eval()
    grid = torch.zeros(4, 14, 4, FEATURES)
    for number, part in enumerate(graph.separate()):
        table = fields_by_definition(as_nx(part), Shape(14, 1, 4, labelling))
        for i, row in enumerate(table):
            for p, node in enumerate(row):
                if node >= 0:
                    grid[number, i, p] = features(part)[node]
    first, second = model.of_fields, model.of_places[0]
    h = (torch.einsum("gwkc,fkc->gwf", grid, first.weight) + first.bias).relu()
    out = torch.einsum("gwfq,dfq->gdw", h.unfold(1, 10, 1), second.weight)
    out = (out + second.bias[:, None]).relu().flatten(1)
    assert out.shape == (4, 8 * 5)
    torch.testing.assert_close(model.embed(features(graph), graph), out)
    scores = model.classifier.out(model.classifier.hidden(out).relu())
    torch.testing.assert_close(model(features(graph), graph), scores)


def test_the_first_layer_is_torch_s_convolution() -> None:
    graph, layer = some_batch(6, 2), FieldConvolution(FEATURES, 16, 3)
    index = fields(graph, 5, 1, 3, "degree")
    grid = torch.cat([features(graph), torch.zeros(1, FEATURES)])[index].flatten(1, 2)
    conv = torch.nn.Conv1d(FEATURES, 16, 3, 3)
    assert layer.weight.abs().max() <= conv.weight.detach().abs().max() * 1.1
    conv.weight.data = layer.weight.data.transpose(1, 2)
    conv.bias = layer.bias
    torch.testing.assert_close(layer(features(graph), index), conv(grid.transpose(1, 2)))


def test_its_size() -> None:
    convolutions = 10 * 5 * 16 + 16 + 10 * 16 * 8 + 8
    assert parameters(PatchySan(5, 2, width=18)) == convolutions + 8 * 9 * 128 + 128 + 128 * 2 + 2


@pytest.mark.parametrize(
    ("width", "num_layers", "kernels"),
    [(30, 1, []), (30, 3, [10, 10]), (12, 3, [10, 3]), (10, 2, [10]), (6, 2, [6]), (1, 3, [1, 1])],
)
def test_kernels_are_not_wider_than_their_input(
    width: int, num_layers: int, kernels: list[int]
) -> None:
    model = PatchySan(FEATURES, 3, width=width, num_layers=num_layers)
    assert [conv.kernel_size for conv in model.of_places] == [(kernel,) for kernel in kernels]
    graph = some_batch(9, 40)
    assert model(features(graph), graph).shape == (2, 3)


@pytest.mark.usefixtures("data_root")
@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "IMDB-MULTI", "NCI1", "PROTEINS"])
def test_the_listed_widths_are_those_of_the_data(name: str) -> None:
    assert WIDTHS[name] == average_nodes(load_graphs(name).sizes.tolist())
    assert SYSTEMS["patchy_san"].on[name] == {"width": WIDTHS[name]}


def test_edges_that_do_not_count() -> None:
    edges = torch.tensor([[0, 1, 2, 2, 2, 3], [1, 2, 3, 2, 3, 4]])
    odd = Graph.as_given(edges, 6, edge_weight=torch.rand(6))  # a loop, a duplicate, directions
    plain = Graph.from_edge_index(edges, 6)
    assert torch.equal(fields(odd, 6, 1, 4, "wl"), fields(plain, 6, 1, 4, "wl"))


def test_fields_are_computed_once_per_content(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, shape, calls = BoundedCache(10_000), Shape(4, 1, 3, "wl"), []
    module = "lgcn.paper.baselines.patchy_san.field_cache"
    real = fields_of_graphs.__globals__["receptive_fields"]
    monkeypatch.setattr(f"{module}.receptive_fields", lambda *a: calls.append(a) or real(*a))
    one, two = some_graph(9, 1), some_graph(9, 2)
    batch = side_by_side([one, two, one])
    first = fields_of_graphs(batch, shape, cache)
    assert len(calls) == len(cache) == 2
    assert torch.equal(first[0], first[2] - 18)
    again = fields_of_graphs(side_by_side([two, one]), shape, cache)
    assert len(calls) == 2
    assert torch.equal(again[0], first[1] - 9)
    fields_of_graphs(one, shape._replace(field=2), cache)
    assert len(calls) == 3


def test_fields_are_not_those_of_another_graph_with_the_same_ids() -> None:
    edges = torch.tensor([[0, 0, 0, 3], [1, 2, 3, 4]])
    graph = Graph.from_edge_index(edges, 5, node_ids=np.arange(5))
    other = Graph.from_edge_index((edges + 1) % 5, 5, node_ids=np.arange(5))
    shape, cache = Shape(5, 1, 3, "degree"), BoundedCache(10_000)
    found = [fields_of_graphs(one, shape, cache)[0].tolist() for one in (graph, other)]
    assert found[0] != found[1]
    assert found == [fields_by_definition(as_nx(one), shape) for one in (graph, other)]
    # An edge changed in place: 3-4 becomes 2-4.
    graph.rowptr.copy_(torch.tensor([0, 3, 4, 6, 7, 8]))
    graph.col.copy_(torch.tensor([1, 2, 3, 0, 0, 4, 0, 2]))
    changed = fields_of_graphs(graph, shape, cache)[0].tolist()
    assert changed == fields_by_definition(as_nx(graph), shape) != found[0]


def test_the_graphs_last_used_are_kept_up_to_a_size() -> None:
    cache = BoundedCache(3 * 40)
    made = []

    def get(key: str) -> None:
        def make() -> Any:
            made.append(key)
            return np.zeros(10, np.int32)

        assert cache.get(key, make).shape == (10,)

    for key in "abcabcda":
        get(key)
    assert "".join(made) == "abcda"  # d took the place of a, and a that of b
    assert (len(cache), cache.size) == (3, 120)
    get("c")
    get("b")
    assert "".join(made) == "abcdab"
    assert cache.get("e", lambda: np.zeros(100)).size == 100  # larger than all
    assert (len(cache), cache.size) == (0, 0)


def test_threads_share_what_is_kept() -> None:
    cache, shape = BoundedCache(2_000), Shape(6, 1, 4, "betweenness")
    graphs = [some_batch(9, 12, 7, seed=seed) for seed in range(6)]
    wanted = [fields_of_graphs(graph, shape, BoundedCache(0)) for graph in graphs]
    same: list[bool] = []

    def work(shift: int) -> None:
        for step in range(30):
            number = (step + shift) % len(graphs)
            same.append(torch.equal(fields_of_graphs(graphs[number], shape, cache), wanted[number]))

    threads = [threading.Thread(target=work, args=(shift,)) for shift in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 120
    assert cache.size == sum(one.nbytes for one in cache._found.values()) <= 2_000


def test_a_model_has_no_fields_in_its_state() -> None:
    model, graph = PatchySan(FEATURES, 3, width=7).eval(), some_batch(9, 12)
    scores = model(features(graph), graph)
    assert len(CACHE) > 0
    assert set(model.state_dict()) == {name for name, _ in model.named_parameters()}
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(features(graph), graph), scores)


def test_a_large_graph_with_a_hub() -> None:
    leaves = torch.arange(1, 4000)
    graph = Graph.from_edge_index(torch.stack([torch.zeros_like(leaves), leaves]), 4000)
    # A labelling tells apart the hub alone; the others come by their numbers, in all fields.
    for labelling in LABELLINGS:
        found = fields(graph, 300, 1, 4, labelling)[0].tolist()
        assert found[0] == [0, 1, 2, 3]
        assert found[1:3] == [[1, 0, 2, 3], [2, 0, 1, 3]]
        assert found[299] == [299, 0, 1, 2]


def test_the_cost_of_betweenness_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labellings, "MANY_STEPS", 10)
    graph = from_nx(nx.path_graph(5))
    with pytest.warns(UserWarning, match=r"betweenness .* 4 minutes .* 5 nodes and 8 entries"):
        fields(graph, 3, 1, 2, "betweenness")
    fields(graph, 3, 1, 2, "wl")  # no warning, which would be an error


def test_wrong_arguments_are_named() -> None:
    for name in ("width", "stride", "field", "num_layers"):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
            PatchySan(5, 3, **{name: 0})
        with pytest.raises(UsageError, match=rf"{name} must .* 1.*, got 0"):
            Settings.create(model="patchy_san", **{name: 0})
    wanted = "labelling must be one of betweenness, degree, wl, got 'nauty'"
    with pytest.raises(ValueError, match=wanted):
        PatchySan(5, 3, labelling="nauty")
    with pytest.raises(UsageError, match=wanted):
        Settings.create(model="patchy_san", labelling="nauty")
    with pytest.raises(ValueError, match=r"sizes must .* at least one graph, got none"):
        average_nodes([])


@pytest.mark.gpu
def test_on_a_gpu() -> None:
    model, graph = PatchySan(FEATURES, 3, width=12).eval(), some_batch(9, 0, 14, 30)
    wanted = model(features(graph), graph)
    model.cuda()
    for x in (features(graph), features(graph).to_sparse_csr()):
        found = model(x.cuda(), graph.to("cuda"))
        assert found.is_cuda
        torch.testing.assert_close(found.cpu(), wanted, rtol=1e-3, atol=1e-3)
