"""What `lgcn data check` says about tables."""

import pytest

from .tables import CLASSES, NUM_NODES, OWN, PRINTS_WARNINGS, TOPIC, node_columns, write

pytestmark = PRINTS_WARNINGS


def test_data_check_prints_what_was_understood(lgcn_):
    output = lgcn_("data", "check", *TOPIC)
    assert output.code == 0
    assert output.err == ""
    for name in ("country", "category", "title", "text", *CLASSES, "suggested k", "homophily"):
        assert name in output.out
    report = lgcn_("data", "check", *TOPIC, "--json").json
    assert report["nodes"] == NUM_NODES
    assert report["imported"]["edge_rows"] == 3 * NUM_NODES
    assert report["homophily"] > 0.6
    assert report["warnings"] == []


def test_data_check_says_what_looks_wrong(lgcn_):
    nodes = node_columns()
    nodes["topic"][1] = "rare"
    write("nodes.csv", nodes | {"same": [1] * NUM_NODES, "empty": [""] * NUM_NODES})
    report = lgcn_("data", "check", *TOPIC, "--json").json
    assert any("rare" in text for text in report["warnings"])
    notes = " ".join(report["notes"])
    assert "'same'" in notes
    assert "constant" in notes
    assert "'empty'" in notes
    output = lgcn_("data", "check", *TOPIC)
    assert "rare" in output.out
    assert "'same'" in output.out


@pytest.mark.parametrize("args", [[], [*OWN, "--dataset", "digits"]])
def test_data_check_wants_one_thing(lgcn_, args: list[str]):
    output = lgcn_("data", "check", *args)
    assert output.code == 2
    assert "say what to check" in output.message
