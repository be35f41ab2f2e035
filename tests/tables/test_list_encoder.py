"""Lists in cells, and features with values, against scikit-learn."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MaxAbsScaler, MultiLabelBinarizer

from lgcn.errors import DataError
from lgcn.tables.cell_options import Reading
from lgcn.tables.cells import Tally
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.list_encoder import MAX_ITEMS, ListEncoder, long_column

LISTS = [["b", "a"], [], None, ["c", "a", "a"], ["b"], ["d"]]
ROWS = np.array([True, True, True, True, True, False])


def encoded(column: Any, **options: Any) -> tuple[Any, FeatureEncoder]:
    table = pa.table({"t": column})
    encoder = FeatureEncoder.fit(table, ROWS, **options)
    again = FeatureEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    x = encoder.transform(table)
    assert (again.transform(table) == x).all()
    return x.numpy(), encoder


def wanted() -> Any:
    binarizer = MultiLabelBinarizer(classes=["a", "b", "c"])
    known = [[item for item in cell or [] if item != "d"] for cell in LISTS]
    return binarizer.fit_transform(known)


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.large_string())])
def test_real_lists_are_found(kind: Any):
    x, encoder = encoded(pa.array(LISTS, kind))
    assert [(c.kind, c.width) for c in encoder.columns] == [("list", 3)]
    assert encoder.feature_names == ("t:a", "t:b", "t:c")
    assert (x == wanted()).all()


@pytest.mark.parametrize("form", [";", "; ", "|", ", ", " ", "json", "python"])
def test_lists_in_text(form: str):
    write = {"json": json.dumps, "python": repr}.get(form, form.join)
    cells = [None if cell is None else write(cell) for cell in LISTS]
    x, encoder = encoded(pa.array(cells), lists=["t"])
    assert (x == wanted()).all()
    assert encoder.columns[0].kind == "list"


def test_lists_of_ids():
    ids = pa.array([[1, 2], [], None, [3, 1], [2], [4]])
    x, encoder = encoded(ids, lists="t")
    assert encoder.feature_names == ("t:1", "t:2", "t:3")
    assert (x == [[1, 1, 0], [0] * 3, [0] * 3, [1, 0, 1], [0, 1, 0], [0] * 3]).all()
    with pytest.raises(DataError, match="list_columns"):
        encoded(ids)


def test_quoted_items_keep_their_commas():
    cells = ['["a, b", "c"]', '["c"]', '["a, b"]', "[]", None, "[1, 2]"]
    _, encoder = encoded(pa.array(cells), lists="t")
    assert encoder.feature_names == ("t:a, b", "t:c")


@settings(max_examples=30)
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdef"), st.floats(1e-6, 1e6)),
        min_size=2,
        max_size=12,
    )
)
def test_values_are_scaled_as_scikit_learn_does(cells: list[dict[str, float]]):
    names = sorted({name for cell in cells for name in cell})
    if not names:
        return
    frame = pd.DataFrame([{n: cell.get(n, 0.0) for n in names} for cell in cells])
    matrix = sp.csr_matrix(frame.to_numpy())
    column = long_column(matrix.indptr, matrix.indices, matrix.data, pa.array(names))
    data = pa.chunked_array([column])
    encoder, _ = ListEncoder.fit("f", data, np.ones(len(cells), bool), "long", Reading())
    assert encoder is not None
    assert encoder.items == names
    found = encoder.encode(data, str, Tally()).toarray()
    np.testing.assert_allclose(found, MaxAbsScaler().fit_transform(frame.to_numpy()), rtol=1e-6)


def test_what_cannot_be_a_list_column(tmp_path: Path):
    _, encoder = encoded(pa.array(LISTS))
    with pytest.raises(DataError, match="'t' must hold lists"):
        encoder.transform(pa.table({"t": ["a", "b"]}))
    assert (encoder.transform(pa.table({"t": pa.nulls(2)})) == 0).all()
    stored = encoder.to_dict()
    for changed in (
        {"scale": [1.0]},
        {"scale": [0.0] * 3},
        {"items": ["a", "a", "b"]},
        {"separator": "a"},
        {"entries": -1},
        {"items": []},
    ):
        column = {**stored["columns"][0], **changed}
        with pytest.raises(DataError):
            FeatureEncoder.from_dict({**stored, "columns": [column]})
    same = pa.array([["a"]] * 6)
    with pytest.raises(DataError, match="have the same items"):
        FeatureEncoder.fit(pa.table({"t": same}), ROWS)


def test_values_far_from_those_of_the_fit():
    def column(value: float) -> Any:
        return pa.chunked_array([long_column([0, 1], [0], [value], pa.array(["a"]))])

    encoder, _ = ListEncoder.fit("f", column(1e-20), np.array([True]), "long", Reading())
    assert encoder is not None
    with pytest.raises(DataError, match="'f', 0: the value of 'a' is more than"):
        encoder.encode(column(1.0), str, Tally())


def test_the_most_frequent_items_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.tables.list_encoder.MAX_ITEMS", 2)
    _, encoder = encoded(pa.array(LISTS))
    assert encoder.feature_names == ("t:a", "t:b")
    assert "3 items; the 2 most frequent" in encoder.notes[0]
    assert MAX_ITEMS == 100_000
