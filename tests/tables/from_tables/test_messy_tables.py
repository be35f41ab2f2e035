"""Tables as people write them, and as other programs do."""

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from lgcn.errors import DataError
from lgcn.store import node_stream
from lgcn.store.import_store import import_store
from lgcn.store.open_store import open_store
from lgcn.tables.from_tables import Imported, import_tables

N = 120


def german(value: float) -> str:
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,"))


def clean(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = [dt.date(2022, 1, 1) + dt.timedelta(int(i)) for i in rng.integers(0, 360, N)]
    return pd.DataFrame(
        {
            "id": [f"n{i}" for i in range(N)],
            "topic": rng.choice(["a", "b"], N),
            "large": rng.lognormal(6, 2, N).round(2),
            "small": rng.uniform(1, 100, N).round(2),
            "price": rng.uniform(1, 100, N).round(2),
            "share": rng.integers(0, 12, N).astype(float),
            "count": rng.integers(1000, 10**7, N).astype(float),
            "begin": pd.to_datetime(days),
            "end": pd.to_datetime(days[::-1]),
        }
    )


def messy(frame: pd.DataFrame) -> pd.DataFrame:
    """The columns of finding 3."""
    made = frame[["id", "topic"]].copy()
    made["large"] = frame["large"].map(german)
    made["small"] = frame["small"].map(lambda v: f"{v:.2f}".replace(".", ","))
    made["price"] = frame["price"].map("€ {:.2f}".format)
    made["share"] = frame["share"].map("{:.0f} %".format)
    made["count"] = frame["count"].map(lambda v: f"{v:,.0f}".replace(",", " "))
    made["begin"] = frame["begin"].dt.strftime("%d.%m.%Y")
    made["end"] = frame["end"].map(lambda d: f"{d.month}/{d.day}/{d.year}")
    return made


def read(nodes: Any, **options: Any) -> Imported:
    edges = {"source": ["n0", "n1"], "target": ["n1", "n2"]}
    return import_tables(edges, nodes, label_column="topic", delimiter=";", **options)


def features(imported: Imported) -> torch.Tensor:
    x = imported.graph.x
    assert x is not None
    return x


@pytest.mark.parametrize("source", ["csv", "frame"])
def test_messy_columns_are_what_they_mean(tmp_path: Path, source: str) -> None:
    frame = clean()
    wanted, nodes = read(frame), messy(frame)
    if source == "csv":
        path = tmp_path / "nodes.csv"
        nodes.to_csv(path, sep=";", index=False)
        nodes = path
    found = read(nodes)
    assert found.notes == []
    assert found.graph.encoder is not None
    assert wanted.graph.encoder is not None
    assert found.graph.encoder.columns == wanted.graph.encoder.columns
    torch.testing.assert_close(features(found), features(wanted), rtol=1e-5, atol=1e-5)


def test_a_file_with_decimal_commas_by_pandas(tmp_path: Path) -> None:
    frame = clean()
    frame["thousands"] = np.random.default_rng(1).integers(1, 3000, N)
    path = tmp_path / "nodes.csv"
    frame.to_csv(path, sep=";", decimal=",", index=False)
    torch.testing.assert_close(features(read(path)), features(read(frame)))
    # With 1.234 for 1234, which a reader that knows nothing of commas takes for a decimal.
    written = frame.copy()
    written["thousands"] = frame["thousands"].map("{:,d}".format).str.replace(",", ".")
    written.to_csv(path, sep=";", decimal=",", index=False)
    found = read(path)
    torch.testing.assert_close(features(found), features(read(frame)))
    alone = written[["id", "topic", "thousands"]]
    alone.to_csv(path, sep=";", index=False)
    wanted = features(read(frame[["id", "topic", "thousands"]]))
    torch.testing.assert_close(features(read(path, decimal=",")), wanted)
    assert not torch.allclose(features(read(path)), wanted)  # nothing shows the commas
    # New tables are read in the same way.
    again = read(path, encoder=read(path, decimal=",").graph.encoder)
    torch.testing.assert_close(features(again), wanted)


def spoilt(rng: np.random.Generator) -> pd.DataFrame:
    frame = messy(clean())
    for column, cell in (("small", "-"), ("price", "tbd"), ("share", "n/a"), ("end", "soon")):
        frame.loc[rng.integers(0, N), column] = cell
    frame["number"] = rng.integers(0, 1000, N).astype(str)
    frame.loc[rng.integers(0, N), "number"] = "-"
    frame["city"] = rng.choice(["Oslo", "Lima", "N/A"], N)
    return frame


def test_the_outcome_does_not_depend_on_the_split() -> None:
    frame = spoilt(np.random.default_rng(3))
    outcomes = set()
    for seed in range(6):
        split = np.array(["train"] * 60 + ["val"] * 30 + ["test"] * 30)
        frame["split"] = np.random.default_rng(seed).permutation(split)
        found = read(frame, split_column="split")
        assert found.graph.encoder is not None
        outcomes.add((found.graph.encoder.columns, tuple(found.notes)))
    ((columns, notes),) = outcomes
    kinds = {column.name: column.kind for column in columns}
    assert kinds.pop("city") == "category"
    assert {kinds.pop(name) for name in ("begin", "end")} == {"date"}
    assert set(kinds.values()) == {"number"}
    assert [note.split("nodes: ")[-1] for note in notes] == [
        "column 'price' has 1 of 120 cells that are no number and count as missing, such as 'tbd'",
        "column 'end' has 1 of 120 cells that are no date and count as missing, such as 'soon'",
    ]


@pytest.mark.parametrize("memory", ["whole", "sample"])
def test_stores_read_cells_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str
) -> None:
    frame = spoilt(np.random.default_rng(4))
    frame["price"] = frame["price"].str.replace(".", ",")
    frame["thousands"] = [f"{i}.{i:03}" for i in range(100, 100 + N)]
    path = tmp_path / "nodes.csv"
    frame.to_csv(path, sep=";", index=False)
    edges = {"source": ["n0", "n1"], "target": ["n1", "n2"]}
    options: dict[str, Any] = {"label_column": "topic", "delimiter": ";", "val": 0.2}
    if memory == "sample":
        real = node_stream.NodeStream.__init__

        def small(self: Any, *arguments: Any) -> None:
            real(self, *arguments)
            self._sample_memory = 10_000

        monkeypatch.setattr(node_stream.NodeStream, "__init__", small)
    counts = import_store(tmp_path / "store", edges, path, **options)
    expected = read(path, val=0.2)
    graph = open_store(tmp_path / "store").graph
    assert graph.encoder is not None
    assert expected.graph.encoder is not None
    assert graph.encoder.columns == expected.graph.encoder.columns
    assert "thousands" in graph.encoder.comma_columns
    unread = [note for note in counts["notes"] if "no number" in note or "no date" in note]
    if memory == "whole":
        assert torch.equal(graph.features(), features(expected))
        assert counts["notes"] == expected.notes
        assert len(unread) == 2
    else:
        assert {part for note in unread for part in ("tbd", "soon") if part in note} == {
            *("tbd", "soon")
        }


def test_missing_words_of_labels_and_features() -> None:
    frame = clean()
    frame["topic"] = frame["topic"].astype(object)
    frame.loc[:3, "topic"] = ["N/A", "#N/A", "?", "keine"]
    frame["plan"] = ["x", "keine", "N/A", "y"] * 30
    found = read(frame, na_values="keine")
    graph = found.graph
    assert graph.label_names == ("a", "b")
    assert graph.y is not None
    assert graph.y[:5].tolist()[:4] == [-1] * 4
    assert any("'N/A' (1)" in note and "'keine' (1)" in note for note in found.notes)
    assert graph.encoder is not None
    assert [n for n in graph.encoder.feature_names if n.startswith("plan")] == ["plan=x", "plan=y"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = frame.assign(plan="Keine", topic=None)
        options: dict[str, Any] = {"encoder": graph.encoder, "label_names": graph.label_names}
        again = read(new, **options)
    assert not features(again)[:, -2:].any()


def test_cells_of_new_tables_that_do_not_parse_are_warned_of() -> None:
    frame = clean()
    found = read(messy(frame))
    new = messy(frame)
    new.loc[5, "small"] = "much"
    options: dict[str, Any] = {"encoder": found.graph.encoder, "label_names": ("a", "b")}
    with pytest.warns(UserWarning, match=r"'small' has 1 of 120 cells that are no number.*'much'"):
        again = read(new, **options)
    x, wanted = features(again), features(found).clone()
    wanted[5, 1] = 0
    assert torch.equal(x, wanted)
    # Another program writes the same numbers with a point.
    points = frame.assign(small=frame["small"].map("{:.2f}".format))[["id", "topic", "small"]]
    first = read(messy(frame)[["id", "topic", "small"]])
    options = {"encoder": first.graph.encoder, "label_names": ("a", "b"), "decimal": "."}
    assert torch.equal(features(read(points, **options)), features(first))


def test_plus_and_minus_are_classes() -> None:
    frame = clean().assign(topic=["+", "-"] * 60)
    assert read(frame).graph.label_names == ("+", "-")
    frame["topic"] = ["x", "-"] * 60
    with pytest.raises(DataError, match=r"one class only, 'x'.*'-' \(60\)"):
        read(frame)
