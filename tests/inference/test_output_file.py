"""Paths that can be written to, and their formats."""

import os
from pathlib import Path

import pytest

from lgcn.errors import UsageError
from lgcn.inference.output_file import check_output

TEXT = (".csv", ".tsv")


@pytest.mark.parametrize(
    ("name", "suffix"), [("a.csv", ".csv"), ("new/a.CSV", ".csv"), ("a.b.parquet", ".parquet")]
)
def test_the_format_is_the_ending(tmp_path: Path, name: str, suffix: str) -> None:
    assert check_output(tmp_path / name, "rows", (".csv", ".parquet")) == suffix


@pytest.mark.parametrize("name", ["a.xlsx", "a", "a.csv.bak"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=rf"path must end in \.csv or \.parquet .*{name}"):
        check_output(tmp_path / name, "rows", (".csv", ".parquet"))


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").mkdir()
    with pytest.raises(UsageError, match="folder"):
        check_output(tmp_path / "a.csv", "rows", TEXT)


def test_a_pipe_takes_text_if_it_may(tmp_path: Path) -> None:
    for name, suffix in (("pipe", ".csv"), ("pipe.tsv", ".tsv")):
        os.mkfifo(tmp_path / name)
        assert check_output(tmp_path / name, "rows", TEXT, streams=TEXT) == suffix
        with pytest.raises(UsageError, match="pipe"):
            check_output(tmp_path / name, "rows", TEXT)
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(UsageError, match=r"\.csv or \.tsv"):
        check_output(tmp_path / "pipe.parquet", "rows", (*TEXT, ".parquet"), streams=TEXT)
