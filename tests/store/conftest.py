"""A small graph and a store of it, and imports in small pieces."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lgcn import Graph
from lgcn.store import edge_buckets, edge_stream
from lgcn.store.write_store import write_store

from .stores import RandomGraph


@pytest.fixture
def graph(random_graph: RandomGraph) -> Graph:
    masks = {f"{s}_mask": torch.arange(12) % 3 == i for i, s in enumerate(("train", "val", "test"))}
    return random_graph(undirected=True, label_names=("a", "b", "c"), name="small", **masks)


@pytest.fixture
def path(tmp_path: Path, graph: Graph) -> Path:
    write_store(tmp_path / "store", graph)
    return tmp_path / "store"


@pytest.fixture(scope="module")
def small_pieces() -> Any:
    """Many buckets and batches, though the tables are small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edge_buckets, "BUCKET", 7)
        patch.setattr(edge_buckets, "CHUNK", 11)
        patch.setattr(edge_stream, "ROWS", 13)
        yield
