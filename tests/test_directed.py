"""The same edges give the same graph through every door: ``directed`` means one thing."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from lgcn import Graph, from_networkx, from_scipy, from_tables
from lgcn.estimator.inputs import as_graph, graph_of
from lgcn.store.import_store import import_store
from lgcn.store.open_store import open_store
from lgcn.utils.memory import anonymous_memory

NUM_NODES = 7
# With a duplicate, a reverse, a self-loop, and weights that differ between them; node 6 is alone.
SOURCE = np.array([3, 0, 0, 1, 2, 4, 5, 4])
TARGET = np.array([1, 2, 2, 0, 0, 4, 3, 5])
WEIGHT = np.array([0.5, 1.0, 2.0, 3.0, 4.0, 9.0, 0.25, 6.0], np.float32)
EDGE_INDEX = torch.from_numpy(np.stack([SOURCE, TARGET]))
EXPECTED = {
    False: [
        *([(1, 3), (2, 4)], [(0, 3), (3, 0.5)], [(0, 4)], [(1, 0.5), (5, 0.25)]),
        *([(5, 6)], [(3, 0.25), (4, 6)], []),
    ],
    True: [[(1, 3), (2, 4)], [(3, 0.5)], [(0, 2)], [(5, 0.25)], [], [(4, 6)], []],
}

Door = Callable[[bool, Path], Graph]


def edge_index(directed: bool, folder: Path) -> Graph:
    weight = torch.from_numpy(WEIGHT)
    return Graph.from_edge_index(EDGE_INDEX, NUM_NODES, edge_weight=weight, directed=directed)


def sparse_tensor(directed: bool, folder: Path) -> Graph:
    """Torch sums duplicates, so that each pair comes once."""
    once = np.arange(len(SOURCE)) != 1
    index = torch.from_numpy(np.stack([TARGET, SOURCE])[:, once])
    values = torch.from_numpy(WEIGHT[once])
    matrix = torch.sparse_coo_tensor(index, values, (NUM_NODES, NUM_NODES))
    return Graph.from_edge_index(matrix, directed=directed)


def pyg(directed: bool, folder: Path) -> Graph:
    weight = torch.from_numpy(WEIGHT)
    data = Data(edge_index=EDGE_INDEX, edge_weight=weight, num_nodes=NUM_NODES)
    return Graph.from_pyg(data, directed=directed)


def tables() -> tuple[dict[str, Any], dict[str, Any]]:
    nodes = {"id": range(NUM_NODES), "feature": range(NUM_NODES)}
    edges = {"source": SOURCE, "target": TARGET, "weight": WEIGHT}
    return edges, {name: list(column) for name, column in nodes.items()}


@pytest.mark.filterwarnings("ignore")
def by_tables(directed: bool, folder: Path) -> Graph:
    edges, nodes = tables()
    return from_tables(edges, nodes, weight_column="weight", directed=directed)


def store(directed: bool, folder: Path) -> Graph:
    edges, nodes = tables()
    memory = anonymous_memory() + 10**9
    import_store(
        folder / "store", edges, nodes, weight_column="weight", directed=directed, memory=memory
    )
    found = open_store(folder / "store")
    assert found.header["directed"] == directed
    return found.graph


def multigraph(directed: bool, folder: Path) -> Graph:
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(NUM_NODES))
    for source, target, weight in zip(SOURCE, TARGET, WEIGHT, strict=True):
        graph.add_edge(int(source), int(target), w=float(weight))
    return from_networkx(graph, weight="w", directed=directed)


def matrix() -> Any:
    """SciPy sums duplicates, so that each pair comes once."""
    once = np.arange(len(SOURCE)) != 1
    entries = (WEIGHT[once], (SOURCE[once], TARGET[once]))
    return scipy.sparse.coo_matrix(entries, (NUM_NODES, NUM_NODES))


def scipy_matrix(directed: bool, folder: Path) -> Graph:
    return from_scipy(matrix(), directed=directed)


def estimator_matrix(directed: bool, folder: Path) -> Graph:
    return graph_of(torch.zeros(NUM_NODES, 1), matrix(), directed=directed)


def estimator_pyg(directed: bool, folder: Path) -> Graph:
    data = Data(edge_index=EDGE_INDEX, edge_weight=torch.from_numpy(WEIGHT), num_nodes=NUM_NODES)
    graph = as_graph(data, directed=directed)
    assert graph is not None
    return graph


DOORS: list[Door] = [
    edge_index,
    sparse_tensor,
    pyg,
    by_tables,
    store,
    multigraph,
    scipy_matrix,
    estimator_matrix,
    estimator_pyg,
]


def rows_of(graph: Graph) -> list[list[tuple[int, float]]]:
    weight = [1.0] * graph.num_edges if graph.edge_weight is None else graph.edge_weight.tolist()
    entries = list(zip(graph.col.tolist(), weight, strict=True))
    bounds = graph.rowptr.tolist()
    return [entries[start:stop] for start, stop in pairwise(bounds)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_every_door_gives_the_same_graph(door: Door, directed: bool, tmp_path: Path) -> None:
    assert rows_of(door(directed, tmp_path)) == EXPECTED[directed]


def test_the_commands_give_the_same_graph(tmp_path: Path, lgcn_: Callable[..., Any]) -> None:
    edges, nodes = tables()
    pyarrow.csv.write_csv(pa.table(edges), tmp_path / "edges.csv")
    pyarrow.csv.write_csv(pa.table({**nodes, "kind": list("abababa")}), tmp_path / "nodes.csv")
    files = ("--edges", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv")
    options = ("--label-column", "kind", "--weight-column", "weight")
    for directed in (False, True):
        flags = ("--directed",) if directed else ()
        path = tmp_path / f"store-{directed}"
        assert lgcn_("import", path, *files, *options, *flags, "--memory", "8GB").code == 0
        assert rows_of(open_store(path).graph) == EXPECTED[directed]
        record = lgcn_("data", "check", *files, *options, *flags, "--json").json
        assert record["directed"] == directed
        assert record["edges"] == 5 + directed


def test_an_undirected_networkx_graph_counts_both_ways() -> None:
    graph = networkx.path_graph(3)
    for directed in (False, True):
        assert from_networkx(graph, directed=directed).num_edges == 4
