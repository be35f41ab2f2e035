"""Cora, Citeseer and Pubmed in the files of Yang et al., with their public split."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.datasets.locate import cache_folder, find_files, missing_files
from lgcn.datasets.pickles import read_pickle
from lgcn.errors import DataError
from lgcn.graph.features import row_normalize, sparse_tensor
from lgcn.utils.arrays import check_array

if TYPE_CHECKING:
    from lgcn.graph import Graph

URL = "https://raw.githubusercontent.com/kimiyoung/planetoid/master/data/"
PARTS = ("x", "y", "tx", "ty", "allx", "ally", "graph", "test.index")
PYG_NAMES = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}
NUM_VAL = 500


def load_planetoid(
    name: str, root: str | Path | None = None, *, normalize_features: bool = True
) -> Graph:
    """Loads one of the three citation graphs; downloads it if it is not on this machine.

    The split is the public one: 20 training nodes per class, 500 validation nodes and 1000 test
    nodes. Citeseer has 15 nodes without features or label; they get zeros and class -1, and are in
    no mask.

    Args:
        name: "cora", "citeseer" or "pubmed".
        root: See `lgcn.datasets.load_dataset`. (default: none)
        normalize_features: Divide each node's features by their sum. (default: `True`)
    """
    files = find_files(_file_names(name), root, _subfolders(name)) or _download(name, root)
    import scipy.sparse
    import torch

    from lgcn.graph import Graph

    paths = dict(zip(PARTS, files, strict=True))
    allx, tx = (_read_matrix(paths[part]) for part in ("allx", "tx"))
    num_known, num_test = allx.shape[0], tx.shape[0]
    num_features = allx.shape[1]
    if tx.shape[1] != num_features:
        raise DataError(
            f"{paths['tx']} has {tx.shape[1]} features and {paths['allx']} has {num_features}: "
            "the files do not belong together"
        )
    ally, ty = _read_classes(paths["ally"], num_known), _read_classes(paths["ty"], num_test)
    num_train = len(_read_classes(paths["y"], _read_matrix(paths["x"]).shape[0]))
    if num_train + NUM_VAL > num_known:
        raise DataError(
            f"{paths['allx']} must have the {num_train} training nodes and {NUM_VAL} more to "
            f"validate, got {num_known}: the files do not belong together"
        )
    test_nodes = _read_test_nodes(paths["test.index"], num_known, num_test)
    num_nodes = int(test_nodes.max()) + 1

    # Row of each node in [allx; tx; a row of zeros for the nodes that are in neither].
    row = np.full(num_nodes, num_known + num_test)
    row[:num_known] = np.arange(num_known)
    row[test_nodes] = num_known + np.arange(num_test)
    nothing = scipy.sparse.csr_matrix((1, num_features))
    features = scipy.sparse.vstack([allx, tx, nothing], format="csr")[row]
    classes = np.concatenate([ally, ty, [-1]])[row]

    masks = torch.zeros(3, num_nodes, dtype=torch.bool)
    masks[0, :num_train] = True
    masks[1, num_train : num_train + NUM_VAL] = True
    masks[2, torch.from_numpy(test_nodes)] = True
    return Graph.from_edge_index(
        torch.from_numpy(_read_edges(paths["graph"], num_nodes)),
        x=sparse_tensor(
            row_normalize(features) if normalize_features else features, f"the features of {name}"
        ),
        y=torch.from_numpy(classes),
        train_mask=masks[0].clone(),
        val_mask=masks[1].clone(),
        test_mask=masks[2].clone(),
        name=name,
    )


def planetoid_files(name: str, root: str | Path | None = None) -> list[Path]:
    """Where the eight files are on this machine."""
    files = find_files(_file_names(name), root, _subfolders(name))
    if files is None:
        raise missing_files(
            name,
            _file_names(name),
            root,
            _subfolders(name),
            advice=f"or download them by: lgcn data info {name}",
        )
    return files


def _file_names(name: str) -> list[str]:
    return [f"ind.{name}.{part}" for part in PARTS]


def _subfolders(name: str) -> list[str]:
    names = dict.fromkeys((PYG_NAMES[name], name.capitalize(), name))
    return ["planetoid", *(f"{name}/raw" for name in names)]


def _download(name: str, root: str | Path | None) -> list[Path]:
    from lgcn.datasets.download import download  # imports Python's HTTP

    targets = [cache_folder() / "planetoid" / file for file in _file_names(name)]
    try:
        for target in targets:
            if not target.is_file():
                download(URL + target.name, SHA256[target.name], target)
    except DataError as error:
        missing = missing_files(name, _file_names(name), root, _subfolders(name))
        raise DataError(f"{missing}\nDownloading them failed: {error}") from error
    return targets


def _read_matrix(path: Path) -> Any:
    from scipy.sparse import issparse

    value = read_pickle(path)
    if not issparse(value):
        raise DataError(f"{path} must hold a sparse matrix, got {type(value).__name__}")
    return value


def _read_classes(path: Path, num_rows: int) -> Any:
    """Class of each row of a one-hot matrix, -1 for rows of zeros."""
    value = read_pickle(path)
    if not isinstance(value, np.ndarray):
        raise DataError(f"{path} must hold an array, got {type(value).__name__}")
    check_array(value, "the label matrix", path, (num_rows, None), low=0, high=1)
    if value.shape[1] == 0:
        raise DataError(f"{path}: the label matrix must have one column per class, got none")
    labels = value.sum(axis=1)
    if (labels > 1).any():
        raise DataError(f"{path}: a node must have at most one class, got {int(labels.max())}")
    return np.where(labels == 0, -1, value.argmax(axis=1))


def _read_test_nodes(path: Path, num_known: int, num_test: int) -> Any:
    try:
        nodes = np.array([int(line) for line in path.read_text("ascii").split()], dtype=np.int64)
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(f"{path} must hold one node number per line: {error}") from error
    # The gaps between Citeseer's numbers add up to 15. A far larger number means damage, and would
    # ask for memory.
    limit = num_known + 2 * num_test
    check_array(nodes, "test nodes", path, (num_test,), integer=True, low=num_known, high=limit)
    if num_test == 0 or len(np.unique(nodes)) != num_test:
        raise DataError(f"{path} must hold distinct node numbers, got duplicates or none at all")
    return nodes


def _read_edges(path: Path, num_nodes: int) -> Any:
    """[2, E] from a dict that lists the neighbours of each node."""
    lists = read_pickle(path)
    if not isinstance(lists, dict) or not all(isinstance(v, list) for v in lists.values()):
        raise DataError(f"{path} must hold a dict of lists of neighbours")
    counts = [len(v) for v in lists.values()]
    # One list can be referenced for many nodes, so a small file could ask for any amount of memory.
    if 2 * sum(counts) > path.stat().st_size:  # a neighbour takes at least two bytes
        raise DataError(
            f"{path} is damaged: it lists {sum(counts)} neighbours, more than fit in its "
            f"{path.stat().st_size} bytes"
        )
    neighbors = list(itertools.chain.from_iterable(lists.values()))
    for node in itertools.chain(lists, neighbors):
        if not isinstance(node, int) or not 0 <= node < num_nodes:
            raise DataError(f"{path} must name nodes from 0 to {num_nodes - 1}, got {node!r}")
    source = np.repeat(np.array(list(lists), dtype=np.int64), counts)
    return np.stack([source, np.array(neighbors, dtype=np.int64)])


# Of the files that may be downloaded.
SHA256 = {
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.test.index": "2af990671580b6b2df5d158d1038f8292e30c9cd821b5453f399659b25b723d4",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
    "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
    "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
    "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
    "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
    "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
    "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.test.index": "b101d421688bbaecbd82e8a18f1e282378d6830f3a37666f28ebc47f844341b5",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
}
