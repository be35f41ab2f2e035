"""Stores with altered headers and arrays, mostly with matching checksums."""

import hashlib
import json
import os
from functools import cache
from typing import Any

import numpy as np
import torch

from lgcn import Graph, select_subgraph
from lgcn.store.format import DTYPES, header_digest
from lgcn.store.open_store import Store, open_store
from lgcn.store.write_store import write_store

from ..json_values import altered_json
from ..rules import file_errors
from ..scratch import scratch
from ..source import Source
from ..table_files import damaged
from .files import NUMBERS
from .runs import Files, contents, put, table_graph
from .tables import edits_of

NUM_NODES = 12
SPLITS = ("train", "val", "test")


@cache
def whole_stores(process: int) -> list[Files]:
    """Stores that together have all arrays: dense, sparse and packed features, ids."""
    rng = np.random.default_rng(0)
    edges = torch.from_numpy(rng.integers(0, NUM_NODES, (2, 30)))
    masks: Any = {f"{s}_mask": torch.arange(NUM_NODES) % 3 == i for i, s in enumerate(SPLITS)}
    x = torch.from_numpy(rng.random((NUM_NODES, 4)).astype(np.float32))
    directed = Graph.as_given(
        edges,
        NUM_NODES,
        edge_weight=torch.rand(30, generator=torch.Generator().manual_seed(0)),
        x=x,
        y=torch.arange(NUM_NODES) % 3,
        node_ids=np.array([f"n{i}é" for i in range(NUM_NODES)]),
        ptr=torch.tensor([0, 5, NUM_NODES]),
        **masks,
    )
    several = Graph.from_edge_index(
        edges,
        NUM_NODES,
        x=(x > 0.5).float().to_sparse_csr(),
        y=(x[:, :2] > 0.5).long(),
        label_names=("a", "b"),
        node_ids=np.arange(NUM_NODES) * 7,
        **masks,
    )
    stores = []
    for graph, kind in (
        (directed, "float32"),
        (directed, "uint8"),
        (several, "float16"),
        (table_graph(), "float32"),
    ):
        folder = scratch("written") / f"store{len(stores)}"
        write_store(folder, graph, features=kind)
        stores.append(contents(folder))
    return stores


def store_target(source: Source) -> None:
    files = dict(source.choice(whole_stores(os.getpid())))
    header = json.loads(files["header.json"])
    signed = True
    for _ in range(source.choice((0, 1, 1, 1, 2))):
        name = source.choice(sorted(header["arrays"]))
        kind = source.below(5)
        if kind <= 1:
            files[f"{name}.bin"] = other_numbers(source, header, name, files[f"{name}.bin"])
        elif kind == 2:
            files[f"{name}.bin"] = damaged(
                files[f"{name}.bin"], edits_of(source), source.choice((0, source.below(64)))
            )
        elif kind == 3:
            files.pop(f"{name}.bin", None)
        else:
            signed = False
            break
        if f"{name}.bin" in files and source.below(8):
            listed = header["arrays"][name]
            pieces = hashlib.sha256(hashlib.sha256(files[f"{name}.bin"]).digest())
            listed["sha256"] = pieces.hexdigest()
        if f"{name}.bin" not in files:
            break
    if signed:
        header["sha256"] = header_digest(header)
        files["header.json"] = json.dumps(header).encode()
    else:
        files["header.json"] = other_header(source, header)
    folder = scratch("store")
    put(folder, files)
    with file_errors():
        read(source, open_store(folder))


def other_numbers(source: Source, header: dict[str, Any], name: str, content: bytes) -> bytes:
    """An array with some numbers replaced, or of another length and shape."""
    listed = header["arrays"][name]
    dtype = DTYPES[listed["dtype"]]
    whole = len(content) // dtype.itemsize * dtype.itemsize  # it may have been damaged before
    values = np.frombuffer(content[:whole], dtype).copy()
    for _ in range(source.between(1, 3) if values.size else 0):
        at = source.below(values.size)
        if dtype.kind == "f":
            with np.errstate(over="ignore"):
                values[at] = source.choice(NUMBERS)
        elif dtype.kind == "b":  # any byte, which NumPy takes for true
            values.view(np.uint8)[at] = source.below(256)
        else:
            limits = np.iinfo(dtype)
            values[at] = source.integer(int(limits.min), int(limits.max))
    if source.rarely() and values.ndim == 1:
        values = values[: source.below(values.size + 1)]
        if len(listed["shape"]) == 1:
            listed["shape"] = [len(values)]
    return values.tobytes()


def other_header(source: Source, header: dict[str, Any]) -> bytes:
    """Replaces a value in the header; the checksum matches if the header allows one."""
    text = altered_json(source, header)
    if source.below(4):
        try:
            changed = json.loads(text)
        except (ValueError, RecursionError):
            changed = None
        if isinstance(changed, dict):
            changed["sha256"] = header_digest(changed)
            text = json.dumps(changed)
    return text.encode("utf-8", errors="replace")


def read(source: Source, store: Store) -> None:
    """Reads what training and prediction read."""
    graph = store.graph
    n = graph.num_nodes
    if n == 0:
        return
    start = source.below(n)
    stop = min(n, start + 3)
    assert len(store.node_ids(start, stop)) == stop - start
    if graph.x is not None:
        assert graph.features(slice(start, stop)).shape == (stop - start, graph.num_features)
        assert graph.features(torch.tensor([start])).shape == (1, graph.num_features)
    graph.adjacency_rows(start, stop, normalize=True, self_loops=True)
    nodes = select_subgraph(graph, n_init=1, max_nodes=5, seed=source.below(100))
    part = graph.subgraph(nodes)
    assert part.num_nodes == len(nodes)
    part.adjacency(normalize=True, self_loops=True)
    assert graph.num_classes >= 0
