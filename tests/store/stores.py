"""What the tests of stores share: altered headers, random tables and their import."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lgcn import Graph
from lgcn.store.format import header_digest
from lgcn.store.import_store import import_store
from lgcn.store.open_store import Store, open_store
from lgcn.utils.memory import anonymous_memory

RandomGraph = Callable[..., Graph]


def alter(path: Path, change: Callable[[dict[str, Any]], Any], *, sign: bool = True) -> None:
    """Changes the header, with a checksum that fits."""
    header = json.loads((path / "header.json").read_text())
    change(header)
    if sign:
        header["sha256"] = header_digest(header)
    (path / "header.json").write_text(json.dumps(header))


ROOMY = anonymous_memory() + 2 * 10**9  # the tests' process may be large already


def imported(path: Path, *args: Any, **options: Any) -> tuple[Store, dict[str, Any]]:
    counts = import_store(path, *args, **({"memory": ROOMY} | options))
    assert not list(path.parent.glob(f"{path.name}.partial-*"))
    return open_store(path), counts


def assert_same(found: Graph, expected: Graph) -> None:
    assert torch.equal(found.rowptr, expected.rowptr.long())
    assert torch.equal(found.col, expected.col)
    for name in ("edge_weight", "x", "y", "train_mask", "val_mask", "test_mask"):
        a, b = getattr(found, name), getattr(expected, name)
        assert (a is None) == (b is None), name
        if a is None:
            continue
        assert torch.equal(a.to_dense().to(b.dtype), b.to_dense()), name
    assert found.label_names == expected.label_names
    if expected.encoder is not None:
        assert found.encoder is not None
        assert found.encoder.to_dict() == expected.encoder.to_dict()


def random_tables(seed: int, num_nodes: int, num_edges: int, text: bool) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    ids = rng.permutation(3 * num_nodes)[:num_nodes] - num_nodes
    names = np.array([f"n{id}" for id in ids], dtype=object) if text else ids
    ends = rng.integers(0, num_nodes, (2, num_edges))
    edges = {
        "source": names[ends[0]],
        "target": names[ends[1]],
        "weight": rng.integers(0, 4, num_edges) / 4,
    }
    nodes = {
        "id": names,
        "age": rng.normal(size=num_nodes),
        "color": rng.choice(["red", "green", "blue"], num_nodes).astype(object),
        "label": np.where(np.arange(num_nodes) % 2, "a", "b").astype(object),
    }
    return edges, nodes
