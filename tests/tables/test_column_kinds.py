import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lgcn.errors import DataError, UsageError

from .encoder_tables import fit_all, table


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["red", "blue"] * 5, "category"),
        (["New York", "Los Angeles, CA"] * 5, "category"),
        ([f"{i}" for i in range(10)], "number"),
        ([f"0{i}" for i in range(5)] * 2, "category"),  # postal codes
        ([f"a paper on topic {i}" for i in range(10)], "text"),
        ([f"a paper on topic {i % 3}" for i in range(10)], "text"),  # too few repeat for long texts
        ([f"a paper on topic {i % 3}" for i in range(30)], "category"),
        ([f"Ann Smith{i}" for i in range(10)], "text"),
        ([f"graph;tree{i};node" for i in range(10)], "text"),
        (["red", "blue", "red"], "category"),
        ([f"0{i}" for i in range(20)], None),
        ([f"user-{i}" for i in range(10)], None),
        (["", " ", None], None),
        ([f"{i}" for i in range(9)] + ["about 5"], None),
        ([f"{i}.5" for i in range(9)] + ["nan", "NaN", "<NA>"], "number"),
        ([f"2024-01-{i:02}" for i in range(10, 30)] + ["NA", "NaT"], "date"),
        ([f"{i},{i}" for i in range(10)] + ["7"], None),  # decimal commas, not two words
        (["1,5", "2,5"] * 5, None),
        ([f"{i},{i},{i}" for i in range(10, 20)], "text"),
    ],
)
def test_inference(values: list[Any], kind: str | None) -> None:
    made = fit_all(table(column=values, other=np.arange(len(values))))
    kinds = {c.name: c.kind for c in made.columns}
    assert kinds.get("column") == kind
    assert any("'column' left out" in note for note in made.notes) == (kind is None)


def test_types_decide_before_values() -> None:
    data = pa.table(
        {
            "code": [1, 2] * 5,
            "dictionary": pa.array([f"x{i}" for i in range(10)]).dictionary_encode(),
            "struct": pa.array([{"a": 1}] * 10),
            "tags": pa.array([["a"]] * 10),
            "bytes": pa.array([b"a"] * 10),
            "null": pa.nulls(10),
        }
    )
    made = fit_all(data)
    assert [(c.name, c.kind) for c in made.columns] == [
        ("code", "number"),
        ("dictionary", "category"),
    ]
    assert len(made.notes) == 4
    named = fit_all(data, categorical=["code"], text=["dictionary"], ignore=["struct", "tags"])
    assert [(c.name, c.kind) for c in named.columns] == [
        ("code", "category"),
        ("dictionary", "text"),
    ]
    assert named.feature_names[:2] == ("code=1", "code=2")
    for option in ("numeric", "categorical", "text"):
        with pytest.raises(UsageError, match=rf"{option}.*_columns names 'tags', which holds list"):
            fit_all(data, **{option: ["tags"]})


def test_decimal_commas_are_pointed_out() -> None:
    values = ["7", "3,14", "2,72"]
    made = fit_all(table(v=values, w=[1, 2, 3]))
    (note,) = made.notes
    for part in ("column 'v' left out", "'3,14'", "categorical_columns or text_columns"):
        assert part in note
    assert fit_all(table(v=values), categorical="v").num_features == 3


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (["2,000", "17", "1,234,567"], "without the comma"),
        (["-2,000", "10,500.25"], "without the comma"),
        (["0,125", "0,250"], "with a point"),
        (["2,000", "2,5"], "with a point"),
    ],
)
def test_commas_between_thousands(values: list[str], remedy: str) -> None:
    made = fit_all(table(v=values, w=np.arange(len(values))))
    assert f"such as {values[0]!r}: write them {remedy}, or" in made.notes[0]


def test_numeric_columns_may_hold_dates() -> None:
    days = [dt.date(2024, 1, 1), None, dt.date(2024, 1, 3)]
    for column in (
        pa.array(days),
        pa.array(days).dictionary_encode(),
        pa.array(["2024-01-01", "", "2024-01-03"]),
        pa.array(["2024-01-01", None, "2024-01-03"], pa.string_view()),
    ):
        made = fit_all(pa.table({"v": column}), numeric="v")
        assert made.columns[0].kind == "date"
        assert made.transform(pa.table({"v": column})).flatten().tolist() == [-1, 0, 1]
    codes = table(v=["01", "03"])
    assert fit_all(codes, numeric="v").transform(codes).flatten().tolist() == [-1, 1]
    with pytest.raises(DataError, match="no feature is left: column 'v' left out: it is empty"):
        fit_all(pa.table({"v": pa.nulls(2)}), numeric="v")
