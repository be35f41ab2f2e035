"""The hint for a name that nobody knows."""

from lgcn.errors import did_you_mean


def test_a_close_name_is_suggested_in_its_own_spelling() -> None:
    assert did_you_mean("CORRA", ["Cora", "pubmed"]) == "did you mean 'Cora'?"


def test_where_none_is_close_all_are_listed() -> None:
    assert did_you_mean("xyz", ["cora", 7]) == "known: cora, 7"
