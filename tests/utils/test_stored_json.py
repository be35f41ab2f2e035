from typing import Any

import pytest

from lgcn.errors import DataError
from lgcn.utils.stored_json import fields, numbers, strings, truth


def test_what_is_as_it_should_be_comes_back() -> None:
    assert fields({"a": 1, "b": None}, "it", "b", "a") == {"a": 1, "b": None}
    assert truth(False, "it") is False
    assert strings([], "it") == []
    assert strings(["a", "é"], "it", distinct=True) == ["a", "é"]
    assert numbers([0, 0.5, 1], "it", 0, 1) == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("bad", [None, [], {}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {1: 2, "a": 1}])
def test_other_fields(bad: Any) -> None:
    with pytest.raises(DataError, match="it must have a, b and nothing else, got"):
        fields(bad, "it", "a", "b")


@pytest.mark.parametrize("bad", [None, 0, 1, "true"])
def test_other_truths(bad: Any) -> None:
    with pytest.raises(DataError, match="it must be true or false"):
        truth(bad, "it")


@pytest.mark.parametrize("bad", [None, "ab", ["a", 1], ["\ud800"], [], ["a", "a"], [""]])
def test_other_strings(bad: Any) -> None:
    with pytest.raises(DataError, match="it must be"):
        strings(bad, "it", distinct=True)


@pytest.mark.parametrize(
    "bad", [None, 1, [], ["1"], [True], [-0.1], [1.1], [float("nan")], [float("inf")], [10**400]]
)
def test_other_numbers(bad: Any) -> None:
    with pytest.raises(DataError, match=r"it must be a list .*0 to 1"):
        numbers(bad, "it", 0, 1)
