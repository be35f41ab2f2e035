"""The 24 protein graphs: the released files, and the variant with re-derived labels.

Both are loaded the same way: the graphs side by side, training graphs first, then those for
validation and test, with masks of whole graphs. Edges are undirected; self-loops and duplicates
are removed, as in PyG.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets.locate import find_files, missing_files
from lgcn.errors import DataError
from lgcn.graph.features import standardize
from lgcn.utils.arrays import check_array, read_npy, read_npz
from lgcn.utils.files import read_json
from lgcn.utils.limits import MAX_GRAPH_JSON

if TYPE_CHECKING:
    from lgcn.graph import Graph

SPLITS = ("train", "valid", "test")
PARTS = ("graph.json", "feats.npy", "labels.npy", "graph_id.npy")
FILES = tuple(f"{split}_{part}" for split in SPLITS for part in PARTS)
REDERIVED_FILE = "ppi_rederived.npz"
SUBFOLDERS = ("ppi", "PPI/raw", "raw")


def load_ppi(root: str | Path | None = None, *, normalize_features: bool = True) -> Graph:
    """Loads PPI from the twelve files that DGL and PyG use.

    Args:
        root: See `lgcn.datasets.load_dataset`. (default: none)
        normalize_features: Give each feature mean 0 and deviation 1 over the training nodes.
            (default: `True`)
    """
    files = iter(ppi_files(root))
    edges: list[Any] = []
    feats: list[Any] = []
    labels: list[Any] = []
    graph_id: list[Any] = []
    split: list[Any] = []
    num_nodes = 0
    for number in range(len(SPLITS)):
        graph_path, feats_path, labels_path, id_path = (next(files) for _ in PARTS)
        x = check_array(read_npy(feats_path), "features", feats_path, (None, None))
        size, width = x.shape[0], feats[0].shape[1] if feats else None
        check_array(x, "features", feats_path, (size, width))
        width = labels[0].shape[1] if labels else None
        y = check_array(read_npy(labels_path), "labels", labels_path, (size, width), low=0, high=1)
        ids = check_array(read_npy(id_path), "graph numbers", id_path, (size,), integer=True)
        edges.append(_read_links(graph_path, size) + num_nodes)
        feats.append(x)
        labels.append(y)
        graph_id.append(ids)
        split.append(np.full(size, number))
        num_nodes += size
    return _assemble(
        *(np.concatenate(part) for part in (edges, feats, labels, graph_id, split)),
        normalize_features=normalize_features,
        where=ppi_files(root)[0].parent,
        name="ppi",
    )


def load_ppi_rederived(root: str | Path | None = None, *, normalize_features: bool = True) -> Graph:
    """Loads the PPI graphs with labels re-derived from gene annotations.

    Graphs, split and features are those of PPI, but 2 to 3 % of the labels differ, so scores on it
    are not PPI scores. `node_ids` are the genes (Entrez), each of which is in several graphs.

    Args:
        root: See `lgcn.datasets.load_dataset`. (default: none)
        normalize_features: See `load_ppi`. (default: `True`)
    """
    (path,) = ppi_rederived_files(root)
    names = ("edges", "feats", "labels_rederived", "graph_id", "split")
    arrays = read_npz(path, names, ("label_go_ids", "entrez"))
    edges, feats, labels, graph_id, split = (arrays[name] for name in names)
    check_array(feats, "feats", path, (None, None))
    num_nodes = len(feats)
    check_array(edges, "edges", path, (None, 2), integer=True, low=0, high=num_nodes - 1)
    check_array(labels, "labels_rederived", path, (num_nodes, None), low=0, high=1)
    check_array(graph_id, "graph_id", path, (num_nodes,), integer=True)
    check_array(split, "split", path, (num_nodes,), integer=True, low=0, high=2)
    genes = arrays.get("entrez")
    if genes is not None:
        check_array(genes, "entrez", path, (num_nodes,), integer=True)
    label_names = None
    if "label_go_ids" in arrays:
        label_names = tuple(str(name) for name in arrays["label_go_ids"].ravel())
        if len(label_names) != labels.shape[1]:
            raise DataError(
                f"{path}: label_go_ids must have one name per label ({labels.shape[1]}), "
                f"got {len(label_names)}"
            )
    return _assemble(
        edges,
        feats,
        labels,
        graph_id,
        split,
        normalize_features=normalize_features,
        where=path,
        name="ppi-rederived",
        label_names=label_names,
        genes=genes,
    )


def ppi_files(root: str | Path | None = None) -> list[Path]:
    """Where the twelve files of `ppi` are on this machine."""
    files = find_files(FILES, root, SUBFOLDERS)
    if files is None:
        advice = "for example the folder that you gave to torch_geometric.datasets.PPI"
        raise missing_files("ppi", FILES, root, SUBFOLDERS, advice=advice)
    return files


def ppi_rederived_files(root: str | Path | None = None) -> list[Path]:
    """Where the file of `ppi-rederived` is on this machine."""
    files = find_files([REDERIVED_FILE], root, SUBFOLDERS)
    if files is None:
        raise missing_files("ppi-rederived", [REDERIVED_FILE], root, SUBFOLDERS)
    return files


def _read_links(path: Path, num_nodes: int) -> Any:
    """[E, 2] from node-link JSON, whose nodes are the row numbers of the other files."""
    try:
        content = read_json(path, DataError, MAX_GRAPH_JSON)
        links = content["links"] if "links" in content else content["edges"]
        pairs = [(link["source"], link["target"]) for link in links]
        edges = np.array(pairs if pairs else np.empty((0, 2), dtype=np.int64))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise DataError(
            f"{path} must hold a node-link graph: an object with a list of links, each with source "
            f"and target ({type(error).__name__}: {error!s:.200})"
        ) from error
    return check_array(edges, "links", path, (None, 2), integer=True, low=0, high=num_nodes - 1)


def _assemble(
    edges: Any,
    feats: Any,
    labels: Any,
    graph_id: Any,
    split: Any,
    *,
    normalize_features: bool,
    where: Path,
    name: str,
    label_names: tuple[str, ...] | None = None,
    genes: Any = None,
) -> Graph:
    """Sorts nodes by split and graph, and makes one graph."""
    import torch

    from lgcn.graph import Graph

    if not (split == 0).any():
        raise DataError(f"{where}: there must be training nodes, got none")
    order = np.lexsort((graph_id, split))
    keys = np.stack([split, graph_id], axis=1)[order]
    starts = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
    ptr = np.concatenate([[0], starts, [len(order)]])
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    edges = place[edges.T]

    source_graph, target_graph = np.searchsorted(ptr, edges, side="right")
    crossing = np.flatnonzero(source_graph != target_graph)
    if len(crossing):
        u, v = order[edges[:, crossing[0]]]
        raise DataError(
            f"{where}: edges must stay within one graph, got {len(crossing)} that do not, the "
            f"first from node {u} (graph {graph_id[u]}) to node {v} (graph {graph_id[v]})"
        )
    x, split = feats[order], split[order]
    if normalize_features:
        x = standardize(x, split == 0)
    return Graph.from_edge_index(
        torch.from_numpy(edges),
        x=torch.from_numpy(x.astype(np.float32)),
        y=torch.from_numpy(labels[order].astype(np.float32)),
        train_mask=torch.from_numpy(split == 0),
        val_mask=torch.from_numpy(split == 1),
        test_mask=torch.from_numpy(split == 2),
        ptr=torch.from_numpy(ptr),
        node_ids=None if genes is None else genes[order],
        label_names=label_names,
        name=name,
    )
