"""A small store, and a partition of it."""

from pathlib import Path

import pytest
import torch

from lgcn import Graph, write_store
from lgcn.partition import write_partition

from .graphs import ROOMY


@pytest.fixture(scope="session")
def store_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 nodes in a ring, each joined with the next but two as well."""
    node = torch.arange(40)
    edges = torch.stack([node.repeat(2), torch.cat([node + 1, node + 3]) % 40])
    graph = Graph.from_edge_index(
        edges,
        40,
        x=torch.arange(80.0).view(40, 2),
        y=node % 3,
        train_mask=node % 4 == 0,
        val_mask=node % 4 == 1,
        name="ring",
    )
    path = tmp_path_factory.mktemp("ring") / "store"
    write_store(path, graph)
    return path


@pytest.fixture
def path(store_path: Path, tmp_path: Path) -> Path:
    """A partition into three parts."""
    write_partition(store_path, tmp_path / "parts", 3, method="ldg", memory=ROOMY)
    return tmp_path / "parts"
