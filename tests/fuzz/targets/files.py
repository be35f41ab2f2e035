"""``.npz`` graphs and Planetoid files: the graph that plain Python reads, or one clear line."""

import io
import math
import pickle
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lgcn import Graph
from lgcn.datasets.npz import load_npz
from lgcn.datasets.planetoid import NUM_VAL, PARTS, load_planetoid
from tests.datasets.planetoid_files import python2_pickle, write_planetoid

from ..rules import file_errors
from ..scratch import scratch
from ..source import Source
from ..table_files import damaged, zipped
from .tables import edits_of

DTYPES = (
    *("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "float32"),
    *("float64", "float16", ">i4", ">f8", "bool", "complex64", "U3", "S2", "M8[s]", "object"),
)
NPZ: dict[str, Any] = {
    "edges": np.array([[0, 1], [1, 0], [2, 2], [3, 1], [3, 1], [5, 0]], np.int32),
    "labels": np.array([0, 1, -1, 1, 2, 0], np.int16),
    "feat_indptr": np.array([0, 2, 3, 3, 5, 7, 7], np.int32),
    "feat_indices": np.array([4, 0, 1, 2, 3, 1, 1], np.int16),
    "feat_shape": np.array([6, 5]),
    "feat_values": np.array([3, 1, 7, 2, 2, 0.5, -1], np.float32),
    "classes": np.array(["a", "b", "c"]),
    "names": np.array(["n0", "n1", "n2", "n3", "n4", "n5"]),
}
NUMBERS = (0.0, -0.0, 0.5, 1e-40, 1e-320, 1e30, 3e38, 1e300, -1e308, np.inf, np.nan, -5.0)


def altered(source: Source, array: Any) -> Any:
    """An array with another number, type or shape."""
    kind = source.below(6)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a type cannot hold the numbers
        if kind <= 2 and array.size and array.dtype.kind in "iuf":
            changed = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
            number: Any = source.choice(NUMBERS) if array.dtype.kind == "f" else source.integer()
            changed.flat[source.below(array.size)] = number
            return changed if source.flag() else changed.astype(array.dtype)
        if kind == 3:
            try:
                return array.astype(source.choice(DTYPES))
            except (TypeError, ValueError):
                return array.astype("U3")
        if kind == 4:
            length = source.below(array.size + 2)
            return np.resize(array.ravel(), length)
        shape = source.choice(((), (-1, 1), (1, -1), (0,), (0, 2), (2, 0), (2, 2, -1)))
        if shape == ():
            return array.ravel()[:1].reshape(()) if array.size else array
        if -1 in shape:
            return np.resize(array, 4 * max(1, array.size)).reshape(shape)
        return np.empty(shape, array.dtype)


def npz_target(source: Source) -> None:
    arrays = dict(NPZ)
    for name in ("feat_values", "classes", "names"):
        if source.flag():
            del arrays[name]
    for _ in range(source.choice((0, 1, 1, 1, 2))):
        name = source.choice(list(arrays))
        arrays[name] = altered(source, arrays[name])
        if source.rarely():
            del arrays[name]
    if source.rarely():  # large numbers that compress to almost nothing
        arrays["feat_shape"] = np.array([len(NPZ["labels"]), source.integer()])
    contents = {}
    for name, array in arrays.items():
        contents[name] = npy_bytes(array)
        if source.rarely():
            contents[name] = damaged(contents[name], edits_of(source), 0)
    content = zipped(contents)
    intact = all(contents[name] == npy_bytes(arrays[name]) for name in arrays)
    if source.below(8) == 7:
        cut = source.choice((0, source.below(1000)))
        changed = damaged(content, edits_of(source), cut)
        intact = intact and changed == content
        content = changed
    path = scratch("npz") / "small.npz"
    path.write_bytes(content)
    normalize = source.flag()
    with file_errors():
        graph = load_npz(path, normalize_features=normalize)
    check_features(graph)
    if intact:
        same_as_arrays(graph, arrays, normalize)


def npy_bytes(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def check_features(graph: Graph) -> None:
    x = graph.features(torch.arange(min(3, graph.num_nodes)))
    assert x.size(0) == min(3, graph.num_nodes)
    assert graph.x is not None
    assert graph.x.values().isfinite().all(), "accepted features that are no numbers"
    assert graph.y is not None
    assert int(graph.y.max()) < graph.num_classes


def same_as_arrays(graph: Graph, arrays: dict[str, Any], normalize: bool) -> None:
    labels = [int(label) for label in arrays["labels"]]
    assert graph.y.tolist() == labels
    pairs = {(int(s), int(t)) for s, t in arrays["edges"] if s != t}
    assert sorted(zip(*graph.edge_index.tolist(), strict=True)) == sorted(
        pairs | {(t, s) for s, t in pairs}
    )
    first, second = (int(length) for length in arrays["feat_shape"])
    num_features = second if first == len(labels) else first
    indptr = [int(i) for i in arrays["feat_indptr"]]
    values = arrays.get("feat_values", np.ones(len(arrays["feat_indices"])))
    rows = []
    for start, stop in pairwise(indptr):
        row: dict[int, float] = {}
        for e in range(start, stop):
            feature = int(arrays["feat_indices"][e])
            row[feature] = row.get(feature, 0.0) + float(values[e])
        rows.append(row)
    same_features(graph, rows, num_features, normalize)


def same_features(
    graph: Graph, rows: list[dict[int, float]], num_features: int, normalize: bool
) -> None:
    assert graph.num_features == num_features
    found = graph.x
    bounds, col, values = (
        part.tolist() for part in (found.crow_indices(), found.col_indices(), found.values())
    )
    for i, row in enumerate(rows):
        total = sum(row.values())
        scale = total if normalize and total != 0 else 1.0
        expected = {feature: value / scale for feature, value in row.items()}
        part = slice(bounds[i], bounds[i + 1])
        got = dict(zip(col[part], values[part], strict=True))
        assert set(got) <= set(expected)
        for feature, value in expected.items():
            close = math.isclose(got.get(feature, 0.0), value, rel_tol=1e-5, abs_tol=1e-37)
            assert close, f"node {i}, feature {feature}: {got.get(feature)} instead of {value}"


@cache
def planetoid_parts(process_folder: Path) -> dict[str, bytes]:
    """The eight files, written to this process's folder."""
    write_planetoid(process_folder)
    return {part: (process_folder / f"ind.cora.{part}").read_bytes() for part in PARTS}


def planetoid_target(source: Source) -> None:
    folder = scratch("planetoid")
    files = dict(planetoid_parts(folder))
    wanted = dict(files)
    readable = True
    for _ in range(source.choice((0, 1, 1, 1, 2))):
        part = source.choice(PARTS)
        if source.flag():
            cut = source.choice((0, 0, source.below(3000)))
            wanted[part] = damaged(wanted[part], edits_of(source), cut)
            readable = readable and wanted[part] == files[part]
        elif part != "test.index" and readable:
            wanted[part] = python2_pickle(altered_part(source, pickle_value(files[part])))
    for part, content in wanted.items():
        if content != files[part]:
            (folder / f"ind.cora.{part}").write_bytes(content)
    normalize = source.flag()
    try:
        with file_errors():
            graph = load_planetoid("cora", folder, normalize_features=normalize)
    finally:
        for part, content in files.items():
            if wanted[part] != content:
                (folder / f"ind.cora.{part}").write_bytes(content)
    check_features(graph)
    if readable:
        values = {part: pickle_value(wanted[part]) for part in PARTS if part != "test.index"}
        same_as_parts(graph, values, wanted["test.index"], normalize)


def pickle_value(content: bytes) -> Any:
    """The content of one of our own files."""
    content = content.replace(b"cscipy.sparse.csr\n", b"cscipy.sparse._csr\n")
    content = content.replace(b"cnumpy.core.multiarray\n", b"cnumpy._core.multiarray\n")
    return pickle.loads(content, encoding="latin1")


def altered_part(source: Source, value: Any) -> Any:
    if isinstance(value, dict):
        value = dict(value)
        neighbors = [source.choice((1, 2, 515, 516, -1, source.integer())) for _ in range(3)]
        value[source.choice((0, 5, 515, 516, -1, "a", source.integer()))] = source.choice(
            (neighbors, neighbors, tuple(neighbors), None, [1.5], ["a"], [True])
        )
        return value
    if isinstance(value, np.ndarray):
        return altered(source, value)
    value = value.copy()
    name = source.choice(("data", "indices", "indptr", "_shape"))
    if name == "_shape":
        rows, columns = value.shape
        new = source.choice(((rows, 2**40), (rows + 1, columns), (rows, 0), (columns, rows)))
        value._shape = (source.choice((rows, 2**40)), columns) if source.rarely() else new
    else:
        setattr(value, name, altered(source, getattr(value, name)))
    return value


def same_as_parts(graph: Graph, parts: dict[str, Any], index: bytes, normalize: bool) -> None:
    """The graph that the files describe, node by node."""
    test_nodes = [int(line) for line in index.split()]
    known = len(parts["ally"])
    row_of: dict[int, tuple[str, int]] = {i: ("all", i) for i in range(known)}
    row_of |= {node: ("t", i) for i, node in enumerate(test_nodes)}
    num_nodes = max(test_nodes) + 1
    assert graph.num_nodes == num_nodes
    rows, labels = [], []
    for node in range(num_nodes):
        if node not in row_of:
            rows.append({})
            labels.append(-1)
            continue
        part, i = row_of[node]
        one_hot = parts[f"{part}y"][i].tolist()
        labels.append(one_hot.index(1) if 1 in one_hot else -1)
        x = parts[f"{part}x"]
        row: dict[int, float] = {}
        for e in range(int(x.indptr[i]), int(x.indptr[i + 1])):
            feature = int(x.indices[e])
            row[feature] = row.get(feature, 0.0) + float(x.data[e])
        rows.append(row)
    assert graph.y.tolist() == labels
    same_features(graph, rows, parts["allx"].shape[1], normalize)
    pairs = {(s, t) for s, near in parts["graph"].items() for t in near if s != t}
    assert sorted(zip(*graph.edge_index.tolist(), strict=True)) == sorted(
        pairs | {(t, s) for s, t in pairs}
    )
    assert int(graph.train_mask.sum()) == len(parts["y"])
    assert int(graph.val_mask.sum()) == NUM_VAL
