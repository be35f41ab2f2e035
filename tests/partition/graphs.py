"""Graphs of all kinds for the tests of partitions, and the comparison of shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from lgcn import Graph, open_store, write_store
from lgcn.graph.csr import sparse_features
from lgcn.partition import Partition, cut_shard
from lgcn.store.open_store import Store
from lgcn.utils.memory import anonymous_memory

ROOMY = anonymous_memory() + 2 * 10**9  # the tests' process may be large already
ARRAYS = (
    *("rowptr", "col", "edge_weight", "degree", "y", "sample_weight"),
    *("train_mask", "val_mask", "test_mask", "n_id"),
)


@st.composite
def graphs(draw: Any) -> tuple[Graph, dict[str, Any]]:
    """A graph, and the options with which it is stored."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, 80))
    num_edges = draw(st.integers(0, 3 * n))
    ends = torch.from_numpy(rng.integers(0, max(1, n - n // 4), (2, num_edges)))  # some isolated
    directed = draw(st.booleans())
    if not directed:
        ends = torch.cat([ends, ends.flip(0)], 1)
    fields: dict[str, Any] = {}
    if draw(st.booleans()):
        weight = torch.from_numpy(rng.random(num_edges).astype(np.float32))
        fields["edge_weight"] = weight if directed else weight.repeat(2)
    options: dict[str, Any] = {}
    kind = draw(st.sampled_from(("none", "sparse", "float32", "float16", "bfloat16", "uint8")))
    x = torch.from_numpy(rng.standard_normal((n, 3)).astype(np.float32))
    if kind == "sparse":
        thin = (x * (x > 0.3)).to_sparse_csr()
        fields["x"] = sparse_features(thin.crow_indices(), thin.col_indices(), thin.values(), 3)
    elif kind != "none":
        fields["x"], options["features"] = x, kind
    task = draw(st.sampled_from(("none", "classes", "labels", "numbers")))
    if task == "classes":
        fields["y"] = torch.from_numpy(rng.integers(-1, 3, n))
        fields["label_names"] = draw(st.sampled_from((None, ("a", "b", "c"))))
    elif task == "labels":
        fields["y"] = torch.from_numpy(rng.integers(0, 2, (n, 2)))
    elif task == "numbers":
        fields["y"] = torch.from_numpy(rng.standard_normal(n))
    if task != "none" and draw(st.booleans()):
        split = rng.integers(0, 4, n)
        for number, name in enumerate(("train", "val", "test")):
            fields[f"{name}_mask"] = torch.from_numpy(split == number)
        fields["sample_weight"] = torch.from_numpy(rng.random(n).astype(np.float32))
    ids = draw(st.sampled_from(("none", "numbers", "strings")))
    if ids != "none":
        numbers = rng.permutation(n) + 5
        options["node_ids"] = numbers if ids == "numbers" else np.array([f"ä{i}" for i in numbers])
    return Graph.as_given(ends, n, **fields), options


def stored(path: Path, graph: Graph, **options: Any) -> Store:
    write_store(path, graph, overwrite=True, **options)
    return open_store(path)


def part_of(partition: Partition) -> Any:
    """The part of each node, from the shards."""
    part = torch.full((partition.num_nodes,), -1)
    for number in range(partition.num_parts):
        shard = partition.shard(number)
        assert shard.graph.n_id is not None
        part[shard.graph.n_id[: shard.num_owned]] = number
    assert (part >= 0).all()
    return part


def assert_cut(partition: Partition, store: Store) -> None:
    """Every shard is what `cut_shard` makes of the store, and features are copied bit by bit."""
    part = part_of(partition)
    for number in range(partition.num_parts):
        found, wanted = partition.shard(number), cut_shard(store.graph, part, number)
        assert (found.number, found.num_parts) == (wanted.number, wanted.num_parts)
        assert (found.num_owned, found.num_nodes) == (wanted.num_owned, wanted.num_nodes)
        assert found.owner.tolist() == wanted.owner.tolist()
        assert found.graph.label_names == wanted.graph.label_names
        for name in ARRAYS:
            a, b = getattr(found.graph, name), getattr(wanted.graph, name)
            assert (a is None) == (b is None), name
            if a is not None and b is not None:
                assert torch.equal(a.to(b.dtype), b) or (a.isnan() == b.isnan()).all(), name
        if wanted.graph.x is not None:
            a, b = found.graph.features(), wanted.graph.features()
            assert torch.equal(a.to_dense(), b.to_dense())
        assert wanted.graph.n_id is not None
        nodes = wanted.graph.n_id.numpy()
        folder = open_store(partition.folder / f"part-{number:04d}")
        for name in {"x", "ids"} & set(store.arrays):
            assert folder.arrays[name].tobytes() == store.arrays[name][nodes].tobytes()
        assert (found.node_ids is None) == (not {"ids", "ids_bytes"} & set(store.arrays))
        if found.node_ids is not None:
            ids = store.node_ids(0, store.graph.num_nodes).to_pylist()
            own = found.node_ids(0, len(nodes)).to_pylist()
            assert own == [ids[node] for node in nodes]
