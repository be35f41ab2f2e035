from hypothesis import given
from hypothesis import strategies as st

from lgcn.tables.notes import MOST_NAMED, grouped_notes


def test_the_same_of_many_columns_is_one_note() -> None:
    notes = [
        f"columns.csv: column 'c{i}' left out: it is constant ({i}) in the rows used for fitting"
        for i in range(195)
    ]
    (note,) = grouped_notes(notes)
    assert note.startswith("columns.csv: 195 columns ('c0', 'c1', ")
    assert note.endswith("each left out: it is constant in the rows used for fitting")
    assert note.count("'c") == MOST_NAMED


def test_one_column_keeps_its_note() -> None:
    notes = ["a.csv: column \"it's\" left out: it is 'x' in all rows used for fitting", "other"]
    assert grouped_notes(notes) == notes


def test_constant_words_and_numbers_are_one_group() -> None:
    notes = [
        "column 'a' left out: it is 'x' in all rows used for fitting",
        "column 'b' left out: it is constant (3) in the rows used for fitting",
    ]
    assert len(grouped_notes(notes)) == 1


@given(st.lists(st.sampled_from(["one", "two", "column 'a' odd", "column 'b' odd", "x column"])))
def test_nothing_gets_lost(notes: list[str]) -> None:
    found = grouped_notes(notes)
    assert len(set(found)) == len(found)
    for name in ("'a'", "'b'"):
        assert any(name in note for note in found) == (f"column {name} odd" in notes)
    for plain in ("one", "two", "x column"):
        assert (plain in found) == (plain in notes)
