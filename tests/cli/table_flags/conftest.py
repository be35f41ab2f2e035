"""A folder with two tables, and a run that was trained on them."""

from pathlib import Path

import pytest

from .tables import RUN, TOPIC, edge_columns, node_columns, write


@pytest.fixture(autouse=True)
def place(empty_folder: Path) -> Path:
    """A working folder with two tables, and no data set on this machine."""
    write("nodes.csv", node_columns())
    write("edges.csv", edge_columns())
    return empty_folder


@pytest.fixture
def trained(lgcn_, place: Path) -> Path:
    output = lgcn_("train", *TOPIC, *RUN)
    assert output.code == 0, output.err
    return place / "run"
