"""Sub-graphs and counts of graphs against lists, sets and dicts."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from lgcn import Graph, select_subgraph
from lgcn.datasets.graph_report import check_graph

from ..references import algorithm_1, assert_same, components
from ..rules import argument_errors, wrong
from ..source import Source


def some_graph(source: Source, most_nodes: int = 40) -> tuple[Graph, list[list[int]]]:
    """A graph with isolated nodes, self-loops and duplicates, and the neighbours of each node."""
    num_nodes = source.between(1, most_nodes)
    num_edges = source.choice((0, num_nodes // 2, num_nodes, 2 * num_nodes, 6 * num_nodes))
    rng = source.rng()
    # Towards the first nodes, so that some have many neighbours.
    ends = (num_nodes * rng.random((2, num_edges)) ** source.choice((1, 3))).astype(np.int64)
    if source.flag():
        ends = np.concatenate([ends, ends[::-1]], axis=1)
    graph = Graph.as_given(torch.from_numpy(ends), num_nodes)
    if source.flag():
        graph = Graph(graph.rowptr.int(), graph.col.int())
    neighbors: list[list[int]] = [[] for _ in range(num_nodes)]
    for s, t in ends.T.tolist():
        neighbors[t].append(s)
    return graph, neighbors


def select_subgraph_target(source: Source) -> None:
    """Algorithm 1 with lists and sets, and the same random numbers, selects the same nodes."""
    graph, neighbors = some_graph(source, source.choice((6, 30, 150)))
    n = graph.num_nodes
    given: list[int] | None = None
    roots: Any = None
    if source.flag():
        given = [source.below(n) for _ in range(source.between(1, min(n, 12)))]
        if source.rarely():
            given[source.below(len(given))] = source.choice((-1, n, 2**31, -(2**31), 2**40))
        roots = given
        form = source.below(4)
        if form == 1:
            roots = torch.tensor(given)
        elif form == 2:
            roots = torch.tensor(given).to(source.choice((torch.int32, torch.int16)))
            given = roots.tolist()
        elif form == 3 and all(0 <= node < n for node in given):
            roots = torch.zeros(n, dtype=torch.bool)
            roots[given] = True
    available = n if given is None else len(set(given))
    n_init = None if given is not None and source.flag() else source.between(1, available)
    started = available if n_init is None else n_init
    max_nodes = None if source.below(4) == 0 else source.between(started, n + 2)
    max_hops = None if source.flag() else source.below(5)
    max_expand: int | list[int] | None = None
    kind = source.below(3)
    if kind == 1:
        max_expand = source.between(1, 9)
    elif kind == 2:
        max_expand = [source.between(1, 9) for _ in range(source.between(1, 3))]
    seed = source.below(1000) if source.below(4) else source.integer()
    ok = given is None or all(0 <= node < n for node in given)
    odd = source.below(16)
    if odd == 13:
        n_init, ok = source.choice((0, -1, available + 1, 2**33)), False
    elif odd == 14:
        max_nodes = source.choice((started - 1, 0, -1, 2**31, 2**62))
        ok = ok and max_nodes >= started
    elif odd == 15:
        max_expand = source.choice((0, -1, [], [2, 0], 2**31, 2**62, [2**62]))
        ok = ok and max_expand not in (0, -1, [], [2, 0])

    def call() -> list[int]:
        return select_subgraph(
            graph,
            roots=roots,
            n_init=n_init,
            max_nodes=max_nodes,
            max_expand=max_expand,
            max_hops=max_hops,
            seed=seed,
        ).tolist()

    if not ok:
        wrong(call)
    expected = algorithm_1(neighbors, given, n_init, max_nodes, max_expand, max_hops, seed)
    assert call() == expected
    assert call() == expected  # what the first call left in the scratch memory does not matter


def subgraph_target(source: Source) -> None:
    """The induced sub-graph has the entries between its nodes, in their order."""
    graph, neighbors = some_graph(source, source.choice((6, 30, 400)))
    n = graph.num_nodes
    rng = source.rng()
    weight = torch.from_numpy(rng.integers(0, 5, graph.num_edges) / 2.0)
    if source.flag():
        graph = Graph(graph.rowptr, graph.col, edge_weight=weight, x=torch.arange(n)[:, None])
    chosen = rng.permutation(n)[: source.between(0, min(n, 60))].tolist()
    ok = True
    if chosen and source.rarely():
        place, value = source.below(len(chosen)), source.integer()
        if chosen[place] != value:
            ok = 0 <= value < n and value not in chosen
            chosen[place] = value
    nodes = torch.tensor(chosen, dtype=torch.int64)
    if not ok:
        wrong(lambda: graph.subgraph(nodes))
    part = graph.subgraph(nodes, keep_degree=source.flag())
    new = {node: i for i, node in enumerate(chosen)}
    rowptr, rows, weights = graph.rowptr.tolist(), [], []
    for node in chosen:
        inside = [(new[s], e) for e, s in enumerate(neighbors[node], rowptr[node]) if s in new]
        rows.append([s for s, _ in inside])
        weights += [e for _, e in inside]
    bounds = part.rowptr.tolist()
    assert [part.col.tolist()[a:b] for a, b in pairwise(bounds)] == rows
    if graph.edge_weight is not None:
        assert_same(part.edge_weight, weight[weights])
        assert part.features().flatten().tolist() == chosen
    assert part.n_id.tolist() == chosen


def check_graph_target(source: Source) -> None:
    """What ``lgcn data check`` counts, counted again."""
    n = source.between(1, source.choice((3, 12)))
    most = source.choice((4, 12, 40))
    pairs = [(source.below(n), source.below(n)) for _ in range(source.below(most + 1))]
    if n < 4 and source.flag():  # the same number of edges in both directions
        counts = {(i, j): source.below(4) for i in range(n) for j in range(i + 1)}
        pairs = [
            (i, j) for i in range(n) for j in range(n) for _ in range(counts[max(i, j), min(i, j)])
        ]
    weight = None
    if source.flag():
        weight = torch.tensor([source.choice((0.5, 1.0)) for _ in pairs])
    kind = source.below(3)
    if kind == 2:  # symmetric, with duplicates
        pairs = pairs + [(t, s) for s, t in pairs]
        weight = None if weight is None else weight.repeat(2)
    y = None
    if source.flag():
        y = torch.tensor([source.between(-1, 3) for _ in range(n)])
    with argument_errors():
        make = Graph.from_edge_index if kind == 1 else Graph.as_given
        edges = torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).t()
        graph = make(edges, n, edge_weight=weight, y=y)
        report = check_graph(graph)
    sources, targets = graph.edge_index.tolist()
    ends = list(zip(sources, targets, strict=True))
    values = [1.0] * len(ends) if graph.edge_weight is None else graph.edge_weight.tolist()
    listed = sorted((s, t, w) for (s, t), w in zip(ends, values, strict=True))
    symmetric = listed == sorted((t, s, w) for s, t, w in listed)
    loops = sum(s == t for s, t in ends)
    assert report.directed == (not symmetric)
    assert report.self_loops == loops
    others = len(ends) - loops
    assert report.edges == (others // 2 if symmetric else others) + loops
    again = Counter(ends) - Counter(set(ends))
    loops_again = sum(number for (s, t), number in again.items() if s == t)
    others_again = again.total() - loops_again
    assert report.duplicate_edges == loops_again + others_again // (2 if symmetric else 1)
    assert report.isolated_nodes == n - len({*sources, *targets})
    parts = components(n, ends)
    assert (report.components, report.largest_component) == (len(parts), parts[0])
    degree = [targets.count(i) for i in range(n)]
    assert (report.degree["smallest"], report.degree["largest"]) == (min(degree), max(degree))
    json.dumps(report.to_dict(), allow_nan=False)
