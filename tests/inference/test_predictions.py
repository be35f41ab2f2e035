"""The table of predictions, and its files."""

import csv
import os
import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn.errors import UsageError, WriteError
from lgcn.inference.predictions import (
    Written,
    prediction_blocks,
    predictions,
    predictions_format,
    write_predictions,
)
from lgcn.nn import layerwise

LOGITS = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.0, 0.0, 5.0]])


def test_columns_are_the_users_ids_names_and_probabilities() -> None:
    table = predictions(LOGITS, ["red", "green", "blue"], node_ids=np.array(["a", "b", "c"]))
    assert table.column_names == [
        "node",
        "predicted",
        "confidence",
        "probability_red",
        "probability_green",
        "probability_blue",
    ]
    assert table["node"].to_pylist() == ["a", "b", "c"]
    assert table["predicted"].to_pylist() == ["red", "green", "blue"]
    chances = np.stack([table[name].to_numpy() for name in table.column_names[3:]], axis=1)
    np.testing.assert_allclose(chances, torch.softmax(LOGITS, dim=1).numpy(), rtol=1e-6)
    np.testing.assert_array_equal(table["confidence"].to_numpy(), chances.max(axis=1))


def test_nodes_have_numbers_where_they_have_no_ids() -> None:
    assert predictions(LOGITS, [7, 8, 9])["node"].to_pylist() == [0, 1, 2]


def test_classes_keep_their_type() -> None:
    assert predictions(LOGITS, [7, 8, 9])["predicted"].to_pylist() == [7, 8, 9]
    two = predictions(LOGITS[:, :2], [False, True])
    assert two["predicted"].type == pa.bool_()


def test_the_temperature_changes_how_sure_and_not_what() -> None:
    names = ["a", "b", "c"]
    plain, soft = predictions(LOGITS, names), predictions(LOGITS, names, temperature=4.0)
    assert plain["predicted"] == soft["predicted"]
    assert (soft["confidence"].to_numpy() < plain["confidence"].to_numpy()).all()
    expected = torch.softmax(LOGITS / 4, dim=1).amax(dim=1)
    np.testing.assert_allclose(soft["confidence"].to_numpy(), expected.numpy(), rtol=1e-6)


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.floats(0, 1), st.booleans())
def test_it_abstains_exactly_below_the_threshold(
    seed: int, threshold: float, multi_label: bool
) -> None:
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(seed))
    names = ["a", "b", "c"]
    table = predictions(logits, names, multi_label=multi_label, abstain_below=threshold)
    plain = predictions(logits, names, multi_label=multi_label)
    for row, before in zip(table.to_pylist(), plain.to_pylist(), strict=True):
        assert row["predicted"] == (None if row["confidence"] < threshold else before["predicted"])
        assert {**row, "predicted": ""} == {**before, "predicted": ""}


def test_several_labels_a_node() -> None:
    logits = torch.tensor([[3.0, -3.0, 2.0], [-1.0, -2.0, -3.0]])
    table = predictions(logits, ["x", "y", "z"], multi_label=True)
    assert table["predicted"].to_pylist() == ["x;z", ""]
    # Of labels with probabilities p, the least certain one has the smallest max(p, 1 - p).
    chances = torch.sigmoid(logits)
    expected = torch.maximum(chances, 1 - chances).amin(dim=1)
    np.testing.assert_allclose(table["confidence"].to_numpy(), expected.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_names": ["a"]}, r"label_names must have one name per class \(3\), got 1"),
        ({"node_ids": [1, 2]}, r"node_ids must have one id per node \(3\), got shape \[2\]"),
        ({"abstain_below": 1.5}, r"abstain_below must .*0 to 1, got 1.5"),
        ({"abstain_below": "high"}, r"abstain_below must .*0 to 1, got 'high'"),
        ({"temperature": 0}, r"temperature must be from"),
    ],
)
def test_what_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        predictions(LOGITS, **{"label_names": ["a", "b", "c"], **options})


AWKWARD = ['comma, "quote"', "semi;colon\ttab", "line\nbreak", ""]


@pytest.mark.parametrize(("suffix", "delimiter"), [(".csv", ","), (".tsv", "\t"), (".CSV", ",")])
def test_text_files_can_be_read_back(tmp_path: Path, suffix: str, delimiter: str) -> None:
    logits = torch.diag(torch.tensor([3.0, 3.0, 3.0, 0.1]))
    table = predictions(logits, AWKWARD, node_ids=AWKWARD, abstain_below=0.5)
    assert table["predicted"].to_pylist() == [*AWKWARD[:3], None]
    path = tmp_path / f"predictions{suffix}"
    write_predictions(table, path)
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file, delimiter=delimiter)
    assert header == table.column_names
    for row, expected in zip(rows, table.to_pylist(), strict=True):
        assert row[0] == expected["node"]
        assert row[1] == (expected["predicted"] or "")
        np.testing.assert_array_equal(np.array(row[2:], np.float32), list(expected.values())[2:])


def test_parquet_files_keep_everything(tmp_path: Path) -> None:
    table = predictions(LOGITS, [1, 2, 3], node_ids=[10, 20, 30], abstain_below=0.5)
    write_predictions(table, tmp_path / "a.parquet")
    assert pyarrow.parquet.read_table(tmp_path / "a.parquet").equals(table)


def test_other_endings_are_refused(tmp_path: Path) -> None:
    table = predictions(LOGITS, ["a", "b", "c"])
    for name in ("a.xlsx", "a", "a.csv.bak"):
        with pytest.raises(UsageError, match=r"must end in \.csv, \.tsv or \.parquet"):
            write_predictions(table, tmp_path / name)
    (tmp_path / "b.csv").mkdir()
    with pytest.raises(UsageError, match=r"must be a file .*folder"):
        predictions_format(tmp_path / "b.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["b.csv"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("old")
    with pytest.raises(pa.ArrowInvalid):  # CSV cannot hold lists
        write_predictions(pa.table({"a": [[1, 2]]}), path)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("multi_label", [False, True])
def test_blocks_make_the_same_file(
    tmp_path: Path, suffix: str, multi_label: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layerwise, "READ_VALUES", 12)
    logits = torch.randn(10, 3, generator=torch.Generator().manual_seed(0))
    ids = pa.array([f"node {i}" for i in range(10)])
    nodes = torch.arange(10) % 4 != 2
    options: dict[str, Any] = {"multi_label": multi_label, "temperature": 2, "abstain_below": 0.5}
    table = predictions(logits, ["a", "b", "c"], node_ids=ids, **options).filter(nodes.numpy())
    whole, blocks = tmp_path / f"whole{suffix}", tmp_path / f"blocks{suffix}"
    seen = []
    pieces = prediction_blocks(
        logits,
        ["a", "b", "c"],
        node_ids=lambda start, stop: ids[start:stop],
        nodes=nodes,
        on_progress=lambda *step: seen.append(step),
        **options,
    )
    written = write_predictions(pieces, blocks)
    assert written == Written(8, table["predicted"].null_count) == write_predictions(table, whole)
    assert seen == [("predictions", stop, 10) for stop in (4, 8, 10)]
    if suffix == ".parquet":
        assert pyarrow.parquet.read_table(blocks).equals(table)
    else:
        assert blocks.read_bytes() == whole.read_bytes()


def test_nodes_keep_their_numbers_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layerwise, "READ_VALUES", 3)
    tables = list(prediction_blocks(LOGITS, [7, 8, 9]))
    assert len(tables) == 3
    assert pa.concat_tables(tables).equals(predictions(LOGITS, [7, 8, 9]))


def test_no_nodes_make_a_file_with_a_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    written = write_predictions(prediction_blocks(torch.empty(0, 2), ["a", "b"]), path)
    assert written == Written(0, 0)
    assert path.read_text() == '"node","predicted","confidence","probability_a","probability_b"\n'


def test_a_failure_between_blocks_leaves_nothing(tmp_path: Path) -> None:
    def ids(start: int, stop: int) -> Any:
        raise OSError("no space left")

    def pieces() -> Any:
        yield predictions(LOGITS, ["a", "b", "c"])
        yield from prediction_blocks(LOGITS, ["a", "b", "c"], node_ids=ids)

    for suffix in (".csv", ".parquet"):
        with pytest.raises(OSError, match="no space left"):
            write_predictions(pieces(), tmp_path / f"a{suffix}")
    assert list(tmp_path.iterdir()) == []


FORMULAS = ["=cmd|' /C calc'!A0", "+SUM(A1)", "-2+3", "@x", "\tx", "\rx", "\nx", "\uff1dx", "-"]
PLAIN = ["-5", "+3.25", "-1e-5", "-.5", "a=b", "", " =x", "'=x", "5-3"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_ids_that_a_spreadsheet_would_run_get_a_quote(
    tmp_path: Path, suffix: str, kind: Any
) -> None:
    ids = pa.array([*FORMULAS, *PLAIN], kind)
    table = predictions(torch.zeros(len(ids), 2), ["a", "b"], node_ids=ids)
    path = tmp_path / f"p{suffix}"

    def written(**options: Any) -> list[str]:
        nonlocal counts
        counts = write_predictions(table, path, **options)
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",")
            return [row["node"] for row in reader]

    counts = Written(0, 0)
    assert written() == ["'" + text for text in FORMULAS] + PLAIN
    assert counts == Written(len(ids), 0, len(FORMULAS))
    assert written(spreadsheet_safe=False) == [*FORMULAS, *PLAIN]
    assert counts == Written(len(ids), 0, 0)


def test_labels_that_a_spreadsheet_would_run_get_a_quote(tmp_path: Path) -> None:
    table = predictions(torch.eye(2), ["=1+1", "plain"], node_ids=[-1, -2], abstain_below=None)
    assert write_predictions(table, tmp_path / "p.csv").protected == 1
    with (tmp_path / "p.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert [row[:2] for row in rows[1:]] == [["-1", "'=1+1"], ["-2", "plain"]]
    both = predictions(torch.ones(1, 2), ["=1+1", "b"], multi_label=True)
    assert write_predictions(both, tmp_path / "p.csv").protected == 1
    nothing = predictions(torch.zeros(1, 2), ["=1+1", "b"], abstain_below=0.9)
    assert write_predictions(nothing, tmp_path / "p.csv") == Written(1, 1, 0)


def test_parquet_has_ids_as_they_are(tmp_path: Path) -> None:
    table = predictions(torch.zeros(len(FORMULAS), 1), ["a"], node_ids=FORMULAS)
    assert write_predictions(table, tmp_path / "p.parquet").protected == 0
    assert pyarrow.parquet.read_table(tmp_path / "p.parquet").equals(table)


def test_a_pipe_takes_text_and_stays_a_pipe(tmp_path: Path) -> None:
    table = predictions(LOGITS, ["a", "b", "c"])
    write_predictions(table, tmp_path / "p.csv")
    for name in ("pipe", "pipe.csv"):
        pipe, got = tmp_path / name, []
        os.mkfifo(pipe)
        reader = threading.Thread(target=lambda p=pipe, g=got: g.append(p.read_bytes()))
        reader.start()
        write_predictions(table, pipe)
        reader.join()
        assert got == [(tmp_path / "p.csv").read_bytes()]
        assert pipe.is_fifo()
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(UsageError, match=r"path must end in \.csv or \.tsv"):
        predictions_format(tmp_path / "pipe.parquet")


def test_a_full_disk_is_an_error_with_the_path(tmp_path: Path) -> None:
    table = predictions(torch.zeros(1000, 3), ["a", "b", "c"])
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    try:
        for suffix in (".csv", ".parquet"):
            with pytest.raises(WriteError, match=rf"{tmp_path}/p{suffix}: File too large"):
                write_predictions(table, tmp_path / f"p{suffix}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(tmp_path.iterdir()) == []


def test_standard_output_is_added_to(tmp_path: Path) -> None:
    table = predictions(LOGITS, ["a", "b", "c"])
    write_predictions(table, tmp_path / "p.csv")
    path, before = tmp_path / "all.txt", os.dup(1)
    with path.open("w") as file:  # as a shell sends it to a file
        os.dup2(file.fileno(), 1)
        try:
            os.write(1, b"# kept\n")
            write_predictions(table, "/dev/stdout")
        finally:
            os.dup2(before, 1)
            os.close(before)
    assert path.read_text() == "# kept\n" + (tmp_path / "p.csv").read_text()


def test_ids_of_bytes_are_texts(tmp_path: Path) -> None:
    table = predictions(torch.zeros(2, 2), ["a", "b"], node_ids=np.array([b"=1+1", b"x"]))
    assert table["node"].to_pylist() == ["=1+1", "x"]
    assert write_predictions(table, tmp_path / "p.csv").protected == 1
