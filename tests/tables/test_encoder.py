import datetime as dt
import json
import tracemalloc
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, UsageError
from lgcn.tables.encoder import FeatureEncoder

from .encoder_tables import dense, fit_all, people, table


def test_kinds_and_names_of_an_ordinary_table() -> None:
    data = people()
    made = fit_all(data)
    kinds = {column.name: column.kind for column in made.columns}
    assert kinds == {
        "age": "number",
        "price": "number",
        "member": "number",
        "joined": "date",
        "city": "category",
        "about": "text",
        "embedding": "vector",
    }
    assert made.num_features == sum(c.width for c in made.columns) == len(made.feature_names)
    assert {"age", "city=Zürich", "about:graph", "embedding[2]"} <= set(made.feature_names)
    assert made.notes == []
    x = made.transform(data)
    assert x.shape == (60, made.num_features)
    assert x.dtype == torch.float32
    assert x.layout == torch.strided
    assert "city: category" in repr(made)


def test_sparse_where_wide_and_mostly_zero() -> None:
    rng = np.random.default_rng(0)
    texts = [" ".join(f"w{j}" for j in rng.integers(0, 600, 8)) for _ in range(5000)]
    data = table(text=texts, size=rng.normal(size=5000), kind=rng.choice(list("xyz"), 5000))
    made = fit_all(data)
    x = made.transform(data)
    assert x.layout == torch.sparse_csr
    assert x.shape == (5000, made.num_features)
    torch.sparse_csr_tensor(
        x.crow_indices(), x.col_indices(), x.values(), x.shape, check_invariants=True
    )
    made._sparse = False
    torch.testing.assert_close(x.to_dense(), made.transform(data), rtol=0, atol=0)
    made._sparse = True
    assert made.transform(data.slice(0, 0)).shape == (0, made.num_features)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.2, 0.5, 0.9]))
def test_values_come_from_allowed_rows_only(seed: int, share: float) -> None:
    """The kind of a column comes from all rows, and nothing else."""
    rng = np.random.default_rng(seed)
    rows = rng.random(60) < share
    if not rows.any():
        return
    mine, other = people(60, seed), people(60, seed + 1)
    # Other rows that would spoil anything: infinite, constant, ragged.
    spoilt = {
        "price": pa.array([float("inf")] * 60),
        "city": pa.array(["Rome"] * 60),
        "about": pa.array([f"something else {i}" for i in range(60)]),
        "embedding": pa.array([[float("nan")] * 7] * 60),
    }
    others = [other, pa.table({**{n: other[n] for n in other.column_names}, **spoilt})]
    made = FeatureEncoder.fit(mine, rows).to_dict()
    for source in others:
        mask = pa.array(rows)
        mixed = {}
        for name in mine.column_names:
            old, new = mine[name].to_pylist(), source[name].to_pylist()
            values = [
                a if keep else b for a, b, keep in zip(old, new, mask.to_pylist(), strict=True)
            ]
            mixed[name] = pa.array(values, mine[name].type)
        assert FeatureEncoder.fit(pa.table(mixed), rows).to_dict() == made


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_json_keeps_every_bit(seed: int) -> None:
    data = people(50, seed)
    rows = np.random.default_rng(seed).random(50) < 0.6
    if not rows.any():
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = FeatureEncoder.fit(data, rows)
        again = FeatureEncoder.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
        assert again.to_dict() == made.to_dict()
        assert torch.equal(made.transform(data), again.transform(data))
    assert (again.columns, again.notes) == (made.columns, made.notes)
    assert again.feature_names == made.feature_names


def test_layout_of_the_table_does_not_matter() -> None:
    data = people(100)
    rows = np.arange(100) % 3 > 0
    made = FeatureEncoder.fit(data, rows)
    pieces = pa.concat_tables(
        [data.slice(0, 7), data.slice(7, 0), data.slice(7, 90), data.slice(97)]
    )
    types = {"city": pa.dictionary(pa.int8(), pa.large_string()), "about": pa.large_string()}
    for name, kind in types.items():
        i = pieces.schema.get_field_index(name)
        if pa.types.is_dictionary(kind):
            column = pieces[name].cast(pa.large_string()).dictionary_encode()
        else:
            column = pieces[name].cast(kind)
        pieces = pieces.set_column(i, name, column)
    assert pieces["city"].num_chunks > 1
    again = FeatureEncoder.fit(pieces, rows)
    assert again.to_dict() == made.to_dict()
    assert torch.equal(made.transform(pieces), made.transform(data))


def test_missing_and_extra_columns() -> None:
    data = people()
    made = fit_all(data)
    assert torch.equal(
        made.transform(data.append_column("extra", pa.nulls(60))), made.transform(data)
    )
    shuffled = data.select(list(reversed(data.column_names)))
    assert torch.equal(made.transform(shuffled), made.transform(data))
    renamed = data.rename_columns(["Age", *data.column_names[1:]])
    with pytest.raises(DataError, match=r"lacks the column 'age'.*did you mean 'Age'"):
        made.transform(renamed)
    nulls = pa.table({name: pa.nulls(3) for name in data.column_names})
    assert not made.transform(nulls).any()
    empty = made.transform(data.slice(0, 0))
    assert empty.shape == (0, made.num_features)


def test_columns_of_one_name() -> None:
    double = pa.table([pa.array([1, 2]), pa.array([1, 2])], names=["a", "a"])
    with pytest.raises(DataError, match="2 columns have the name 'a'"):
        fit_all(double)
    with pytest.raises(DataError, match="2 columns have the name 'a'"):
        fit_all(table(a=[1, 2])).transform(double)


def test_messages_do_not_grow_with_the_table() -> None:
    made = fit_all(pa.table({f"c{i}": [1, 2] for i in range(3000)}))
    with pytest.raises(DataError, match=r"lacks the columns 'c0', .*'c19', \.\.\., which") as error:
        made.transform(table(other=[1]))
    assert len(str(error.value)) < 500
    with pytest.raises(DataError, match="no feature is left") as error:
        fit_all(pa.table({f"c{i}": [1, 1] for i in range(3000)}))
    assert len(str(error.value)) < 1000
    with pytest.warns(UserWarning, match=r"for example 'x{76}\.\.\.; they") as caught:
        fit_all(table(v=["a", "b", "a"])).transform(table(v=["x" * 10**5]))
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"numeric": ["agee"]}, r"numeric_columns names 'agee'.*did you mean 'age'"),
        ({"ignore": ["qqqq"]}, r"ignore_columns names 'qqqq'.*known: age, price"),
        ({"text": ["city"], "categorical": ["city"]}, "'city' is named twice, in categorical_col"),
        ({"text": ["city", "city"]}, "'city' is named twice, in text_columns and in text_columns"),
        ({"max_words": 0}, "max_words"),
    ],
)
def test_wrong_names(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fit_all(people(), **options)


def test_a_name_alone_is_one_column() -> None:
    assert fit_all(people(), ignore="city", text="about").feature_names[0] == "age"


def test_nothing_to_learn_from() -> None:
    with pytest.raises(DataError, match="no feature is left: the table has no feature column"):
        FeatureEncoder.fit(table(a=[1, 2]), np.ones(2, dtype=bool), ignore=["a"])
    with pytest.raises(DataError, match="no feature is left: column 'a' left out: it is constant"):
        fit_all(table(a=[1, 1]))
    for size in (0, 3):
        with pytest.raises(DataError, match="to learn the features"):
            FeatureEncoder.fit(table(a=[1, 2, 3][:size]), np.zeros(size, dtype=bool))
    for rows in (np.ones(2), np.ones(3, dtype=bool)):
        with pytest.raises(ValueError, match="rows must be a boolean mask of the 2 rows"):
            FeatureEncoder.fit(table(a=[1, 2]), rows)


def test_a_pandas_table() -> None:
    frame = pd.DataFrame(
        {
            "age": [31.0, None, 27.0, 45.0],
            "plan": pd.Categorical(["a", None, "b", "c"]),
            "title": ["graphs of words", None, "deep trees", "words of trees"],
            "embedding": [np.array([1.0, 2.0]), None, np.array([3.0, 1.0]), np.array([0.0, 0.0])],
            "when": pd.to_datetime(["2020-01-01", None, "2021-01-01", "2022-01-01"]),
        }
    )
    data = pa.Table.from_pandas(frame, preserve_index=False)
    made = fit_all(data)
    kinds = [column.kind for column in made.columns]
    assert kinds == ["number", "category", "text", "vector", "date"]
    assert not made.transform(data)[1].any()


def test_no_second_copy_of_the_features() -> None:
    values = np.random.default_rng(0).normal(size=(40_000, 64)).astype(np.float32)
    vector = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), 64)
    data = pa.table({"e": vector, "n": values[:, 0], "c": (values[:, 1] > 0).astype(str)})
    made = fit_all(data)
    tracemalloc.start()
    try:
        fit_all(data)
        _, fitting = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        x = made.transform(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = x.numel() * x.element_size()
    assert fitting < size
    assert peak < 1.9 * size  # x and the blocks of one step, in float64


CELLS = {
    pa.string(): st.text(max_size=4) | st.sampled_from(["1", "x y", "2020-01-01", "NA", "inf"]),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint8(): st.integers(0, 3),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.duration("us"): st.timedeltas(-dt.timedelta(10**6), dt.timedelta(10**6)),
    pa.time64("us"): st.times(),
    pa.binary(): st.binary(max_size=2),
    pa.list_(pa.float64()): st.lists(st.floats(), max_size=3),
    pa.list_(pa.int8(), 2): st.lists(st.integers(0, 9), min_size=2, max_size=2),
    pa.list_(pa.string()): st.lists(st.text(max_size=2), max_size=2),
    pa.struct({"a": pa.int8()}): st.fixed_dictionaries({"a": st.integers(0, 9)}),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", ""]),
}


@st.composite
def tables(draw: Any, size: int) -> pa.Table:
    """Columns c0, c1, ... of any type and with any cells."""
    columns = {}
    for i in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(list(CELLS)))
        cells = draw(st.lists(st.none() | CELLS[kind], min_size=size, max_size=size))
        array, cut = pa.array(cells, kind), draw(st.integers(0, size))
        columns[f"c{i}"] = pa.chunked_array([array[:cut], array[cut:]])
    return pa.table(columns)


@settings(max_examples=150, deadline=None)
@given(size=st.integers(0, 12), data=st.data())
def test_any_table_gives_features_or_a_message(size: int, data: Any) -> None:
    first, second = data.draw(tables(size)), data.draw(tables(size))
    rows = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), dtype=bool)
    named: dict[str, Any] = {
        "numeric": [],
        "categorical": [],
        "text": [],
        "ignore": [],
        "inferred": [],
    }
    for name in first.column_names:
        named[data.draw(st.sampled_from(list(named)))].append(name)
    named.pop("inferred")
    try:
        made = FeatureEncoder.fit(first, rows, **named)
    except (DataError, UsageError):
        return
    made = FeatureEncoder.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    for other in (first, second):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                x = made.transform(other)
            except DataError:
                continue
        assert x.shape == (size, made.num_features)
        assert np.isfinite(dense(x)).all()


def test_a_hostile_scale_is_refused_without_a_warning() -> None:
    tiny = column("number", deviation=[5e-324])
    cells = pa.table({tiny["columns"][0]["name"]: [1e90]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"row 0: 1e.90 is too far"):
            FeatureEncoder.from_dict(tiny).transform(cells)


def stored(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(fit_all(people()).to_dict()))
    return {**made, **changes}


def column(kind: str, **changes: Any) -> dict[str, Any]:
    found = next(c for c in stored()["columns"] if c["kind"] == kind)
    return stored(columns=[{**found, **changes}])


@pytest.mark.parametrize(
    "bad",
    [
        None,
        [],
        "text",
        {},
        stored(format=2),
        stored(format=True),
        stored(format="1"),
        stored(sparse=1),
        stored(columns={}),
        stored(columns=[None]),
        stored(columns=[{"kind": "pickle", "name": "a"}]),
        stored(columns=[{"kind": []}]),
        stored(columns=stored()["columns"] * 2),
        stored(notes="x"),
        stored(notes=[1]),
        stored(extra=1),
        column("number", name=3),
        column("number", name="\ud800"),
        column("number", mean=[]),
        column("number", mean=1.0),
        column("number", mean=[1.0, 2.0], deviation=[1.0, 2.0]),
        column("number", mean=[float("nan")]),
        column("number", mean=[10**400]),
        column("number", mean=["1"]),
        column("number", mean=[True]),
        column("number", mean=[None]),
        column("number", deviation=[0.0]),
        column("number", deviation=[-1.0]),
        column("number", deviation=[float("inf")]),
        column("number", more=1),
        column("number", decimal=";"),
        column("number", decimal=[]),
        column("number", decimal=None),
        column("date", date_order="ydm"),
        column("date", date_order=1),
        column("category", decimal=","),
        stored(na_values="x"),
        stored(na_values=["x" * 1000]),
        stored(na_values=["x"] * 10_000),
        stored(na_values=[1]),
        column("date", deviation=[0]),
        column("vector", mean=[1.0]),
        column("vector", deviation=[0, 0, 0]),
        column("category", categories=[]),
        column("category", categories=["a", "a"]),
        column("category", categories=["a", ""]),
        column("category", categories=["a", None]),
        column("category", categories=["\udfff"]),
        column("category", categories="abc"),
        column("category", complete=None),
        column("text", words=["a", "b"]),
        column("text", words=["a"], idf=["b"]),
        column("text", words=["a"], idf=[-1]),
        column("text", words=["a", "a"], idf=[1, 1]),
        column("text", words=[], idf=[]),
        column("text", entries=float("nan")),
        column("text", entries=[1]),
        column("text", entries=1e9),
        column("text", words=["a"], idf=[1e308]),  # its square is infinite
        column("number", mean=[1e200]),
    ],
)
def test_damaged_descriptions(bad: Any) -> None:
    with pytest.raises(DataError):
        FeatureEncoder.from_dict(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), value=JSON)
def test_any_change_is_refused_or_harmless(data: Any, value: Any) -> None:
    """Replaces one value anywhere in the description."""
    made = stored()
    place: Any = made
    while True:
        key = data.draw(
            st.sampled_from(list(place) if isinstance(place, dict) else list(range(len(place))))
        )
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or data.draw(st.booleans()):
            place[key] = value
            break
        place = inner
    try:
        again = FeatureEncoder.from_dict(made)
    except DataError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            x = again.transform(people())
        except DataError:
            return
    assert x.shape == (60, again.num_features)
    assert np.isfinite(dense(x)).all()
