"""Odd tables in memory: they become a graph, or an error that a user can read."""

import datetime
import json
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lgcn.errors import LGCNError
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_tables import import_tables
from tests.fuzz.rules import check_message
from tests.fuzz.table_files import EDGES, NODES, NUM_NODES, dense, not_unicode, try_tables

from .odd_tables import COLUMN_NAMES, examples, rarely, some_options

# Tables in memory

INTEGERS = st.integers(-(2**63), 2**63 - 1)
STRINGS = st.one_of(st.sampled_from(["a", "b", "1", "", "NaN", "a b c"]), st.text(max_size=8))
FLOATS = st.one_of(
    st.floats(), st.sampled_from([0.0, -0.0, 1e-320, 1e308, 1e100, float("nan"), 1.0, 2.0])
)
DATES = st.dates()
# Types that Arrow can make of Python values, and these.
ARROW: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), INTEGERS),
    (pa.int64(), st.integers(0, 3)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float16(), st.floats(width=16).map(np.float16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), FLOATS),
    (pa.decimal128(38, 4), st.decimals(-(10**30), 10**30, places=4)),
    (pa.decimal256(60, 2), st.decimals(-(10**50), 10**50, places=2)),
    (pa.date32(), DATES),
    (pa.date64(), DATES),
    (pa.timestamp("ns"), st.integers(-(2**62), 2**62)),
    (pa.timestamp("s", tz="Europe/Berlin"), st.integers(0, 2**32)),
    (pa.timestamp("s"), INTEGERS),
    (pa.time32("s"), st.integers(0, 86399)),
    (pa.time64("ns"), st.integers(0, 86_399 * 10**9)),
    (pa.duration("ms"), INTEGERS),
    (pa.month_day_nano_interval(), st.just((1, 2, 3))),
    (pa.string(), STRINGS),
    (pa.large_string(), STRINGS),
    (pa.string_view(), STRINGS),
    (pa.binary(), st.binary(max_size=4)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.list_(pa.float32()), st.lists(st.floats(width=32), max_size=3)),
    (pa.list_(pa.float64(), 2), st.lists(FLOATS, min_size=2, max_size=2)),
    (pa.list_(pa.float64(), 0), st.just([])),
    (pa.large_list(pa.int32()), st.lists(st.integers(0, 5), min_size=2, max_size=2)),
    (pa.list_(pa.string()), st.lists(STRINGS, max_size=3)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.lists(st.integers(0, 3), max_size=2), max_size=2)),
    (pa.list_(pa.null()), st.just([])),
    (pa.list_view(pa.float64()), st.lists(FLOATS, max_size=2)),
    (pa.struct({"a": pa.int64()}), st.just({"a": 1})),
    (pa.map_(pa.string(), pa.int64()), st.just([("a", 1)])),
    (pa.dictionary(pa.int8(), pa.string()), STRINGS),
    (pa.dictionary(pa.int32(), pa.int64()), st.integers(0, 5)),
    (pa.dictionary(pa.int32(), pa.float64()), FLOATS),
]


@st.composite
def arrow_columns(draw: st.DrawFn, length: int) -> pa.ChunkedArray:
    kind, values = draw(st.sampled_from(ARROW))
    if draw(st.booleans()):  # few values, which may be classes
        values = st.sampled_from(draw(st.lists(values, min_size=1, max_size=3)))
    nullable = draw(st.sampled_from([0, 0, 1, 4]))
    cells = [
        None if nullable and not draw(st.integers(0, nullable)) else draw(values)
        for _ in range(length)
    ]
    array = pa.array(cells, kind)
    if kind == pa.string() and rarely(draw):
        array = not_unicode(cells)
    form = draw(st.sampled_from(["one", "two", "offset", "encoded"]))
    if form == "offset":
        array = pa.concat_arrays([array.slice(0, min(1, length)), array]).slice(min(1, length))
    if form == "encoded" and not pa.types.is_nested(kind) and not pa.types.is_dictionary(kind):
        with suppress(pa.ArrowNotImplementedError, pa.ArrowInvalid):
            array = array.dictionary_encode()
    if form == "two":
        cut = draw(st.integers(0, length))
        return pa.chunked_array([array.slice(0, cut), array.slice(cut)])
    return pa.chunked_array([array])


@st.composite
def id_columns(draw: st.DrawFn, length: int) -> pa.ChunkedArray:
    """Ids that mostly are as they should be."""
    sound = [
        [f"n{i}" for i in range(length)],
        list(range(length)),
        [i * 10**14 - 5 for i in range(length)],
        [float(i) for i in range(length)],
        ["é" * (i + 1) for i in range(length)],
    ]
    choice = draw(st.integers(0, len(sound) - 1))
    if rarely(draw):
        return draw(arrow_columns(length))
    array = pa.array(sound[choice])
    return pa.chunked_array([array.dictionary_encode() if draw(st.booleans()) else array])


@st.composite
def arrow_tables(draw: st.DrawFn) -> tuple[pa.Table, pa.Table]:
    """An edge table and a node table with columns of all types."""
    length = draw(st.sampled_from([16, 16, 16, 16, 16, 8, 2, 1, 0]))
    ids = draw(id_columns(length))
    columns = [ids, *(draw(arrow_columns(length)) for _ in range(draw(st.integers(0, 4))))]
    names = ["id", *(draw(COLUMN_NAMES) if rarely(draw) else f"c{i}" for i in range(1, 5))]
    nodes = pa.Table.from_arrays(columns, names=names[: len(columns)])
    if not rarely(draw):
        nodes = nodes.append_column("size", pa.array(np.arange(length) % 5))
    if not rarely(draw):
        nodes = nodes.append_column("topic", pa.array(["x", "y", None, "y"] * length)[:length])
    num_edges = draw(st.sampled_from([10, 10, 10, 10, 1, 0]))
    ends = []
    for _ in range(2):
        if length and draw(st.integers(0, 9)):
            places = st.integers(0, length - 1)
            picked = draw(st.lists(places, min_size=num_edges, max_size=num_edges))
            chunks = [chunk for i in picked for chunk in ids.slice(i, 1).chunks]
            ends.append(pa.chunked_array(chunks, ids.type))
        else:
            ends.append(draw(arrow_columns(num_edges)))
    ends.append(draw(arrow_columns(num_edges)))
    return pa.Table.from_arrays(ends, names=["source", "target", "w"]), nodes


@examples(200)
@given(arrow_tables(), st.sampled_from(["arrow", "pandas", ".parquet", "dict"]), st.data())
def test_arrow_tables_of_all_types(
    tmp_path_factory: pytest.TempPathFactory,
    tables: tuple[pa.Table, pa.Table],
    form: str,
    data: st.DataObject,
) -> None:
    edges, nodes = tables
    options = data.draw(some_options(nodes.column_names, edges.column_names))
    given: list[Any] = []
    for name, table in (("edges", edges), ("nodes", nodes)):
        try:
            if form == "pandas":
                given.append(table.to_pandas())
            elif form == ".parquet":
                given.append(tmp_path_factory.getbasetemp() / f"{name}.parquet")
                pyarrow.parquet.write_table(table, given[-1])
            else:
                given.append(dict(zip(table.column_names, table.columns, strict=True)))
        except (pa.ArrowException, ValueError, OverflowError, NotImplementedError):
            return  # not every type can be had in every form
    if form == "arrow":
        given = [edges, nodes]
    fit = data.draw(st.integers(0, 4)) == 0
    message = try_tables(*given, options, fit=fit)
    if not fit:
        assert try_tables(*given, options) == message


class Thing:
    """No table can hold it."""


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    FLOATS,
    STRINGS,
    st.binary(max_size=3),
    st.complex_numbers(max_magnitude=10),
    st.decimals(),
    st.fractions(max_denominator=5),
    st.datetimes(),
    st.timedeltas(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.just(float("nan")),
    st.builds(Thing),
    st.lists(st.integers(0, 3), max_size=2),
    st.lists(STRINGS, max_size=2),
    st.just({"a": 1}),
    st.just({1, 2}),
    st.just("\ud800"),
    st.just(np.zeros((2, 2))),
    st.just(np.float32(1)),  # but no datetime64, the two together crash pyarrow 26
    st.just(pd.Timestamp("2024-01-01", tz="UTC")),
    st.just(pd.Period("2024-01")),
    st.just(pd.Interval(0, 1)),
)
PANDAS: list[Any] = ["object", "category", "Int64", "string", "boolean", "Float64", "float16"]
PANDAS += ["datetime64[ns]", "Sparse[float64]", "complex128", "int8", "S3", "U3", "period[M]"]


@st.composite
def python_columns(draw: st.DrawFn, length: int) -> Any:
    """A list, an array or a series; of one type or of mixed ones."""
    values = draw(st.sampled_from([ANYTHING, st.integers(0, 2), FLOATS, STRINGS]))
    if draw(st.booleans()):
        values = st.sampled_from(draw(st.lists(values, min_size=1, max_size=3)))
    length += rarely(draw)
    cells = [draw(values) for _ in range(length)]
    form = draw(st.sampled_from(["list", "tuple", "array", "object", "series", "typed", "matrix"]))
    try:
        if form == "array":
            return np.array(cells)
        if form == "object":
            column = np.empty(length, object)
            column[:] = cells
            return column
        if form == "series":
            return pd.Series(cells)
        if form == "typed":
            return pd.Series(cells, dtype=draw(st.sampled_from(PANDAS)))
        if form == "matrix":
            return np.zeros(draw(st.sampled_from([(length, 0), (length, 2), (length, 1, 2), ()])))
    except Exception:  # pandas and NumPy have their own views of what a column is
        return cells
    return tuple(cells) if form == "tuple" else cells


@examples(200)
@given(st.data())
def test_python_tables_of_anything(data: st.DataObject) -> None:
    length = data.draw(st.sampled_from([12, 12, 12, 12, 12, 2, 1, 0]))
    names = st.one_of(COLUMN_NAMES, st.integers(0, 3), st.just(("a", 1)), st.just(float("nan")))
    nodes: dict[Any, Any] = {"id": list(range(length))}
    if not data.draw(st.integers(0, 4)):
        nodes["id"] = data.draw(python_columns(length))
    nodes |= {
        "size": [i % 5 for i in range(length)],
        "topic": [("x", "y", None)[i % 3] for i in range(length)],
    }
    for _ in range(data.draw(st.integers(1, 4))):
        nodes[data.draw(names)] = data.draw(python_columns(length))
    edges: dict[Any, Any] = {
        "source": list(range(length)),
        "target": [i * 5 % max(length, 1) for i in range(length)],
        "w": list(range(length)),
    }
    if not data.draw(st.integers(0, 9)):
        edges["w"] = data.draw(python_columns(length))
    if not data.draw(st.integers(0, 9)):
        edges["source"] = data.draw(python_columns(length))
    options = data.draw(some_options([str(name) for name in nodes], list(edges)))
    tables: list[Any] = [edges, nodes]
    if data.draw(st.booleans()):
        try:
            tables = [pd.DataFrame(edges), pd.DataFrame(nodes)]
            if data.draw(st.booleans()):  # ids in the index, or a name twice
                tables[1] = tables[1].set_index("id")
            elif data.draw(st.booleans()):
                tables[1] = pd.concat([tables[1], tables[1].iloc[:, -1:]], axis=1)
        except Exception:  # as above
            tables = [edges, nodes]
    fit = data.draw(st.integers(0, 9)) == 0
    message = try_tables(*tables, options, fit=fit)
    if not fit:
        assert try_tables(*tables, options) == message


# New tables for a trained model


def typed_nodes() -> dict[str, Any]:
    day = [datetime.date.fromisoformat(day) for day in NODES["day"]]
    vector = [[float(i), i / 3] for i in range(NUM_NODES)]
    return NODES | {"day": day, "vector": vector}


@examples(80)
@given(st.data())
def test_odd_columns_for_a_trained_encoder(data: st.DataObject) -> None:
    trained = import_tables(EDGES, typed_nodes(), label_column="topic").graph
    encoder = FeatureEncoder.from_dict(json.loads(json.dumps(trained.encoder.to_dict())))
    length = data.draw(st.sampled_from([NUM_NODES, NUM_NODES, 1]))
    nodes = {name: column[:length] for name, column in typed_nodes().items()}
    for name in data.draw(st.lists(st.sampled_from([*nodes][1:]), max_size=2, unique=True)):
        nodes[name] = data.draw(arrow_columns(length))
        if rarely(data.draw):
            del nodes[name]
    options: dict[str, Any] = {"encoder": encoder, "unknown_nodes": "drop"}
    if data.draw(st.booleans()):
        options |= {"label_column": "topic", "label_names": trained.label_names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            x = import_tables(EDGES, nodes, **options).graph.x
        except LGCNError as error:
            check_message(str(error))
        else:
            assert x.shape == (length, trained.num_features)
            assert dense(x).isfinite().all()
