"""Sets of graphs by name or path, with a random or a published split."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from lgcn import load_graphs
from lgcn.datasets import dataset_files, load_dataset
from lgcn.datasets.graph_sets import check_graph_files, find_graph_set, graph_set_names, is_bare
from lgcn.errors import DataError, UsageError
from lgcn.graph import GraphSet

from .test_graph_npz import write as write_npz
from .tu_files import parts_of, write_folder, write_zip

COUNT = 40
GRAPHS = [nx.cycle_graph(3 + place % 3) for place in range(COUNT)]
LABELS = [place % 4 // 3 for place in range(COUNT)]  # a quarter of class 1
PARTS = parts_of(GRAPHS, LABELS)
FOLDS = [
    {"train": [0, 1, 2], "validation": [3], "test": [4, 5]},
    {"train": [*range(10, 40)], "validation": [*range(5)], "test": [*range(5, 10)]},
]


def masks_of(graphs: GraphSet) -> list[list[int]]:
    """The numbers of the graphs in each split."""
    masks = (graphs.mask(split) for split in ("train", "val", "test"))
    return [[] if mask is None else mask.nonzero().flatten().tolist() for mask in masks]


def write_splits(path: Path, folds: Any = FOLDS) -> Path:
    text = folds if isinstance(folds, str) else json.dumps(folds)
    path.write_text(text)
    return path


@pytest.mark.parametrize("place", ["S", "tu/S"])
@pytest.mark.parametrize("form", ["folder", "zip", "npz"])
def test_sets_are_found_by_name(form: str, place: str, cache: Path) -> None:
    path = cache / place
    path.parent.mkdir(parents=True, exist_ok=True)
    if form == "folder":
        write_folder(path, PARTS)
    elif form == "zip":
        path = write_zip(path.with_suffix(".zip"), PARTS)
    else:
        path = write_npz(path.with_suffix(".npz"))
    assert load_graphs("S").name == "S"
    assert find_graph_set("S") == path
    assert graph_set_names() == (["S"] if place == "tu/S" else [])


def test_a_root_is_looked_in_first(tmp_path: Path, cache: Path) -> None:
    write_folder(cache / "S", PARTS)
    write_folder(tmp_path / "tu" / "S", parts_of([nx.path_graph(2)] * 3, [0, 1, 1]))
    assert len(load_graphs("S")) == COUNT
    assert len(load_graphs("S", root=tmp_path)) == 3
    assert len(load_graphs(cache / "S", root=tmp_path)) == COUNT


def test_names_may_have_points_and_paths_have_a_folder_or_an_ending() -> None:
    assert is_bare("PTC_FM.v2")
    assert not any(is_bare(path) for path in ("./S", "a/S", "~/S", "S.zip", "S.npz"))


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("PROTEIN", ("'PROTEIN'", "PROTEINS", "tu/")),
        ("./nowhere", ("nowhere", "do not exist")),
        ("nowhere.zip", ("nowhere.zip", "do not exist")),
        ("a\0b", ("there are no graphs",)),
    ],
)
def test_what_is_missing_is_said(name: str, words: tuple[str, ...], cache: Path) -> None:
    write_folder(cache / "tu" / "PROTEINS", PARTS)
    with pytest.raises(DataError) as error:
        load_graphs(name)
    assert "\n" not in str(error.value)
    assert all(word in str(error.value) for word in words)


def test_folders_and_files_that_hold_no_set_say_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"NAME_A\.txt, got none"):
        load_graphs(tmp_path)
    write_zip(tmp_path / "S.ZIP", PARTS)
    with pytest.raises(DataError, match=r"S\.ZIP must .*folder.*\.zip or \.npz"):
        load_graphs(tmp_path / "S.ZIP")
    write_zip(tmp_path / "empty.zip", {})
    with pytest.raises(DataError, match=r"empty\.zip must hold one set"):
        load_graphs(tmp_path / "empty.zip")


def test_unknown_options_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "S", PARTS)
    with pytest.raises(UsageError, match=r"'folds'.*'fold'"):
        load_graphs(folder, folds=1)
    with pytest.raises(UsageError, match="'y'"):
        load_graphs(folder, y=LABELS)
    with pytest.raises(UsageError, match=r"target.*a\.npz has labels"):
        load_graphs(write_npz(tmp_path / "a.npz"), target=0)


def test_a_random_split_is_stratified_and_repeats(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "S", PARTS)
    graphs = load_graphs(folder)
    assert [len(numbers) for numbers in masks_of(graphs)] == [32, 4, 4]
    assert masks_of(load_graphs(folder)) == masks_of(graphs)
    assert masks_of(load_graphs(folder, split_seed=1)) != masks_of(graphs)
    larger = masks_of(load_graphs(folder, val=0.4, test=0))
    assert [len(numbers) for numbers in larger] == [24, 16, 0]
    assert sum(LABELS[number] for number in larger[1]) == 4
    with pytest.raises(UsageError, match=r"val \+ test"):
        load_graphs(folder, val=0.5, test=0.5)


def test_sets_without_labels_have_no_split(tmp_path: Path) -> None:
    graphs = load_graphs(write_folder(tmp_path / "S", {**PARTS, "graph_labels": None}))
    assert graphs.y is None
    assert masks_of(graphs) == [[], [], []]


@pytest.mark.parametrize("inside", [False, True], ids=["beside", "inside"])
def test_a_fold_is_a_published_split(inside: bool, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "set", PARTS)
    write_splits((folder if inside else tmp_path) / "S_splits.json")
    for fold, wanted in enumerate(FOLDS):
        graphs = load_graphs(folder, fold=fold)
        assert masks_of(graphs) == [wanted["train"], wanted["validation"], wanted["test"]]
        assert graphs.y is not None
        assert graphs.y.tolist() == LABELS


@pytest.mark.parametrize("form", ["zip", "npz"])
def test_folds_lie_beside_files(form: str, tmp_path: Path) -> None:
    folds = [{"train": [1], "validation": [], "test": [0]}]
    write_splits(tmp_path / "S_splits.json", folds)
    make: Any = (lambda path: write_zip(path, PARTS)) if form == "zip" else write_npz
    assert masks_of(load_graphs(make(tmp_path / f"S.{form}"), fold=0)) == [[1], [], [0]]


@pytest.mark.parametrize(
    ("fold", "more", "message"),
    [
        (2, {}, "fold must be .* 0 to 1, got 2"),
        (-1, {}, "fold must be .* at least 0, got -1"),
        ("0", {}, "fold must be .* got '0'"),
        (True, {}, "fold must be .* got True"),
        (0, {"val": 0.1}, "fold, and val and test"),
        (0, {"test": 0.1}, "fold, and val and test"),
    ],
)
def test_wrong_folds_are_refused(
    fold: Any, more: dict[str, Any], message: str, tmp_path: Path
) -> None:
    folder = write_folder(tmp_path / "S", PARTS)
    write_splits(tmp_path / "S_splits.json")
    with pytest.raises(UsageError, match=message):
        load_graphs(folder, fold=fold, **more)


def test_a_fold_needs_its_file_before_the_set_is_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "S", {**PARTS, "graph_indicator": "no number"})
    with pytest.raises(DataError, match=r"fold needs .*S_splits\.json"):
        check_graph_files(folder, fold=0)


def with_test(numbers: Any) -> list[dict[str, Any]]:
    return [{"train": [0, 1], "validation": [2], "test": numbers}]


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (with_test([2]), "graph 2 2 times"),
        (with_test([3, 3]), "graph 3 2 times"),
        (with_test([40]), "test must .* 0 to 39"),
        (with_test([-1]), "test must .* 0 to 39"),
        (with_test([10**30]), "test must .* 0 to 39"),
        (with_test([3.0]), "test must"),
        (with_test([True]), "test must"),
        (with_test(["3"]), "test must"),
        (with_test("3"), "test must"),
        (with_test(None), "test must"),
        ([{"train": [0], "test": [1]}], "validation must"),
        ([], "at least one fold"),
        ([[0, 1]], "list of folds"),
        ({"train": [0]}, "list of folds"),
        ("{", "damaged"),
        ("", "damaged"),
        ("[" * 5000, "damaged"),
        ("[NaN]", "list of folds"),
    ],
)
def test_damaged_splits_are_named(folds: Any, message: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "S", PARTS)
    write_splits(tmp_path / "S_splits.json", folds)
    with pytest.raises(DataError, match=rf"S_splits\.json.*{message}") as error:
        load_graphs(folder, fold=0)
    assert "\n" not in str(error.value)


def test_graphs_in_no_split_are_in_no_mask(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "S", PARTS)
    write_splits(tmp_path / "S_splits.json", with_test([]))
    assert masks_of(load_graphs(folder, fold=0)) == [[0, 1], [2], []]


def test_graphs_without_nodes_or_edges_are_counted(tmp_path: Path) -> None:
    graphs = [nx.path_graph(2), nx.empty_graph(0), nx.empty_graph(0), nx.empty_graph(1)]
    folder = write_folder(tmp_path / "S", parts_of(graphs, [0, 1, 0, 1]))
    with pytest.warns(UserWarning, match="S: ") as caught:
        assert len(load_graphs(folder)) == 4
    texts = [str(one.message) for one in caught]
    assert len(texts) == 2
    assert "2 of 4 graphs have no nodes" in texts[0]
    assert "1 of 4 graphs has no edges" in texts[1]
    assert {one.filename for one in caught} == {__file__}  # the caller's line


def test_one_graph_and_one_class_are_loaded(tmp_path: Path) -> None:
    one = load_graphs(write_folder(tmp_path / "a", parts_of([nx.path_graph(2)], [7])))
    assert masks_of(one) == [[0], [], []]
    assert one.num_classes == 1
    same = load_graphs(write_folder(tmp_path / "b", parts_of(GRAPHS, [1] * COUNT)))
    assert same.num_classes == 1


def test_sets_are_data_sets_by_their_name(cache: Path) -> None:
    path = write_zip(cache / "tu" / "S.zip", PARTS)
    assert dataset_files("S") == [path]
    loaded: Any = load_dataset("S", val=0.2)
    assert isinstance(loaded, GraphSet)
    assert len(masks_of(loaded)[1]) == 8


@pytest.mark.parametrize("name", ["PROTEINS", "COLLAB"])
def test_masks_of_real_folds_are_those_of_the_file(name: str, real_data: Path) -> None:
    path = real_data / "tu" / f"{name}_splits.json"
    if not path.is_file():
        pytest.skip(f"LGCN_DATA lacks {path.name}")
    folds = json.loads(path.read_text())
    assert len(folds) == 10
    for number in range(10) if name == "PROTEINS" else (9,):
        graphs = load_graphs(name, root=real_data, fold=number)
        keys = ("train", "validation", "test")
        assert masks_of(graphs) == [sorted(folds[number][key]) for key in keys]
        assert graphs.y is not None
        shares = [
            np.bincount(graphs.y[mask]) / int(mask.sum())
            for mask in (graphs.mask("train"), torch.ones(len(graphs), dtype=torch.bool))
            if mask is not None
        ]
        np.testing.assert_allclose(*shares, atol=0.005)  # order and splits belong together
