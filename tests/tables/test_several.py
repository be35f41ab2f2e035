"""One table in several files."""

from pathlib import Path

import pandas as pd
import pytest

from lgcn.errors import DataError, UsageError
from lgcn.tables.open_table import open_table, read_table


@pytest.fixture
def frame(tmp_path: Path) -> pd.DataFrame:
    frame = pd.DataFrame(
        {"id": range(10), "x": [0.5 * i for i in range(10)], "t": list("abcdefghij")}
    )
    for i in range(3):
        frame.iloc[4 * i : 4 * i + 4].to_csv(tmp_path / f"part-{i}.csv", index=False)
        frame.iloc[4 * i : 4 * i + 4].to_parquet(tmp_path / f"part-{i}.parquet", index=False)
        rows = frame.iloc[4 * i : 4 * i + 4]
        rows.to_json(tmp_path / f"part-{i}.jsonl", orient="records", lines=True)
    return frame


@pytest.mark.parametrize("kind", ["csv", "parquet", "jsonl"])
def test_a_pattern_and_a_list(frame: pd.DataFrame, kind: str, tmp_path: Path):
    wanted = frame.to_dict("list")
    assert read_table(str(tmp_path / f"part-*.{kind}")).to_pydict() == wanted
    files = [tmp_path / f"part-{i}.{kind}" for i in range(3)]
    assert read_table(files).to_pydict() == wanted
    table = open_table(files, "nodes")
    found = [row for batch in table.batches(["id"], {}) for row in batch["id"].to_pylist()]
    assert found == wanted["id"]
    assert "part-1" in table.where([5])[0]
    assert table.where([5])[0].startswith({"csv": "line 3", "jsonl": "line 2"}.get(kind, "row 1"))


def test_types_that_differ_between_files(tmp_path: Path):
    (tmp_path / "a.csv").write_text("id,x,c\n1,2,007\n")
    (tmp_path / "b.csv").write_text("x,id,c\n2.5,2,x\n")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    assert read_table(files).to_pydict() == {"id": [1, 2], "x": [2.0, 2.5], "c": ["007", "x"]}


def test_what_is_wrong_with_the_files(frame: pd.DataFrame, tmp_path: Path):
    other = tmp_path / "other.csv"
    other.write_text("id,y\n1,2\n")
    with pytest.raises(DataError, match=r"other\.csv must have the columns of .*part-0.*lacks 'x'"):
        read_table([tmp_path / "part-0.csv", other])
    with pytest.raises(DataError, match=r"edges: no file matches .*none-\*\.csv"):
        open_table(tmp_path / "none-*.csv", "edges")
    with pytest.raises(UsageError, match="given twice"):
        open_table([other, other], "edges")
    with pytest.raises(DataError, match="does not exist"):
        open_table([other, tmp_path / "no.csv"], "edges")
    odd = tmp_path / "a[1].csv"
    odd.write_text("id,y\n1,2\n")
    assert read_table(odd).to_pydict() == {"id": [1], "y": [2]}  # a name that is also a pattern
