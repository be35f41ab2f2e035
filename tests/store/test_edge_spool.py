"""Edges that are written down and read again."""

from pathlib import Path

import numpy as np

from lgcn.store.edge_spool import EdgeSpool


def test_numbers_of_eight_bytes_are_kept(tmp_path: Path) -> None:
    spool = EdgeSpool(tmp_path, weighted=True)
    spool.add(np.array([1, -2]), np.array([3, 4]), np.array([0.5, 1.5]))
    assert spool.dtype == np.int32
    spool.add(np.array([2**40]), np.array([5]), np.array([2.0]))
    spool.add(np.array([6], np.uint16), np.array([-(2**62)]), np.array([3.0]))
    assert spool.num_edges == 4
    chunks = list(spool.chunks(3))
    assert [len(chunk[0]) for chunk in chunks] == [3, 1]
    source, target, weight = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
    assert source.tolist() == [1, -2, 2**40, 6]
    assert target.tolist() == [3, 4, 5, -(2**62)]
    assert weight.tolist() == [0.5, 1.5, 2.0, 3.0]
    spool.remove()
    assert list(tmp_path.iterdir()) == []
