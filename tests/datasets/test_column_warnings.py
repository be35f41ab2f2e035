"""Each warning appears for a column that deserves it, and not for the honest columns beside it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lgcn import Graph
from lgcn.datasets.column_warnings import MOST_COLUMNS, column_warnings
from lgcn.datasets.report_warnings import training_warnings
from lgcn.tables.from_tables import import_tables

N = 400


def columns(seed: int = 0) -> dict[str, Any]:
    """A node table of noisy but honest columns."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
    return {
        "id": [f"n{i}" for i in range(N)],
        "label": label,
        "size": rng.normal(size=N) + (label == "a"),
        "colour": rng.choice(["red", "green", "blue"], N),
        "count": rng.integers(0, 50, N),
        "comment": [" ".join(rng.choice(list("uvwxyz"), 5) + "oo") for _ in range(N)],
    }


def graph(**more: Any) -> Graph:
    rng = np.random.default_rng(1)
    nodes = columns() | more
    edges = {"source": rng.choice(nodes["id"], 2000), "target": rng.choice(nodes["id"], 2000)}
    return import_tables(pa.table(edges), pa.table(nodes), label_column="label").graph


def mentions(found: list[str], *names: str) -> list[str]:
    return [text for text in found if all(repr(name) in text for name in names)]


def test_honest_columns_give_no_warning() -> None:
    assert column_warnings(graph()) == []


LABEL = columns()["label"]
CODE = {"a": 7.5, "b": 2.0, "c": 9.0}


@pytest.mark.parametrize(
    "leak",
    [
        np.char.upper(LABEL),
        np.array([CODE[label] for label in LABEL]),
        np.array([f"the kind is {word}{word}" for word in np.char.add(LABEL, "x")]),
        np.where(np.arange(N) % 200 == 0, "a", LABEL),  # half a per cent is wrong
    ],
    ids=["category", "number", "text", "almost"],
)
def test_a_copy_of_the_label_is_a_leak(leak: Any) -> None:
    found = mentions(column_warnings(graph(copy=leak)), "copy")
    assert len(found) == 1
    assert "gives the label away" in found[0]
    assert "ignore_columns" in found[0]


def test_a_good_column_is_no_leak() -> None:
    good = np.where(np.random.default_rng(2).random(N) < 0.9, LABEL, "c")
    assert column_warnings(graph(good=good)) == []


def test_a_rare_class_that_nobody_finds_is_no_leak() -> None:
    """Guessing is right for 99.5 %: a column is not a leak for being as good as that."""
    rare = columns() | {"label": np.where(np.arange(N) < 8, "b", "a")}
    made = graph(**{key: rare[key] for key in ("label",)})
    assert not [text for text in column_warnings(made) if "label away" in text]


def test_a_number_in_the_order_of_the_target_is_a_leak() -> None:
    rng = np.random.default_rng(0)
    target = rng.normal(size=N)
    x = np.stack([np.exp(target), rng.normal(size=N), target + rng.normal(size=N)], axis=1)
    mask = torch.ones(N, dtype=torch.bool)
    ring = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
    made = Graph.from_edge_index(
        ring, x=torch.from_numpy(x).float(), y=torch.from_numpy(target).float(), train_mask=mask
    )
    assert len(column_warnings(made)) == 1
    assert mentions(column_warnings(made), "feature 0")


def test_a_label_of_several_among_the_features_is_a_leak() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, (N, 3)).astype(np.uint8)
    x = np.stack([rng.normal(size=N), 1 - y[:, 2]], axis=1)
    mask = torch.ones(N, dtype=torch.bool)
    ring = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
    made = Graph.from_edge_index(
        ring, x=torch.from_numpy(x).float(), y=torch.from_numpy(y), train_mask=mask
    )
    assert len(mentions(column_warnings(made), "feature 1")) == 1
    assert not mentions(column_warnings(made), "feature 0")


@pytest.mark.parametrize(
    "values",
    [
        np.arange(N),
        np.random.default_rng(0).permutation(N) + 100_000,
        np.random.default_rng(0).permutation(3 * N)[:N],
    ],
    ids=["consecutive", "shuffled", "gaps"],
)
def test_numbered_rows_look_like_an_id(values: Any) -> None:
    found = column_warnings(graph(running=values))
    assert len(mentions(found, "running")) == len(found) == 1
    assert "looks like an id" in found[0]


def test_a_name_makes_an_id() -> None:
    repeated = np.random.default_rng(0).integers(0, 60, N)
    assert len(mentions(column_warnings(graph(shop_id=repeated)), "shop_id")) == 1
    assert column_warnings(graph(period=repeated)) == []


def test_columns_that_repeat_others() -> None:
    honest = columns()
    swapped = [{"red": "rot", "green": "gruen", "blue": "blau"}[c] for c in honest["colour"]]
    found = column_warnings(graph(inches=honest["size"] * -2.54 + 3, farbe=swapped))
    assert len(found) == 1
    assert mentions(found, "inches", "size", "farbe", "colour")


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), features=st.integers(1, 30))
def test_random_features_give_no_warning(seed: int, features: int) -> None:
    rng = np.random.default_rng(seed)
    made = Graph.from_edge_index(
        torch.from_numpy(rng.integers(0, 200, (2, 400))),
        x=torch.from_numpy(rng.normal(size=(200, features))).float(),
        y=torch.from_numpy(rng.integers(0, 3, 200)),
        train_mask=torch.ones(200, dtype=torch.bool),
    )
    assert column_warnings(made) == []


def test_sparse_features_give_the_same_warnings() -> None:
    made = graph(copy=LABEL)
    assert made.x is not None
    sparse = Graph(
        made.rowptr,
        made.col,
        x=made.x.to_sparse_csr(),
        y=made.y,
        train_mask=made.train_mask,
        encoder=made.encoder,
    )
    assert column_warnings(sparse) == column_warnings(made) != []


def test_wide_graphs_are_checked_in_part() -> None:
    wide = np.random.default_rng(0).normal(size=(N, MOST_COLUMNS + 50))
    wide[:, -1] = wide[:, 0]
    ring = torch.stack([torch.arange(N), torch.arange(N).roll(1)])
    made = Graph.from_edge_index(ring, x=torch.from_numpy(wide).float())
    assert column_warnings(made) == []


def test_training_warns_of_classes_and_isolated_nodes() -> None:
    nodes = columns()
    label = np.where(np.arange(N) < 9, "rare", np.where(np.arange(N) % 2 == 0, "a", "b"))
    edges = {"source": nodes["id"][:350], "target": nodes["id"][1:351]}
    made = import_tables(
        pa.table(edges), pa.table(nodes | {"label": label}), label_column="label"
    ).graph
    found = training_warnings(made)
    assert any("unequal" in text and "9" in text for text in found)
    told = training_warnings(made, classes_count_alike=True)
    assert told == [text for text in found if "unequal" not in text]
    assert any("have no edge (49)" in text for text in found)


def test_amounts_as_classes_are_a_warning() -> None:
    amounts = np.random.default_rng(0).choice(np.arange(12) * 250, N)
    assert any("task=regression" in t for t in training_warnings(graph(label=amounts)))
    codes = np.random.default_rng(0).choice(np.arange(12), N)
    assert not any("task=regression" in t for t in training_warnings(graph(label=codes)))
