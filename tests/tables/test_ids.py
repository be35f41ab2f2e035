"""Ids of any kind, and node numbers by them, against a Python dict."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError
from lgcn.tables.ids import NodeIndex, to_ids

INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.one_of(
    st.lists(st.integers(-20, 60), min_size=1, unique=True),
    st.lists(INT64, min_size=1, unique=True),
    st.lists(st.text(max_size=20), min_size=1, unique=True),
    st.lists(st.text("ab", min_size=6, max_size=26), min_size=1, unique=True),
)


def array(values: list[Any], kind: Any = None) -> Any:
    kind = kind or (pa.int64() if not values or isinstance(values[0], int) else pa.string())
    return pa.array(values, kind)


def where(row: int) -> str:
    return f"a.csv, row {row}"


def test_the_largest_and_the_smallest_id_are_found() -> None:
    for last in (2**63 - 1, -(2**63)):
        ids = [last, last - 1 if last > 0 else last + 1]
        found = NodeIndex(array(ids)).find(array([*ids, 0]))
        assert found.tolist() == [0, 1, -1]


@settings(max_examples=200)
@given(IDS, st.data())
def test_find_is_a_dict(ids: list[Any], data: st.DataObject) -> None:
    strange = INT64 if isinstance(ids[0], int) else st.text(max_size=20)
    wanted = data.draw(st.lists(st.one_of(st.sampled_from(ids), strange)))
    start = data.draw(st.integers(0, len(wanted)))
    index = NodeIndex(array(ids))
    assert index.repeated is None
    numbers = {id: i for i, id in enumerate(ids)}
    kind = (
        None
        if isinstance(ids[0], int)
        else data.draw(st.sampled_from([pa.string(), pa.large_string()]))
    )
    found = index.find(array(wanted, kind or pa.int64()).slice(start))
    assert found.dtype == np.int32
    assert found.tolist() == [numbers.get(id, -1) for id in wanted[start:]]


@settings(max_examples=100)
@given(IDS, st.data())
def test_the_first_repeated_id_is_found(ids: list[Any], data: st.DataObject) -> None:
    original = data.draw(st.integers(0, len(ids) - 1))
    copy = data.draw(st.integers(original + 1, len(ids)))
    ids.insert(copy, ids[original])
    assert NodeIndex(array(ids)).repeated == (original, copy)


def test_many_ids() -> None:
    rng = np.random.default_rng(0)
    numbers = rng.choice(2**40, 20_000, replace=False)
    order = rng.permutation(20_000)
    for ids in (numbers, np.char.add("node ", numbers.astype(str))):
        index = NodeIndex(pa.array(ids))
        assert (index.find(pa.array(ids[order])) == order).all()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None], pa.int8()), pa.array([1, None], pa.int64())),
        (pa.array([3.0, None, np.nan]), pa.array([3, None, None], pa.int64())),
        (pa.array(["a", ""]), pa.array(["a", ""])),
        (pa.array(["a", "b"]).dictionary_encode(), pa.array(["a", "b"])),
        (pa.array([7], pa.uint64()), pa.array([7], pa.int64())),
        (pa.array([2**64 - 1], pa.uint64()), pa.array([str(2**64 - 1)], pa.large_string())),
        (pa.array([None, None]), pa.array([None, None], pa.string())),
        (pa.array([np.float16(2), None], pa.float16()), pa.array([2, None], pa.int64())),
    ],
)
def test_what_columns_become(column: Any, expected: Any) -> None:
    assert to_ids(column, where).equals(expected)
    assert to_ids(pa.chunked_array([column]), where).equals(expected)


def test_one_kind_as_the_other() -> None:
    assert to_ids(pa.array(["7", "-3"]), where, integer=True).to_pylist() == [7, -3]
    largest = [2**63 - 1, 1 - 2**63, 10**18]
    assert to_ids(pa.array(map(str, largest)), where, integer=True).to_pylist() == largest
    for text in (str(2**63), str(-(2**63) - 1), "1" * 20):
        with pytest.raises(DataError, match=f"whole number.*{text}"):
            to_ids(pa.array(["1", text]), where, integer=True)
    views = pa.array(["7", None], pa.string_view())
    assert to_ids(views, where, integer=True).to_pylist() == [7, None]
    assert to_ids(pa.array([7, -3]), where, integer=False).to_pylist() == ["7", "-3"]
    assert to_ids(pa.array([2**63 - 1], pa.uint64()), where, integer=True).to_pylist() == [
        2**63 - 1
    ]


@pytest.mark.parametrize(
    ("column", "integer", "message"),
    [
        (pa.array([1.0, 2.5]), None, r"row 1: an id must .*or text, got 2.5"),
        (pa.array([1e300]), None, r"row 0: an id must be at most 2\*\*53"),
        (pa.array([np.inf]), None, "row 0"),
        (pa.array(["1", "x"]), True, r"row 1: an id must .*got 'x'"),
        (pa.array(["1", "9" * 30]), True, "row 1: an id must be"),
        (pa.array([2**64 - 1], pa.uint64()), True, r"row 0.*below 2\*\*63"),
        (pa.array([True]), None, "whole numbers or strings, got bool"),
        (pa.array([[1]]), None, "whole numbers or strings, got list"),
        (pa.array([1.0]), False, "whole numbers or strings, got double"),
    ],
)
def test_what_is_no_id(column: Any, integer: bool | None, message: str) -> None:
    with pytest.raises(DataError, match=rf"a\.csv, .*{message}"):
        to_ids(column, where, integer=integer)
