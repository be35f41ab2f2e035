"""Induced sub-graphs against a dense adjacency."""

import pytest
import torch

from lgcn.ops.subgraph import induced_subgraph, marker

from .graphs import INDEX_DTYPES, random_graph


@pytest.mark.parametrize("index_dtype", INDEX_DTYPES)
@pytest.mark.parametrize("size", [0, 1, 7, 20])
def test_keeps_the_entries_among_the_nodes_in_order(index_dtype: torch.dtype, size: int) -> None:
    rowptr, col = random_graph(20, 20, 4, index_dtype=index_dtype)
    nodes = torch.randperm(20, generator=torch.Generator().manual_seed(size))[:size]
    new_rowptr, new_col, entry = induced_subgraph(rowptr, col, nodes)
    place = {node: new for new, node in enumerate(nodes.tolist())}
    expected_rowptr, expected_entry = [0], []
    for node in nodes.tolist():
        row = range(int(rowptr[node]), int(rowptr[node + 1]))
        expected_entry += [e for e in row if int(col[e]) in place]
        expected_rowptr.append(len(expected_entry))
    assert new_rowptr.tolist() == expected_rowptr
    assert entry.tolist() == expected_entry
    assert new_col.tolist() == [place[int(col[e])] for e in expected_entry]
    assert new_rowptr.dtype == new_col.dtype == index_dtype


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([0, 20], "nodes must lie between 0 and 19, got 0 to 20"),
        ([-1, 3], "nodes must lie between 0 and 19, got -1 to 3"),
        ([4, 3, 4], "nodes must be distinct, got 4 twice"),
    ],
)
def test_wrong_nodes_are_named(nodes: list[int], message: str) -> None:
    rowptr, col = random_graph(20, 20, 4)
    with pytest.raises(ValueError, match=message):
        induced_subgraph(rowptr, col, torch.tensor(nodes))


def test_no_entry_of_the_marker_carries_a_new_stamp() -> None:
    for size in (5, 3, 50):
        marks, stamp = marker(size)
        assert marks.shape[0] >= size
        assert not (marks >> 32 == stamp).any()
        marks[:size] = stamp << 32
