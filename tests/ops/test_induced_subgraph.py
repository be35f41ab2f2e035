"""Induced sub-graphs against a dense adjacency."""

import numpy as np
import pytest
import torch

from lgcn.ops import induced_subgraph as subgraph
from lgcn.ops.induced_subgraph import induced_subgraph

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


@pytest.mark.parametrize("index_dtype", INDEX_DTYPES)
@pytest.mark.parametrize("size", [1, 2, 30, 100])
def test_few_of_many_nodes(index_dtype: torch.dtype, size: int) -> None:
    rowptr, col = random_graph(1000, 1000, 8, index_dtype=index_dtype)
    nodes = torch.randperm(1000, generator=torch.Generator().manual_seed(size))[:size]
    arrays = rowptr.numpy(), col.numpy(), nodes.numpy()
    expected = subgraph._cut_with_places(*arrays)
    for actual, wanted in zip(subgraph._cut_with_table(*arrays), expected, strict=True):
        assert np.array_equal(actual, wanted)
    for found, wanted in zip(induced_subgraph(rowptr, col, nodes), expected[:3], strict=True):
        assert found.tolist() == wanted.tolist()


def test_long_rows_that_stay_in_the_subgraph() -> None:
    """Three nodes with thousands of edges among them, more than there is room for at first."""
    starts = torch.tensor([0, 5000, 5000 + 1024, 5000 + 1025])
    rowptr = torch.cat([starts, torch.full((97,), 6025)])
    col = torch.arange(6025) % 3
    found_rowptr, found_col, entry = induced_subgraph(rowptr, col, torch.tensor([2, 0, 1]))
    assert found_rowptr.tolist() == [0, 1, 5001, 6025]
    assert entry.tolist() == [6024, *range(6024)]
    assert found_col.tolist() == [(int(col[e]) + 1) % 3 for e in entry]


def test_a_node_named_twice_among_few_of_many() -> None:
    rowptr, col = random_graph(1000, 1000, 4)
    with pytest.raises(ValueError, match="nodes must be distinct, got 977 twice"):
        induced_subgraph(rowptr, col, torch.tensor([977, 3, 977]))


def test_offsets_may_have_more_bits_than_columns() -> None:
    rowptr, col = random_graph(50, 50, 4, index_dtype=torch.int32)
    nodes = torch.arange(0, 50, 10)
    expected = induced_subgraph(rowptr, col, nodes)
    for actual, wanted in zip(induced_subgraph(rowptr.long(), col, nodes), expected, strict=True):
        assert actual.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("rowptr", "col", "message"),
    [
        ([0, 2**31 - 1, -2, 4], [0, 1, 2, 0], "rowptr must not decrease"),
        ([0, 1, 2, 5], [0, 1, 2, 0], r"rowptr must end with .*\(4\)"),
        ([0, 1, 2, 4], [0, 1, 3, 0], r"col must be smaller .*\(3\)"),
        ([0, 1, 2, 4], [0, 1, -3, 0], "col must not be negative"),
    ],
)
def test_a_wrong_structure_is_refused(rowptr: list[int], col: list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        induced_subgraph(torch.tensor(rowptr).int(), torch.tensor(col).int(), torch.arange(3))


@pytest.mark.parametrize("wrong", [torch.ones(3).bool(), torch.ones(3), torch.ones(1, 3).long()])
def test_what_is_no_list_of_numbers_is_refused(wrong: torch.Tensor) -> None:
    rowptr, col = random_graph(20, 20, 4)
    with pytest.raises(ValueError, match="nodes must be a list of node numbers"):
        induced_subgraph(rowptr, col, wrong)


def test_tensors_need_not_be_contiguous() -> None:
    rowptr, col = random_graph(20, 20, 4)
    nodes = torch.tensor([3, 1, 4, 15, 9, 2])
    expected = induced_subgraph(rowptr, col, nodes[::2])
    spread = rowptr.repeat_interleave(2)[::2], col.repeat_interleave(3)[::3]
    found = induced_subgraph(*spread, nodes[::2])
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.tolist() == wanted.tolist()


def test_more_nodes_than_a_table_of_32_bits_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    rowptr, col = random_graph(200, 200, 4, index_dtype=torch.int32)
    nodes = torch.tensor([3, 1, 4])
    expected = induced_subgraph(rowptr, col, nodes)
    monkeypatch.setattr(subgraph, "MAX_INT32", 2)  # stands for 2**31 - 1
    monkeypatch.setattr(subgraph, "_induced", lambda *_: pytest.fail("would overflow"))
    found = induced_subgraph(rowptr, col, nodes)
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.tolist() == wanted.tolist()
    assert found[1].dtype == torch.int64
