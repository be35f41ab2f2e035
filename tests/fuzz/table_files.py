"""The tables that fuzzing damages, in many formats, and the check of an imported table."""

import csv
import datetime
import decimal
import gzip
import io
import json
import warnings
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch

from lgcn import LGCNClassifier
from lgcn.datasets.graph_report import check_graph
from lgcn.errors import LGCNError
from lgcn.tables.encoder import FeatureEncoder
from lgcn.tables.from_tables import import_tables

from .rules import check_message

NUM_NODES = 24
NODES: dict[str, list[Any]] = {
    "id": [f"n{i}" for i in range(NUM_NODES)],
    "size": [None if i == 5 else (i * 7 % 11) / 4 for i in range(NUM_NODES)],
    "color": ["red", "green", "blüe"] * (NUM_NODES // 3),
    "title": [f"word{i % 5} and word{i % 3}, more" for i in range(NUM_NODES)],
    "day": [f"2024-01-{i + 1:02}" for i in range(NUM_NODES)],
    "topic": [("x", "y", None, "x;y")[i % 4] for i in range(NUM_NODES)],
    "part": [("train", "val", None, "test", "train")[i % 5] for i in range(NUM_NODES)],
}
EDGES: dict[str, list[Any]] = {
    "source": [f"n{i}" for i in range(NUM_NODES)] * 2,
    "target": [f"n{i * i % NUM_NODES}" for i in range(2 * NUM_NODES)],
    "w": [i / 4 for i in range(2 * NUM_NODES)],
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"label_column": "topic"},
    {"label_column": "topic", "split_column": "part", "weight_column": "w"},
    {"label_column": "topic", "label_separator": ";", "unknown_nodes": "drop"},
    {"label_column": "topic", "labels_per_class": 1, "directed": True},
    {"label_column": "topic", "text_columns": "title", "categorical_columns": ["size"]},
    {"label_column": "topic", "numeric_columns": ["day"], "ignore_columns": ["part"]},
]


def try_tables(edges: Any, nodes: Any, options: dict[str, Any], *, fit: bool = False) -> str | None:
    """Imports tables, and uses the graph where there is one. Any error must be one of ours.

    Returns:
        The message of the error, checked, or ``None`` where all went well.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the library
        warnings.simplefilter("error", RuntimeWarning)  # of NumPy, which no user understands
        try:
            imported = import_tables(edges, nodes, **options)
            check_use(edges, nodes, options, imported)
            if fit:
                check_fit(imported.graph)
        except LGCNError as error:
            check_message(str(error))
            return str(error)
    return None


def check_use(edges: Any, nodes: Any, options: dict[str, Any], imported: Any) -> None:
    """The graph is valid, has a report, and a stored encoder gives the same features."""
    graph = imported.graph
    assert graph.num_nodes == len(graph.node_ids) == imported.counts["node_rows"]
    assert len(set(graph.node_ids.tolist())) == graph.num_nodes
    x = dense(graph.x)
    assert x.isfinite().all()
    assert all(isinstance(note, str) and "\n" not in note for note in imported.notes)
    json.dumps(check_graph(graph, imported).to_dict(), allow_nan=False)
    stored = json.loads(json.dumps(graph.encoder.to_dict(), allow_nan=False))
    encoder = FeatureEncoder.from_dict(stored)
    again = import_tables(
        edges, nodes, **{**options, "encoder": encoder, "label_names": graph.label_names}
    ).graph
    assert torch.equal(dense(again.x), x)
    if graph.y is not None:
        assert torch.equal(again.y, graph.y)
        assert len(set(graph.label_names)) == len(graph.label_names)


def small_model() -> LGCNClassifier:
    return LGCNClassifier(
        hidden_channels=3,
        lgcl_channels=2,
        max_epochs=1,
        random_state=0,
        device="cpu",
        verbose=False,
    )


def check_fit(graph: Any) -> None:
    """One epoch, and predictions that are probabilities."""
    model = small_model().fit(graph)
    table = model.predictions(abstain_below=0.5, truth=False)
    assert table.num_rows == graph.num_nodes
    chances = np.stack([column.to_numpy() for column in table.columns[3:]])
    assert ((chances >= 0) & (chances <= 1)).all()
    assert model.predict(graph).shape[0] == graph.num_nodes


def dense(x: torch.Tensor | None) -> torch.Tensor:
    if x is None:  # a node table of ids and labels
        return torch.zeros(0)
    return x.to_dense() if x.layout == torch.sparse_csr else x


def text_bytes(columns: dict[str, list[Any]], delimiter: str = ",", newline: str = "\n") -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


def json_bytes(columns: dict[str, list[Any]]) -> bytes:
    rows = zip(*columns.values(), strict=True)
    return "".join(json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in rows).encode()


def parquet_bytes(columns: dict[str, list[Any]], **options: Any) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def npy_files(columns: dict[str, list[Any]]) -> dict[str, bytes]:
    files = {}
    for name, values in columns.items():
        file = io.BytesIO()
        np.save(file, np.array(["" if v is None else v for v in values]))
        files[name] = file.getvalue()
    return files


def zipped(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def not_unicode(cells: list[Any]) -> pa.Array:
    """Texts of careless programs: Arrow takes them for UTF-8 without a check."""
    coded = [None if cell is None else cell.encode("utf-8") + b"\xff" for cell in cells]
    return pa.array(coded, pa.binary()).cast(pa.string(), safe=False)


def intact(columns: dict[str, list[Any]]) -> list[tuple[str, bytes]]:
    """(Ending, content) of the same table in many formats."""
    typed = dict(columns)
    if "day" in typed:
        typed["day"] = [datetime.date.fromisoformat(day) for day in typed["day"]]
        typed["vector"] = [[float(i), i / 3] for i in range(NUM_NODES)]
        typed["price"] = [decimal.Decimal(i) / 8 for i in range(NUM_NODES)]
    return [
        (".csv", text_bytes(columns)),
        (".csv", text_bytes(columns, newline="\r\n")),
        (".tsv", text_bytes(columns, "\t")),
        (".txt", text_bytes(columns, ";")),
        (".csv.gz", gzip.compress(text_bytes(columns), mtime=0)),
        (".parquet", parquet_bytes(typed)),
        (".parquet", parquet_bytes(typed, compression="none", use_dictionary=False)),
        (".npz", zipped(npy_files(columns))),
        (".jsonl", json_bytes(columns)),
        (".ndjson.gz", gzip.compress(json_bytes(columns), mtime=0)),
    ]


def damaged(content: bytes, edits: list[tuple[int, int, bytes]], cut: int) -> bytes:
    changed = bytearray(content)
    for place, deleted, new in edits:
        at = place % (len(changed) + 1)
        changed[at : at + deleted] = new
    return bytes(changed[: len(changed) - cut] if cut <= len(changed) else changed)
