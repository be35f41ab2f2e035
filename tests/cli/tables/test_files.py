"""Tables in files of all kinds, from everywhere."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from .tables import FEW, PRINTS_WARNINGS, Columns, edge_columns, node_columns, write

pytestmark = PRINTS_WARNINGS


def save(kind: str, path: str, columns: Columns) -> str:
    """Writes a table in another format and returns its path."""
    path += kind
    if kind == ".parquet":
        cells = {k: [None if v == "" else v for v in c] for k, c in columns.items()}
        pyarrow.parquet.write_table(pa.table(cells), path)
    elif kind == ".npz":
        np.savez(path, **{name: np.array(column) for name, column in columns.items()})
    elif kind == ".csv.gz":
        write("plain.csv", columns)
        Path(path).write_bytes(gzip.compress(Path("plain.csv").read_bytes()))
    else:
        write(path, columns, {".tsv": "\t", ".txt": ";"}[kind], newline="\r\n")
    return path


@pytest.mark.parametrize("kind", [".tsv", ".txt", ".csv.gz", ".parquet", ".npz"])
def test_files_of_all_kinds_train_the_same(lgcn_, trained: Path, kind: str):
    nodes, edges = save(kind, "nodes", node_columns()), save(kind, "edges", edge_columns())
    args = ("--nodes", nodes, "--edges", edges, "--label-column", "topic")
    assert lgcn_("train", *args, "--out", "other", *FEW).code == 0
    weights = [Path(run, "model.safetensors").read_bytes() for run in ("run", "other")]
    assert weights[0] == weights[1]
    lgcn_("predict", "run", "--output", "a.csv")
    lgcn_("predict", "other", "--output", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_a_run_is_used_from_another_folder(lgcn_, trained: Path, monkeypatch: pytest.MonkeyPatch):
    lgcn_("predict", trained, "--output", "p.csv")
    (trained.parent / "elsewhere").mkdir()
    monkeypatch.chdir(trained.parent / "elsewhere")
    assert lgcn_("predict", "../run", "--output", "p.csv").code == 0
    assert Path("p.csv").read_bytes() == Path("../p.csv").read_bytes()
    assert lgcn_("evaluate", "../run").code == 0
    assert lgcn_("train", "--resume", "--out", "../run").code == 0


def test_the_tables_of_a_run_may_not_vanish(lgcn_, trained: Path):
    Path("nodes.csv").unlink()
    output = lgcn_("predict", trained, "--output", "p.csv")
    assert output.code == 1
    assert "nodes.csv does not exist" in output.message
