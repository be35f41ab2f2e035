import pandas as pd
import pyarrow.csv
import pytest

from lgcn.tables.missing_words import missing_numbers, missing_words


def test_what_other_programs_write_is_missing() -> None:
    of_pandas = {str(value) for value in (pd.NA, pd.NaT, float("nan"), None)}
    assert {*pyarrow.csv.ConvertOptions().null_values, *of_pandas} <= missing_words()
    assert {"#DIV/0!", "#VALUE!", "#N/A", "\\N", "-", "?", "."} <= missing_words()


@pytest.mark.parametrize("word", ["n/a", "N/A", "NaN", "nan", "NAN", "Null", "NULL", "#n/a"])
def test_cases_count_alike(word: str) -> None:
    assert word in missing_words()
    assert word in missing_numbers()


def test_words_that_may_be_categories() -> None:
    for word in ("none", "Unknown", "MISSING"):
        assert word not in missing_words()
        assert word in missing_numbers()
    assert not {"0", "no", "other", "false", "-1", "+"} & missing_numbers()


def test_words_of_the_user() -> None:
    assert {"keine", "KEINE", "Keine", "k. A."} <= missing_words([" keine", "k. A."])
    assert "-" not in missing_words(signs=True)
    assert "-" in missing_words(["-"], signs=True)
