"""Scikit-learn's encoders on the allowed rows are the oracle."""

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from lgcn.errors import DataError
from lgcn.tables import column_encoders
from lgcn.tables.cell_options import CellOptions
from lgcn.tables.encoder import FeatureEncoder

from .encoder_tables import dense, fit_all, people, table


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(
        st.one_of(st.none(), st.just(float("nan")), st.floats(-1e6, 1e6)), min_size=2, max_size=40
    ),
    data=st.data(),
)
def test_numbers_are_those_of_standard_scaler(values: list[float | None], data: Any) -> None:
    rows = np.array(data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values))))
    column = np.array([np.nan if v is None else v for v in values])
    source = table(anchor=np.arange(len(values)), value=values)
    seen = column[rows & ~np.isnan(column)]
    if rows.sum() < 2:
        return
    made = FeatureEncoder.fit(source.cast(pa.schema({"anchor": "f8", "value": "f8"})), rows)
    if len(seen) == 0 or seen.std() <= 1e-12 * max(1, abs(seen).max()):
        return  # empty or constant, or so nearly that scikit-learn's bound differs from ours
    scaler = StandardScaler().fit(column[rows, None])
    wanted = np.nan_to_num(scaler.transform(column[:, None])[:, 0])
    got = made.transform(source)[:, 1].numpy()
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rows", [np.arange(300) % 3 > 0, np.arange(300) < 1000])
def test_categories_are_those_of_one_hot_encoder(rows: Any) -> None:
    rng = np.random.default_rng(0)
    values = rng.choice(np.array(["b", "ä", "a", "日", "B c"]), 300)
    made = FeatureEncoder.fit(table(color=values.tolist()), rows)
    oracle = OneHotEncoder(handle_unknown="ignore", sparse_output=False).fit(values[rows, None])
    assert made.feature_names == tuple(f"color={c}" for c in oracle.categories_[0])
    x = made.transform(table(color=values.tolist()))
    np.testing.assert_array_equal(x.numpy(), oracle.transform(values[:, None]))


@pytest.mark.parametrize("max_words", [5, 2000])
def test_texts_are_those_of_tfidf_vectorizer(max_words: int) -> None:
    data = people(200)
    texts = [text or "" for text in data["about"].to_pylist()]
    rows = np.arange(200) % 2 == 0
    made = FeatureEncoder.fit(data.select(["about"]), rows, max_words=max_words)
    allowed = [t for t, r in zip(texts, rows, strict=True) if r and t]
    oracle = TfidfVectorizer(max_features=max_words).fit(allowed)
    names = oracle.get_feature_names_out()
    assert made.feature_names == tuple(f"about:{word}" for word in names)
    wanted = oracle.transform(texts).toarray()
    np.testing.assert_allclose(dense(made.transform(data)), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    "kind",
    ["int8", "uint64", "float16", "float32", "bool", "decimal128", "dictionary", "string"],
)
def test_types_of_numbers(kind: str) -> None:
    values = [0, 1, 1, None, 0, 1]
    kinds = {
        "bool": pa.bool_(),
        "decimal128": pa.decimal128(5, 2),
        "dictionary": pa.dictionary(pa.int32(), pa.int64()),
    }
    if kind == "float16":
        array = pa.array([None if v is None else np.float16(v) for v in values], pa.float16())
    elif kind == "decimal128":
        array = pa.array([None if v is None else Decimal(v) for v in values], kinds[kind])
    elif kind == "dictionary":
        array = pa.array(values).dictionary_encode()
    elif kind == "string":
        array = pa.array(["0", " 1", "1.0", "NA", "", "1e0"])
    elif kind == "bool":
        array = pa.array([None if v is None else bool(v) for v in values])
    else:
        array = pa.array(values, getattr(pa, kind)())
    wanted = [0, 1, 1, None, None, 1] if kind == "string" else values
    data = pa.table({"v": array})
    x = fit_all(data, numeric=["v"]).transform(data)
    scaler = StandardScaler()
    column = np.array([[np.nan if v is None else float(v)] for v in wanted])
    np.testing.assert_allclose(x, np.nan_to_num(scaler.fit_transform(column)), rtol=1e-6)


def test_large_integers_keep_their_differences() -> None:
    values = np.arange(10, dtype=np.int64) + 2**40
    x = fit_all(table(v=values)).transform(table(v=values))
    np.testing.assert_allclose(x, StandardScaler().fit_transform(np.arange(10.0)[:, None]), 1e-5)


def test_dates_are_the_same_in_any_unit() -> None:
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i * i) for i in range(6)]
    first = pa.table({"t": pa.array(days, pa.timestamp("ns"))})
    made = fit_all(first)
    assert made.columns[0].kind == "date"
    x = made.transform(first)
    for array in (
        pa.array(days, pa.timestamp("s")),
        pa.array(days, pa.timestamp("ms", "UTC")),
        pa.array([d.date() for d in days]),
        pa.array([d.date() for d in days], pa.date64()),
        pa.array([d.isoformat() for d in days]),
        pa.array([d.isoformat() + "Z" for d in days]),
        pa.array([d.date().isoformat() for d in days]),
    ):
        assert torch.equal(made.transform(pa.table({"t": array})), x)
    assert fit_all(table(t=[d.date().isoformat() for d in days])).columns[0].kind == "date"
    with pytest.raises(DataError, match="'t' must hold dates or times, got int64"):
        made.transform(table(t=[1, 2]))
    for times in ([dt.time(1), dt.time(2)], [dt.timedelta(1), dt.timedelta(2)]):
        assert fit_all(table(t=times)).transform(table(t=times)).flatten().tolist() == [-1, 1]


@pytest.mark.parametrize("kind", [pa.list_, pa.large_list, lambda t: pa.list_(t, 2)])
def test_vectors(kind: Any) -> None:
    values = [[1.0, 5.0], None, [3.0, 5.0], [2.0, None]]
    data = pa.table({"e": pa.array([[9.0, 9.0], *values], kind(pa.float32()))}).slice(1)
    made = fit_all(data)
    deviation = np.std([1, 3, 2])
    wanted = np.array([[-1 / deviation, 0], [0, 0], [1 / deviation, 0], [0, 0]])
    np.testing.assert_allclose(made.transform(data), wanted, rtol=1e-6)
    assert made.notes == ["column 'e' has 1 of 2 numbers that are constant; they become zeros"]
    ragged = pa.table({"e": pa.array([[1.0, 2.0], [1.0, 2.0, 3.0]])})
    with pytest.raises(DataError, match=r"'e', row 1: want a list of 2 numbers .* got 3"):
        made.transform(ragged)
    with pytest.raises(DataError, match="'e', line 3"):
        FeatureEncoder.fit(ragged, np.ones(2, dtype=bool), first_line=2)


def test_small_blocks_give_the_same() -> None:
    """The rows of a wide table are done in several blocks."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(9000, 40)) + 1000
    data = pa.table({"e": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 40)})
    rows = rng.random(9000) < 0.4
    rows[:7000] = False  # the first blocks of the fit have no allowed row
    scaler = StandardScaler().fit(vectors[rows])
    x = FeatureEncoder.fit(data, rows).transform(data)
    np.testing.assert_allclose(x, scaler.transform(vectors), rtol=1e-4, atol=1e-5)


def test_categories_do_not_depend_on_the_type() -> None:
    made = fit_all(table(v=[1, 2, 1]), categorical=["v"])
    wanted = made.transform(table(v=[1, 2, 1]))
    for values in ([1.0, 2.0, 1.0], ["1", " 2 ", "1"], [Decimal("1.00"), Decimal(2), Decimal(1)]):
        assert torch.equal(made.transform(table(v=values)), wanted)
    flags = fit_all(table(v=[True, False, None]), categorical=["v"])
    assert flags.feature_names == ("v=false", "v=true")
    assert flags.transform(table(v=[True, False, None])).tolist() == [[0, 1], [1, 0], [0, 0]]


def test_rows_that_are_left_out_are_noted() -> None:
    data = pa.table(
        {
            "good": [1.0, 2.0, 3.0, 4.0],
            "constant": [7, 7, 7, 8],
            "nan": [float("nan")] * 3 + [1.0],
            "same": ["x", "x", "x", "y"],
            "sparse": [None, None, 1.0, 2.0],
            "symbols": ["- + ?", "! !", "%", "words here"],
        }
    )
    rows = np.array([True, True, True, False])
    made = FeatureEncoder.fit(data, rows, text=["symbols"])
    assert [c.name for c in made.columns] == ["good"]
    reasons = {
        "constant": "constant (7)",
        "nan": "empty",
        "same": "'x'",
        "sparse": "constant (1)",
        "symbols": "no word",
    }
    for (name, reason), note in zip(reasons.items(), made.notes, strict=True):
        assert f"column '{name}' left out" in note
        assert reason in note
    many = fit_all(table(v=[None, None, None, 1.0, 2.0]))
    (note,) = many.notes
    assert "column 'v' is empty in 60%" in note


def test_a_sum_that_rounds_is_no_variation() -> None:
    data = table(v=[0.1] * 1000, w=[1e17 + 16 * (i % 2) for i in range(1000)], x=np.arange(1000))
    assert [c.name for c in fit_all(data).columns] == ["x"]


def test_many_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_encoders, "MAX_CATEGORIES", 2)
    values = ["c"] * 3 + ["a"] * 2 + ["b"] * 2 + ["d"]
    made = fit_all(table(v=values))
    assert made.feature_names == ("v=a", "v=c")
    (note,) = made.notes
    assert "column 'v' has 4 categories; the 2 most frequent" in note
    x = made.transform(table(v=values))  # no warning of rare categories
    assert x.sum(0).tolist() == [2, 3]


def test_unseen_categories_warn_once() -> None:
    made = fit_all(table(v=["a", "b", None, "a"]))
    values = ["c", "a", None, "d", "c", ""] * 2
    with pytest.warns(UserWarning, match="has not seen") as caught:
        x = made.transform(table(v=values))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "'v'" in message
    assert "6 rows" in message
    assert "'c', 'd'" in message
    assert x.sum(0).tolist() == [2, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, float("inf"), 2.0], r"'v', row 1: .* got inf"),
        ([1.0, 2.0, -1e200], r"'v', row 2: .* got -1e"),
        (["inf", "2", "3"], "'v', row 0: want a finite number"),
        ([[1.0], [2.0], [3.0]], "'v' must hold numbers, got list"),
        ([dt.date(2020, 1, 1)], "'v' must hold numbers, got date32"),
        ([1e90], "'v', row 0: 1e.90 is too far"),
    ],
)
def test_cells_that_are_no_numbers(values: list[Any], message: str) -> None:
    made = fit_all(table(v=[1.0, 2.0]))
    with pytest.raises(DataError, match=message):
        made.transform(table(v=values))
    with pytest.raises(
        DataError,
        match=message.replace("row 1", "line 3")
        .replace("row 2", "line 4")
        .replace("row 0", "line 2"),
    ):
        made.transform(table(v=values), first_line=2)


@pytest.mark.parametrize("named", [True, False])
def test_few_cells_that_are_no_numbers(named: bool) -> None:
    """They count as missing, and the note is the same whichever rows are allowed."""
    values = [str(i) for i in range(5000)]
    values[4321] = values[7] = "about 5"
    values[4500] = "?"
    data = table(v=values)
    wanted = np.array([np.nan if i in (7, 4321, 4500) else i for i in range(5000)])
    for rows in (np.arange(5000) % 2 == 0, np.arange(5000) % 2 == 1, np.arange(5000) < 5000):
        made = FeatureEncoder.fit(data, rows, numeric=["v"] if named else [])
        assert made.notes == [
            "column 'v' has 2 of 4999 cells that are no number and count as missing, such as "
            "'about 5'"
        ]
        with pytest.warns(UserWarning, match="'v' has 2 of 5000 cells that are no number"):
            x = made.transform(data).numpy()
        scaler = StandardScaler().fit(wanted[rows, None])
        np.testing.assert_allclose(
            x, np.nan_to_num(scaler.transform(wanted[:, None])), rtol=1e-5, atol=1e-6
        )


def test_words_for_missing_values() -> None:
    """In every kind of column, by the same rule."""
    data = table(
        n=["1", "2", "-", "unknown", "n/a"],
        c=["a", "unknown", "N/A", "b", "?"],
        t=["good words", "more words", "#N/A", "other words", "Null"],
    )
    made = fit_all(data, text="t", categorical="c")
    assert "c=unknown" in made.feature_names
    assert not {"c=N/A", "c=?"} & set(made.feature_names)
    x = dense(made.transform(data))
    assert not x[2].any()
    more = fit_all(data, text="t", categorical="c", cells=CellOptions(na_values="Unknown"))
    assert "c=unknown" not in more.feature_names
    again = FeatureEncoder.from_dict(more.to_dict())
    np.testing.assert_array_equal(dense(again.transform(data)), dense(more.transform(data)))
    # A number can stand for a missing value too, in whatever type it is stored.
    cells = CellOptions(na_values=["-999", "1970-01-01"])
    for column in ([1, 3, -999], [1.0, 3.0, -999.0], ["1", "3", "-999.0"]):
        numbers = table(v=column)
        x = fit_all(numbers, cells=cells).transform(numbers)
        assert x.flatten().tolist() == [-1, 1, 0]
    days = table(v=[dt.date(2020, 1, 1), dt.date(2020, 1, 3), dt.date(1970, 1, 1)])
    assert fit_all(days, cells=cells).transform(days).flatten().tolist() == [-1, 1, 0]


def test_a_known_category_is_never_missing() -> None:
    stored = fit_all(table(v=["a", "b", "a"])).to_dict()
    stored["columns"][0]["categories"] = ["N/A", "a"]  # by an older version
    made = FeatureEncoder.from_dict(stored)
    assert made.transform(table(v=["N/A", "a", "null"])).tolist() == [[1, 0], [0, 1], [0, 0]]


def test_new_tables_are_read_as_in_training() -> None:
    first = table(
        price=["1.234,5", "2,5", "7"], size=["1.234", "999", "5"], day=["13/1/22", "1/2/22", ""]
    )
    made = fit_all(first)
    sizes = [c.reading.decimal for c in made._columns]
    assert sizes[:2] == [",", ","]  # the second by the first
    assert "'1.234'" in made.notes[0]
    assert "thousands" in made.notes[0]
    again = FeatureEncoder.from_dict(json.loads(json.dumps(made.to_dict())))
    new = table(price=["1.234"], size=["12"], day=["2/3/22"])
    wanted = (np.array([1234, 12, dt.datetime(2022, 3, 2, tzinfo=dt.UTC).timestamp()]),)
    for encoder in (made, again):
        x = encoder.transform(new).numpy()
        mean = np.array([c.mean[0] for c in encoder._columns])  # type: ignore[union-attr]
        deviation = np.array([c.deviation[0] for c in encoder._columns])  # type: ignore[union-attr]
        np.testing.assert_allclose(x, (np.array(wanted) - mean) / deviation, rtol=1e-5)
    other = again.read_as(CellOptions(decimal=".", date_order="mdy"))
    x = other.transform(table(price=["1,234"], size=["12"], day=["3/2/22"])).numpy()
    np.testing.assert_array_equal(x, again.transform(new).numpy())
