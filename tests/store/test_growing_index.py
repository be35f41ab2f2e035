"""Ids that are numbered as they come, against a dict."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.store.growing_index import GrowingIndex

MB = 10**6


@settings(max_examples=100)
@given(
    st.lists(
        st.lists(st.one_of(st.text(max_size=3), st.sampled_from(["a" * 8, "a" * 9])), max_size=40)
    ),
    st.sampled_from([pa.string(), pa.large_string()]),
)
def test_texts_are_numbered_as_they_come(batches: list[list[str]], kind: Any) -> None:
    index = GrowingIndex(integer=False, memory=MB)
    expected: dict[str, int] = {}
    for batch in batches:
        (found,) = index.number(pa.array(batch, kind))
        assert found.tolist() == [expected.setdefault(id, len(expected)) for id in batch]
    assert len(index) == len(expected)
    assert index.ids().to_pylist() == list(expected)


def test_whole_numbers_and_slices() -> None:
    ids = np.random.default_rng(0).integers(-(2**63), 2**63 - 1, 3000)
    ids[1500:] = ids[:1500]
    index = GrowingIndex(integer=True, memory=MB)
    for start in range(0, 3000, 700):
        part = pa.array(ids).slice(start, 700)
        assert index.number(part).tolist() == [
            [i % 1500 for i in range(start, min(start + 700, 3000))]
        ]
    assert index.ids().to_pylist() == ids[:1500].tolist()


def test_several_columns_are_numbered_row_by_row() -> None:
    index = GrowingIndex(integer=False, memory=MB)
    found = index.number(pa.array(["a", "b", "b"]), pa.array(["c", "a", "d"], pa.large_string()))
    assert found.tolist() == [[0, 2, 2], [1, 0, 3]]
    assert index.ids().to_pylist() == ["a", "c", "b", "d"]


def test_ids_that_do_not_fit() -> None:
    index = GrowingIndex(integer=False, memory=20_000)
    index.number(pa.array([f"node {i}" for i in range(100)]))
    with pytest.raises(DataError, match=r"1100 ids need \d.* kB.*20 kB are left.*Raise memory"):
        index.number(pa.array([f"node {i}" for i in range(100, 1100)]))
