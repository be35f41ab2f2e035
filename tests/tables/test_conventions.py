import numpy as np
import pyarrow as pa
import pytest

from lgcn.errors import UsageError
from lgcn.tables.cell_options import CellOptions
from lgcn.tables.conventions import date_convention, number_convention


def found(
    kind: str, values: list[str], usual: str | None = None, **options: str
) -> tuple[str, str]:
    """The convention, and the notes in one string."""
    cells, counts = pa.array(values, pa.large_string()), np.ones(len(values), np.int64)
    if kind == "date":
        made = date_convention(cells, counts, CellOptions(**options))
        return made.reading.date_order or "", "; ".join(made.notes)
    made = number_convention(cells, counts, CellOptions(**options), usual)
    return made.reading.decimal, "; ".join(made.notes)


def test_cells_that_only_one_convention_reads_decide() -> None:
    assert found("number", ["1,234", "1.5"]) == (".", "")
    assert found("number", ["1,234", "1,5"]) == (",", "")
    assert found("number", ["1,234", "0,500"]) == (",", "")
    assert found("number", ["1.234", "1.234.567"]) == (",", "")
    assert found("number", ["1 234", "12", "1'500"]) == (".", "")
    assert found("date", ["7/8/2022", "13/8/2022"]) == ("dmy", "")
    assert found("date", ["7/8/2022", "8/13/2022"]) == ("mdy", "")
    assert found("date", ["2022-07-08", "2022/07/08", "1/1/2022", "8 Jul 2022"]) == ("", "")


def test_columns_that_can_be_read_either_way() -> None:
    decimal, note = found("number", ["1,234", "5,678", "12"])
    assert decimal == "."
    for part in ("'1,234'", "comma", "thousands", "decimal=','"):
        assert part in note
    decimal, note = found("number", ["1,234", "5,678"], usual=",")
    assert decimal == ","
    for part in ("separate decimals", "as in other columns", "decimal='.'"):
        assert part in note
    assert found("number", ["1.234", "5.678"]) == (".", "")  # as every program reads it
    decimal, note = found("number", ["1.234", "5.678"], usual=",")
    assert (decimal, "thousands" in note) == (",", True)
    assert found("number", ["1,234"], decimal=",") == (",", "")
    order, note = found("date", ["7/8/2022", "1/2/2022"])
    assert order == "mdy"
    for part in ("'7/8/2022'", "month/day/year", "date_order='dmy'"):
        assert part in note
    order, note = found("date", ["7.8.2022", "1.2.2022"])
    assert (order, "day/month/year" in note) == ("dmy", True)
    assert found("date", ["7/8/2022"], date_order="dmy") == ("dmy", "")


def test_mixed_conventions_and_units_are_noted() -> None:
    decimal, note = found("number", ["1,5", "2,5", "2.5"])
    assert (decimal, "'1,5'" in note, "'2.5'" in note) == (",", True, True)
    order, note = found("date", ["13/1/2022", "14/1/2022", "1/13/2022"])
    assert (order, "'13/1/2022'" in note, "'1/13/2022'" in note) == ("dmy", True, True)
    assert "'EUR' and 'USD'" in found("number", ["USD 5", "EUR 7"])[1]
    assert "'%'" in found("number", ["5 %", "7"])[1]
    assert found("number", ["€ 5", "7"])[1] == ""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"decimal": ";"}, r"decimal must be 'auto', '\.' or ',', got ';'"),
        ({"decimal": None}, "decimal must be"),
        ({"date_order": "ydm"}, "date_order must be 'auto', 'dmy', 'mdy' or 'ymd', got 'ydm'"),
        ({"na_values": [1]}, "na_values must be words"),
        ({"na_values": 5}, "na_values must be words"),
        ({"na_values": ["x" * 101]}, "na_values must be at most 1000 words"),
    ],
)
def test_wrong_options(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        CellOptions(**options)
