import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import DataError, UsageError
from lgcn.tables.labels import read_label_columns, read_split


def table(**columns: Any) -> pa.Table:
    return pa.table({name: pa.array(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("values", "names", "y"),
    [
        (["b", " a", "b ", "", None], ("a", "b"), [1, 0, 1, -1, -1]),
        ([10, 9, None, 10], ("9", "10"), [1, 0, -1, 1]),
        ([10.0, 9.0, float("nan"), 10.0], ("9", "10"), [1, 0, -1, 1]),
        ([1.5, -2.0, -0.0, 0.0], ("-2", "0", "1.5"), [2, 0, 1, 1]),
        (["10", "9", "x"], ("10", "9", "x"), [0, 1, 2]),
        (["10", "9", ""], ("9", "10"), [1, 0, -1]),
        ([True, None, False], ("false", "true"), [1, -1, 0]),
        (["nan", "2", "1", "nan"], ("1", "2"), [-1, 1, 0, -1]),
        (["inf", "2", "1"], ("1", "2", "inf"), [2, 1, 0]),
        (["é", "日本", "e"], ("e", "é", "日本"), [1, 2, 0]),
        ([dt.date(2020, 1, 2), dt.date(2020, 1, 1)], ("2020-01-01", "2020-01-02"), [1, 0]),
        ([-1, 1, -1], ("-1", "1"), [0, 1, 0]),
        ([-1.0, 1.0, None], ("-1", "1"), [0, 1, -1]),
        ([-1, 1, 0], ("0", "1"), [-1, 1, 0]),
        (["-1", "3", "NA", "12"], ("3", "12"), [-1, 0, -1, 1]),
        ([-1.0, 0.5, 1.0], ("-1", "0.5", "1"), [0, 1, 2]),
        ([-2, -1, 0], ("-2", "-1", "0"), [0, 1, 2]),
        (["-1", "0", "x"], ("-1", "0", "x"), [0, 1, 2]),
    ],
)
def test_classes(values: list[Any], names: tuple[str, ...], y: list[int]) -> None:
    labels = read_label_columns(table(label=values), ["label"])
    assert labels.names == names
    assert labels.y.dtype == torch.long
    assert labels.y.tolist() == y
    assert labels.known.tolist() == [c >= 0 for c in y]


@pytest.mark.parametrize("word", ["NaN", "nan", "NULL", "null", "None", "NA", "N/A", "<NA>"])
def test_words_for_no_label_are_counted(word: str) -> None:
    data = table(label=["x", word, "y", f" {word} ", "n/a", ""])
    for separator in (None, ";"):
        labels = read_label_columns(data, "label", separator)
        assert labels.names == ("x", "y")
        assert labels.known.tolist() == [True, False, True, False, False, False]
        (note,) = labels.notes
        assert f"'label' has cells that count as no label: '{word}' (2), 'n/a' (1)." in note
    with pytest.raises(DataError, match=rf"one class only, 'x'.*no label: '{word}' \(2\)"):
        read_label_columns(table(label=["x", word, word]), "label")
    # A model from elsewhere may know a class of that name.
    known = read_label_columns(data, "label", None, ("x", "y", word, "n/a"))
    assert (known.y.tolist(), known.notes) == ([0, 2, 1, 2, 3, -1], ())
    flags = read_label_columns(table(a=["0", "1", word], b=[0, 1, 1]), ["a", "b"])
    assert flags.known.tolist() == [True, True, False]
    assert f"'a' has cells that count as no label: '{word}' (1)" in flags.notes[0]


def test_minus_one_is_no_label_among_whole_numbers() -> None:
    data = table(label=[-1, 0, 2, -1])
    assert "'-1' (2)" in read_label_columns(data, "label").notes[0]
    assert read_label_columns(data, "label", None, ("0", "1", "2")).y.tolist() == [-1, 0, 2, -1]
    assert read_label_columns(data, "label", None, ("-1", "0", "2")).y.tolist() == [0, 1, 2, 0]
    assert not read_label_columns(table(label=[-1, 1]), "label").notes
    with pytest.raises(DataError, match="'-1' is not a label"):
        read_label_columns(data, "label", None, ("a", "b"))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.dictionary_encode(),
        lambda c: c.cast(pa.large_string()),
        lambda c: pa.chunked_array([c[:1], c[:0], c[1:]]),
        lambda c: pa.chunked_array([c[:1].dictionary_encode(), c[1:].dictionary_encode()]),
    ],
)
def test_arrow_types(change: Callable[[Any], Any]) -> None:
    values = pa.array(["b", "a", None, "a", ""])
    labels = read_label_columns(pa.table({"label": change(values)}), "label")
    assert labels.names == ("a", "b")
    assert labels.y.tolist() == [1, 0, -1, 0, -1]


SETS = st.lists(st.sets(st.sampled_from(["a", "b c", "日", "d"])), min_size=1, max_size=20)


@settings(max_examples=60, deadline=None)
@given(sets=SETS)
def test_several_labels_a_cell(sets: list[set[str]]) -> None:
    names = tuple(sorted(set().union(*sets)))
    cells = [" ;".join(sorted(found)) for found in sets]
    lists = [sorted(found) or None for found in sets]
    if len(names) < 2:
        with pytest.raises(DataError, match=r"has no label|has one class only"):
            read_label_columns(table(label=cells), ["label"], ";")
        return
    wanted = torch.tensor([[float(name in found) for name in names] for found in sets])
    by_text = read_label_columns(table(label=cells), ["label"], ";")
    by_list = read_label_columns(
        pa.table({"label": pa.array(lists, pa.list_(pa.string()))}), ["label"]
    )
    for labels in (by_text, by_list):
        assert labels.names == names
        assert torch.equal(labels.y, wanted)
        assert labels.known.tolist() == [bool(found) for found in sets]


def test_odd_cells_of_several_labels() -> None:
    labels = read_label_columns(table(label=["b||a", "||", "a||a||", None, " b "]), ["label"], "||")
    assert labels.names == ("a", "b")
    assert labels.y.tolist() == [[1, 1], [0, 0], [1, 0], [0, 0], [0, 1]]
    assert labels.known.tolist() == [True, False, True, False, True]


def test_labels_that_are_called_0_and_1() -> None:
    labels = read_label_columns(table(label=[[0], [0, 1], [1], None]), "label")
    assert labels.names == ("0", "1")
    assert labels.y.tolist() == [[1, 0], [1, 1], [0, 1], [0, 0]]
    empty = read_label_columns(
        pa.table({"label": pa.nulls(2, pa.list_(pa.int8()))}), "label", None, "01"
    )
    assert not empty.known.any()


def test_lists_of_one_length_with_missing_ones() -> None:
    lists = pa.array([[9, 1, 2], None, [2, 3, 1]], pa.list_(pa.int8(), 3))
    labels = read_label_columns(pa.table({"label": lists}), "label")
    assert labels.names == ("1", "2", "3", "9")
    assert labels.y.tolist() == [[1, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 0]]


def test_several_columns() -> None:
    data = table(
        z=[1, 0, None, 1, 0],
        a=[True, False, True, None, False],
        s=["1", "FALSE", "true", "0", " 0 "],
        f=[1.0, 0.0, 1.0, float("nan"), 0.0],
    )
    labels = read_label_columns(data, ["z", "a", "s", "f"])
    assert labels.names == ("z", "a", "s", "f")
    assert labels.known.tolist() == [True, True, False, False, True]
    assert labels.y.tolist() == [[1] * 4, [0] * 4, [0] * 4, [0] * 4, [0] * 4]
    again = read_label_columns(data, ["a", "z"], None, ("z", "a"))
    assert again.names == ("z", "a")
    assert again.y[0].tolist() == [1, 1]
    with pytest.raises(DataError, match=r"must .*model, 'z', 'b', got 'a', 'z'"):
        read_label_columns(data, ["a", "z"], None, ("z", "b"))


def test_names_of_a_model() -> None:
    names = ("x", "a", "b")
    labels = read_label_columns(table(label=["b", None, "x"]), ["label"], None, names)
    assert (labels.names, labels.y.tolist()) == (names, [2, -1, 0])
    nothing = read_label_columns(pa.table({"label": pa.nulls(2)}), ["label"], None, names)
    assert (nothing.y.tolist(), nothing.known.tolist()) == ([-1, -1], [False, False])
    several = read_label_columns(table(label=["b,x", ""]), ["label"], ",", names)
    assert several.y.tolist() == [[1, 0, 1], [0, 0, 0]]
    with pytest.raises(DataError, match=r"'label', row 2: 'c' is .* knows \('x', 'a', 'b'\)"):
        read_label_columns(table(label=["a", "", "c"]), ["label"], None, names)
    with pytest.raises(DataError, match="'label', line 4: 'c' is not a label"):
        read_label_columns(table(label=["a", "", "b,c"]), ["label"], ",", names, first_line=2)


def test_an_empty_table() -> None:
    empty = read_label_columns(table(label=["a"]).slice(0, 0), "label", None, ("a", "b"))
    assert (empty.y.shape, empty.known.shape) == ((0,), (0,))
    several = read_label_columns(table(label=["a"]).slice(0, 0), "label", ";", ("a", "b"))
    assert several.y.shape == (0, 2)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, "", " "], "'label' has no label"),
        (["a", "a", None], "'label' has one class only, 'a'"),
        ([f"id{i}" for i in range(30)], "has 30 different values in 30 labelled rows"),
        (np.linspace(0, 1, 50), "50 different numbers.*task='regression'.*task='classification'"),
        ([f"€ 1.{i},50" for i in range(200, 250)], "50 different numbers.*task='regression'"),
        ([f"{i % 12} %" for i in range(60)], "12 different numbers in 60.*task='regression'"),
        ([{"a": 1}], "'label' holds struct"),
        ([[[1]]], "'label' holds list"),
        ([b"a", b"b"], "'label' holds binary"),
        ([[b"\xff"], [b"b"]], "'label' holds list.*lists of strings"),
        ([[0, 1, 1], [1, 0, 0]], "lists of 3 zeros and ones"),
        ([[0, 1], None, [1, 0]], "lists of 2 zeros and ones.*label_column"),
        ([[True, False], [False, False]], "lists of 2 zeros and ones"),
        (["a" * 999, "a" * 999], r"one class only, 'a{76}\.\.\.; want two"),
    ],
)
def test_columns_that_are_no_labels(values: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_label_columns(table(label=values), ["label"])


@pytest.mark.parametrize("names", [["other"], ["C1", "C2"], ["1a"]])
def test_classes_that_are_numbers_and_words(names: list[str]) -> None:
    cells = [*map(str, range(1, 15)), *names] * 6
    assert len(read_label_columns(table(label=cells), ["label"]).names) == 14 + len(names)


def test_wrong_use() -> None:
    data = table(label=["a", "b"], topic=[0, 1], lists=[["a"], ["b"]])
    with pytest.raises(UsageError, match=r"label_column names column 'Topic'.*mean 'topic'"):
        read_label_columns(data, ["Topic"])
    with pytest.raises(UsageError, match="at least one column"):
        read_label_columns(data, [])
    with pytest.raises(UsageError, match="every column once"):
        read_label_columns(data, ["label", "label"])
    with pytest.raises(UsageError, match=r"label_separator .*label column"):
        read_label_columns(data, ["label", "topic"], ";")
    with pytest.raises(UsageError, match="'lists' already holds lists"):
        read_label_columns(data, ["lists"], ";")
    with pytest.raises(UsageError, match="at least one character"):
        read_label_columns(data, ["label"], "")
    with pytest.raises(DataError, match=r"'label', row 0: want 0 or 1, .* got 'a'"):
        read_label_columns(data, ["topic", "label"])
    with pytest.raises(DataError, match="no row without an empty cell"):
        read_label_columns(table(a=[1, None], b=[None, 0]), ["a", "b"])
    with pytest.raises(DataError, match="'lists' holds list"):
        read_label_columns(data, ["topic", "lists"])
    double = pa.table([pa.array([1, 2]), pa.array([1, 2])], names=["a", "a"])
    with pytest.raises(DataError, match="2 columns 'a'"):
        read_label_columns(double, ["a"])


def test_split_column() -> None:
    words = ["train", " Train", "val", "VALID", "validation", "test", "", None, "test", "train"]
    known = np.array([True] * 8 + [False] * 2)
    train, val, test = read_split(table(split=words), "split", known)
    assert train.nonzero().flatten().tolist() == [0, 1]
    assert val.nonzero().flatten().tolist() == [2, 3, 4]
    assert test.nonzero().flatten().tolist() == [5]
    assert {mask.dtype for mask in (train, val, test)} == {torch.bool}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "holdout"], "'split', line 3: want train, val or test .* got 'holdout'"),
        ([1, 2], "'split', line 2: .* got 1"),
        (["test", "val"], "marks no labelled row as train"),
        ([None, ""], "marks no labelled row as train"),
        ([["train"], []], "'split' holds list"),
    ],
)
def test_columns_that_are_no_split(words: list[Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_split(table(split=words), "split", np.ones(2, dtype=bool), first_line=2)
    with pytest.raises(UsageError, match=r"split_column names column 'spilt'.*mean 'split'"):
        read_split(table(split=words), "spilt", np.ones(2, dtype=bool))
