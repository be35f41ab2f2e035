"""A tiny graph in the eight files of Planetoid, as Python 2 wrote them."""

import pickle
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

NUM_TRAIN, NUM_KNOWN, NUM_FEATURES = 4, 510, 6
TEST_NODES = [512, 510, 515, 511]  # 513 and 514 are missing, as some of Citeseer's are
MISSING = [513, 514]


def python2_pickle(value: Any) -> bytes:
    """Protocol 2 with the names that modules had in the days of Python 2."""
    data = pickle.dumps(value, protocol=2)
    for new, old in (
        (b"cscipy.sparse._csr\n", b"cscipy.sparse.csr\n"),
        (b"cnumpy._core.multiarray\n", b"cnumpy.core.multiarray\n"),
    ):
        data = data.replace(new, old)
    return data


def write_planetoid(folder: Path, name: str = "cora") -> dict[str, Any]:
    """Writes the files and returns what is in them."""
    rng = np.random.default_rng(0)
    known = (rng.random((NUM_KNOWN, NUM_FEATURES)) < 0.5).astype(np.float32)
    known[:, 0] = 1
    test = np.arange(1, 1 + len(TEST_NODES) * NUM_FEATURES, dtype=np.float32)
    test = test.reshape(len(TEST_NODES), NUM_FEATURES)
    known_y = np.eye(3, dtype=np.int32)[rng.integers(0, 3, NUM_KNOWN)]
    test_y = np.eye(3, dtype=np.int32)[[2, 0, 1, 0]]
    graph: dict[int, list[int]] = defaultdict(list)
    # 0-1 both ways and twice, a self-loop, and 512-3 in one direction only.
    graph |= {0: [1, 1, 0], 1: [0], 2: [], 512: [3]}
    parts = {
        "x": scipy.sparse.csr_matrix(known[:NUM_TRAIN]),
        "y": known_y[:NUM_TRAIN],
        "tx": scipy.sparse.csr_matrix(test),
        "ty": test_y,
        "allx": scipy.sparse.csr_matrix(known),
        "ally": known_y,
        "graph": graph,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for part, value in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(python2_pickle(value))
    lines = "".join(f"{node}\n" for node in TEST_NODES)
    (folder / f"ind.{name}.test.index").write_text(lines)
    return {"known": known, "test": test, "known_y": known_y, "test_y": test_y}
