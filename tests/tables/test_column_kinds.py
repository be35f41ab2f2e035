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
        ([f"{i}" for i in range(9)] + ["about 5"], "number"),
        ([f"{i}" for i in range(7)] + ["about 5", "some", "few"], None),  # below 80 %
        ([f"{i}" for i in range(7)] + ["unknown", "-", "?", "n/a"], "number"),
        (["1", "none", "none"] * 4, "category"),  # too many for a missing value
        (["+", "-"] * 5, "category"),
        ([f"{i}.5" for i in range(9)] + ["nan", "NaN", "<NA>"], "number"),
        ([f"2024-01-{i:02}" for i in range(10, 30)] + ["NA", "NaT"], "date"),
        ([f"{i},{i}" for i in range(10)] + ["7"], "number"),
        (["1,5", "2,5"] * 5, "number"),
        (["1,5", "2.5"] * 5, None),  # two conventions
        (["12 %", "13 %"] * 5, "number"),
        ([f"{i:02}.07.2022" for i in range(1, 10)] + ["-", "soon"], "date"),
        ([f"7/{i}/2022" for i in range(1, 10)], "date"),
        (["13/1/2022", "1/13/2022"] * 5, None),
        (["12:30", "13:45", "-"] * 5, "date"),
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


def test_a_column_of_two_conventions_is_pointed_out() -> None:
    values = ["7", "3,14", "2.72"]
    made = fit_all(table(v=values, w=[1, 2, 3]))
    (note,) = made.notes
    for part in ("column 'v' left out", "'3,14'", "'2.72'", "categorical_columns"):
        assert part in note
    assert fit_all(table(v=values), categorical="v").num_features == 3
    made = fit_all(table(v=["1,5"] * 4 + ["2,5"] * 5 + ["2.5"]))
    first, second = made.notes
    for part in ("'2.5'", "'1,5'", "read with a decimal comma"):
        assert part in first
    assert "1 of 10 cells that are no number and count as missing, such as '2.5'" in second


def test_named_columns_of_other_cells() -> None:
    values = ["1", "a", "b", "2", "NA"]
    made = fit_all(table(v=values), numeric="v")
    with pytest.warns(UserWarning, match="'v' has 2 of 5 cells that are no number"):
        x = made.transform(table(v=values))
    assert x.flatten().tolist() == [-1, 0, 0, 1, 0]
    assert "column 'v' has 2 of 4 cells that are no number" in made.notes[0]
    assert "'a', 'b'" in made.notes[0]
    with pytest.raises(DataError, match=r"numeric_columns names 'v'.* no numbers.* 'a'"):
        fit_all(table(v=["a", "b"]), numeric="v")


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
