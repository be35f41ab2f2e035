"""What `lgcn data` tells about data sets and their files."""

from pathlib import Path

import lgcn.datasets

from .small import write_npz


def test_data_list_names_every_data_set(lgcn_):
    listed = lgcn_("data", "list", "--json").json
    assert list(listed) == lgcn.datasets.dataset_names()
    text = lgcn_("data", "list").out
    assert all(name in text for name in listed)


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


def test_data_path_tells_where_files_are(lgcn_, place: Path):
    write_npz(place / "ring.npz")
    assert lgcn_("data", "path", "ring", "--root", place, "--json").json == {
        "name": "ring",
        "files": [str(place / "ring.npz")],
    }
    assert lgcn_("data", "path", "ring", "--root", place).out == f"{place / 'ring.npz'}\n"


def test_data_path_of_what_needs_no_files(lgcn_):
    assert lgcn_("data", "path", "digits", "--json").json == {"name": "digits", "files": []}
    output = lgcn_("data", "path", "digits")
    assert (output.code, output.out, output.err) == (0, "", "digits needs no files\n")
