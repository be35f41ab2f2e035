"""What `lgcn data info` prints."""

from pathlib import Path

from ..small import write_npz


def test_data_info_tells_the_sizes(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    record = lgcn_("data", "info", "ring.npz", "--json").json
    expected = {
        "name": "ring",
        "graphs": 1,
        "nodes": 60,
        "undirected_edges": 60,
        "mean_degree": 2.0,
        "largest_degree": 2,
        "isolated_nodes": 0,
        "features": 3,
        "classes": 3,
        "labels": "one per node",
        "setting": "transductive",
        "train_nodes": 30,
        "val_nodes": 15,
        "test_nodes": 15,
    }
    assert record == expected
    text = lgcn_("data", "info", "ring.npz").out
    assert all(key.replace("_", " ") in text for key in expected)
