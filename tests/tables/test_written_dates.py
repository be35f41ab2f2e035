"""Python's own formatting of dates is the oracle."""

import datetime as dt
import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.tables.written_dates import parse_dates

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def parsed(values: list[str], order: str | None = None) -> list[float]:
    found: list[float] = parse_dates(pa.array(values, pa.large_string()), order).tolist()
    return found


def seconds(*parts: int) -> float:
    return (dt.datetime(*parts, tzinfo=dt.UTC) - EPOCH).total_seconds()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "day_first", "month_first"),
    [
        ("08.07.2022", (2022, 7, 8), (2022, 8, 7)),
        ("7/8/2022", (2022, 8, 7), (2022, 7, 8)),
        ("7/8/22", (2022, 8, 7), (2022, 7, 8)),
        ("31.12.99", (1999, 12, 31), None),
        ("12/31/2022 5:06 PM", None, (2022, 12, 31, 17, 6)),
        ("12/1/2022 12:06 am", (2022, 1, 12, 0, 6), (2022, 12, 1, 0, 6)),
        ("2022/07/08", (2022, 7, 8), (2022, 7, 8)),
        ("2022-07-08T10:11:12Z", (2022, 7, 8, 10, 11, 12), (2022, 7, 8, 10, 11, 12)),
        ("2022-07-08 10:11+02:00", (2022, 7, 8, 8, 11), (2022, 7, 8, 8, 11)),
        ("8 Jul 2022", (2022, 7, 8), (2022, 7, 8)),
        ("8. July 2022", (2022, 7, 8), (2022, 7, 8)),
        ("8-Jul-22", (2022, 7, 8), (2022, 7, 8)),
        ("July 8, 2022", (2022, 7, 8), (2022, 7, 8)),
        ("Jul 8th 2022, 10:11", (2022, 7, 8, 10, 11), (2022, 7, 8, 10, 11)),
        ("Fri, 8 Jul 2022 10:11:12 -0100", (2022, 7, 8, 11, 11, 12), (2022, 7, 8, 11, 11, 12)),
        ("12:30", (1970, 1, 1, 12, 30), (1970, 1, 1, 12, 30)),
    ],
)
def test_forms(text: str, day_first: tuple[int, ...], month_first: tuple[int, ...]) -> None:
    for order, wanted in (("dmy", day_first), ("mdy", month_first)):
        (found,) = parsed([text], order)
        assert math.isnan(found) if wanted is None else found == seconds(*wanted)


def test_orders() -> None:
    points, slashes = seconds(2022, 7, 8), seconds(2022, 8, 7)
    assert parsed(["08.07.2022", "8/7/2022"]) == [points, slashes]
    assert parsed(["22/07/08", "2022-07-08"], "ymd") == [points, points]
    assert math.isnan(parsed(["8/7/2022"], "ymd")[0])


@pytest.mark.parametrize(
    "text",
    [
        *("", "8", "8.7", "1.2.10", "31.02.2022", "29.02.2023", "00.07.2022", "13/13/2022"),
        *("8.7-2022", "8 Foo 2022", "2022-07-08 25:00", "2022-07-08 10:61", "13:00 PM", "12.5.202"),
        *("8.7.2022 and more", "2022-07-08T10:00+99:00", "1 2 2022", "x" * 100),
    ],
)
def test_other_strings(text: str) -> None:
    for order in ("dmy", "mdy", "ymd", None):
        assert math.isnan(parsed([text], order)[0])


FORMS = [
    *("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ", "%d.%m.%Y %H:%M:%S.%f", "%Y/%m/%d %H:%M"),
    *("%d %b %Y %H:%M:%S", "%B %d, %Y, %I:%M:%S %p", "%d/%m/%Y %I:%M %p", "%a, %d %b %Y %H:%M"),
    *("%d-%m-%Y", "%A, %B %d, %Y", "%Y.%m.%d"),
]


@settings(max_examples=100, deadline=None)
@given(
    moments=st.lists(
        st.datetimes(dt.datetime(1000, 1, 1), dt.datetime(9999, 12, 30)), min_size=1, max_size=5
    ),
    form=st.sampled_from(FORMS),
    minutes=st.integers(-23 * 60, 23 * 60),
    data=st.data(),
)
def test_round_trips(
    moments: list[dt.datetime], form: str, minutes: int, data: st.DataObject
) -> None:
    zone = dt.timezone(dt.timedelta(minutes=minutes)) if data.draw(st.booleans()) else dt.UTC
    written = form + "%z" if zone is not dt.UTC and form[-1] in "MSf" else form
    texts = [moment.replace(tzinfo=zone).strftime(written) for moment in moments]
    zone = zone if written != form else dt.UTC
    wanted = [
        (dt.datetime.strptime(text, written).replace(tzinfo=zone) - EPOCH).total_seconds()
        for text in texts
    ]
    assert parsed(texts, "dmy") == pytest.approx(wanted, rel=1e-15, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(st.sampled_from("0123456789./-: TZJulam,+"), max_size=20)))
def test_any_string(values: list[str]) -> None:
    for order in ("dmy", None, "ymd"):
        assert len(parsed(values, order)) == len(values)
