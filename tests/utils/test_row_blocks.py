"""Blocks of rows cover all rows in order, and are as large as their limit allows."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.utils.row_blocks import row_blocks, row_blocks_within


@pytest.mark.parametrize(
    ("num_rows", "size", "expected"),
    [
        (7, 3, [(0, 3), (3, 6), (6, 7)]),
        (6, 3, [(0, 3), (3, 6)]),
        (2, 100, [(0, 2)]),
        (2, 0, [(0, 1), (1, 2)]),
        (0, 3, []),
    ],
)
def test_blocks_of_a_size(num_rows: int, size: int, expected: list[tuple[int, int]]) -> None:
    assert list(row_blocks(num_rows, size)) == expected


def test_one_empty_block_where_it_is_wanted() -> None:
    assert list(row_blocks(0, 3, at_least_one=True)) == [(0, 0)]
    assert list(row_blocks(4, 3, at_least_one=True)) == [(0, 3), (3, 4)]


@settings(max_examples=100)
@given(
    st.lists(st.integers(0, 9), max_size=30),
    st.integers(1, 50),
    st.integers(0, 64),
    st.integers(1, 3000),
)
def test_blocks_hold_the_limit_and_cover_all_rows(
    degrees: list[int], row_cost: int, entry_cost: int, limit: int
) -> None:
    rowptr = torch.tensor([0, *degrees]).cumsum(0)
    end = 0
    for start, stop in row_blocks_within(limit, len(degrees), row_cost, rowptr, entry_cost):
        assert start == end < stop
        end = stop

        def cost(stop: int, start: int = start) -> int:
            return (stop - start) * row_cost + entry_cost * sum(degrees[start:stop])

        assert stop == start + 1 or cost(stop) <= limit
        assert stop == len(degrees) or cost(stop + 1) > limit  # and are as large as they can be
    assert end == len(degrees)


def test_without_entries_only_rows_count() -> None:
    assert list(row_blocks_within(10, 7, 3)) == [(0, 3), (3, 6), (6, 7)]
    assert list(row_blocks_within(1, 2, 3)) == [(0, 1), (1, 2)]
