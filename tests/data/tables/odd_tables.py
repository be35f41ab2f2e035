"""What the tests of damaged and odd tables share: the tables, how they are tried, odd options."""

import csv
import io
import json
import os
import warnings
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from lgcn import LGCNClassifier
from lgcn.data.check import check_graph
from lgcn.data.tables.encoder import FeatureEncoder
from lgcn.data.tables.import_tables import import_tables
from lgcn.errors import LGCNError

LONGEST_MESSAGE = 2000  # of an error; a cell of a megabyte must not fill the screen

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


def examples(usual: int) -> Any:
    return settings(
        max_examples=int(os.environ.get("LGCN_FUZZ_EXAMPLES", usual)),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def try_tables(edges: Any, nodes: Any, options: dict[str, Any], *, fit: bool = False) -> str | None:
    """Imports tables, and uses the graph where there is one. Any error must be one of ours.

    Returns:
        The message of the error, checked, or ``None`` where all went well.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # what the library has to say
        warnings.simplefilter("error", RuntimeWarning)  # what NumPy has, which no user understands
        try:
            imported = import_tables(edges, nodes, **options)
            check_use(edges, nodes, options, imported)
            if fit:
                check_fit(imported.graph)
        except LGCNError as error:
            check_message(str(error))
            return str(error)
    return None


def check_message(message: str) -> None:
    assert message
    assert "\n" not in message
    assert len(message) < LONGEST_MESSAGE


def check_use(edges: Any, nodes: Any, options: dict[str, Any], imported: Any) -> None:
    """The graph is whole, can be reported on, and comes out the same by a stored encoder."""
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


def check_fit(graph: Any) -> None:
    """One epoch, and predictions that are probabilities."""
    model = LGCNClassifier(
        hidden_channels=3,
        lgcl_channels=2,
        max_epochs=1,
        random_state=0,
        device="cpu",
        verbose=False,
    ).fit(graph)
    table = model.predictions(abstain_below=0.5)
    assert table.num_rows == graph.num_nodes
    chances = np.stack([column.to_numpy() for column in table.columns[3:]])
    assert ((chances >= 0) & (chances <= 1)).all()
    assert model.predict(graph).shape[0] == graph.num_nodes


def dense(x: torch.Tensor) -> torch.Tensor:
    return x.to_dense() if x.layout == torch.sparse_csr else x


def text_bytes(columns: dict[str, list[Any]], delimiter: str = ",", newline: str = "\n") -> bytes:
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=newline)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return file.getvalue().encode()


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


ENCODINGS = st.sampled_from(["utf-8", "latin-1", "cp1252", "utf-16", "utf-32", "utf-7", "ascii"])
ENCODINGS |= st.sampled_from(["shift_jis", "idna", "rot13", "hex", "undefined", "unicode_escape"])
ENCODINGS |= st.sampled_from(["nonsense", "", "\0"])
COLUMN_NAMES = st.one_of(
    st.sampled_from(["id", "ID", "node", "source", "target", "src", "dst", "weight", "topic", "y"]),
    st.sampled_from(["", " ", "a", "A", "a ", "ü", '"', "\n", ",", "nan", "1", "x" * 300, "\0"]),
    st.text(max_size=4),
)


def rarely(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 15)) == 7  # ends of a range are drawn more often


@st.composite
def some_options(draw: st.DrawFn, node_names: list[str], edge_names: list[str]) -> dict[str, Any]:
    """Options of an import, a few of them odd."""
    column = st.sampled_from([*node_names, *node_names, "missing", ""])
    end = st.sampled_from([*edge_names, *edge_names, "missing"])
    several = st.lists(column, max_size=2)
    odd: dict[str, st.SearchStrategy[Any]] = {
        "label_column": st.one_of(column, several),
        "id_column": column,
        "weight_column": end,
        "source_column": end,
        "target_column": end,
        "split_column": column,
        "labels_per_class": st.integers(-1, 3),
        "val": st.sampled_from([0, 0.0, 0.5, 1, -1, float("nan"), float("inf"), "0.2"]),
        "test": st.sampled_from([0, 0.1, 0.5, 1, 2]),
        "split_seed": st.sampled_from([1, -1, 2**70, 0.5]),
        "label_separator": st.sampled_from([";", ",", "", " ", "\0"]),
        "numeric_columns": several,
        "categorical_columns": column,
        "text_columns": several,
        "ignore_columns": several,
        "unknown_nodes": st.sampled_from(["error", "nonsense"]),
        "delimiter": st.sampled_from([",", ";", "\t", "\\t", "|", " ", "", "ab", "ü", "\0", "\n"]),
        "encoding": ENCODINGS,
        "directed": st.just(True),
    }
    label = [name for name in ("topic", "topic", "topic", "c1", "c2") if name in node_names]
    options: dict[str, Any] = {"unknown_nodes": "drop"}
    if label and not rarely(draw):
        options["label_column"] = draw(st.sampled_from(label))
    number = draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
    chosen = draw(st.lists(st.sampled_from(list(odd)), min_size=number, max_size=number))
    return options | {name: draw(odd[name]) for name in chosen}


def not_unicode(cells: list[Any]) -> pa.Array:
    """Texts as programs write them that do not care: Arrow takes them for UTF-8 unseen."""
    coded = [None if cell is None else cell.encode("utf-8") + b"\xff" for cell in cells]
    return pa.array(coded, pa.binary()).cast(pa.string(), safe=False)
