"""Sets of graphs in TU's layout are read as they were written; damage is one clear line."""

import tempfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lgcn import load_graphs
from lgcn.datasets import tu
from lgcn.datasets.tu import TUFiles, read_tu
from lgcn.errors import DataError, UsageError
from lgcn.utils import memory

from .tu_files import Parts, edges_of, expected_edges, lines, parts_of, write_folder, write_zip

GRAPHS = [nx.cycle_graph(4), nx.star_graph(2), nx.path_graph(2)]  # of 4, 3 and 2 nodes
PARTS = parts_of(GRAPHS, [0, 2, 0])


def one_hot(values: list[int]) -> list[list[int]]:
    """A column of zeros and ones per value, in ascending order."""
    return [[int(value == other) for other in sorted(set(values))] for value in values]


@pytest.mark.parametrize("both", [True, False], ids=["both-ways", "one-way"])
def test_edges_listed_once_or_both_ways_are_undirected(both: bool, tmp_path: Path) -> None:
    graphs = read_tu(write_folder(tmp_path, parts_of(GRAPHS, [0, 2, 0], both=both)))
    assert graphs.name == "S"
    assert graphs.sizes.tolist() == [4, 3, 2]
    assert edges_of(graphs) == expected_edges(GRAPHS)
    assert graphs.mask("train") is None


@pytest.mark.parametrize(
    ("labels", "y", "names"),
    [
        ([0, 2, 0], [0, 1, 0], ("0", "2")),
        ([1, -1, 1], [1, 0, 1], ("-1", "1")),
        ([10, 9, -3], [2, 1, 0], ("-3", "9", "10")),
        ([5, 5, 5], [0, 0, 0], ("5",)),
        ([2**63 - 1, -(2**63), 0], [2, 0, 1], (str(-(2**63)), "0", str(2**63 - 1))),
    ],
)
def test_classes_are_numbered_by_size_and_keep_their_names(
    labels: list[int], y: list[int], names: tuple[str, ...], tmp_path: Path
) -> None:
    graphs = read_tu(write_folder(tmp_path, parts_of(GRAPHS, labels)))
    assert graphs.y is not None
    assert graphs.y.tolist() == y
    assert graphs.targets.label_names == names


def test_attributes_come_before_the_one_hot_labels_of_nodes(tmp_path: Path) -> None:
    labels = [[7, 1], [0, 1], [7, 1], [0, 1], [-2, 1], [7, 3], [7, 1], [0, 1], [0, 1]]
    attributes = [[place / 2, -1e30] for place in range(9)]
    parts = PARTS | {"node_labels": lines(labels), "node_attributes": lines(attributes)}
    x = read_tu(write_folder(tmp_path, parts)).graph.x
    assert x is not None
    wanted = [one_hot([row[column] for row in labels]) for column in (0, 1)]
    assert torch.equal(x[:, :2], torch.tensor(attributes))
    assert x[:, 2:].tolist() == [a + b for a, b in zip(*wanted, strict=True)]


def test_labels_of_nodes_alone_are_small(tmp_path: Path) -> None:
    x = read_tu(write_folder(tmp_path, PARTS | {"node_labels": lines([3] * 4 + [1] * 5)})).graph.x
    assert x is not None
    assert x.dtype == torch.uint8
    assert x.tolist() == [[0, 1]] * 4 + [[1, 0]] * 5


def test_what_is_about_edges_is_not_read(tmp_path: Path) -> None:
    more = {"edge_labels": "no number\n", "edge_attributes": "\0", "notes": "any text"}
    graphs = read_tu(write_folder(tmp_path, PARTS | more))
    assert graphs.graph.edge_weight is None
    assert edges_of(graphs) == expected_edges(GRAPHS)


def test_self_loops_are_left_out_and_duplicates_merged(tmp_path: Path) -> None:
    more = lines([(1, 1), (1, 2), (2, 1), (2, 1), (9, 9)])
    graphs = read_tu(write_folder(tmp_path, PARTS | {"A": PARTS["A"] + more}))
    assert edges_of(graphs) == expected_edges(GRAPHS)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n \n\n",
        lambda text: text.rstrip("\n"),
        lambda text: text.replace(", ", ","),
        lambda text: text.replace(", ", " ,\t").replace("\n", " \n"),
        lambda text: "\ufeff" + text,
    ],
    ids=["windows", "blank-end", "no-end", "no-blank", "blanks", "mark"],
)
def test_files_are_read_as_programs_write_them(change: Any, tmp_path: Path) -> None:
    graphs = read_tu(write_folder(tmp_path, {part: change(text) for part, text in PARTS.items()}))
    assert edges_of(graphs) == expected_edges(GRAPHS)
    assert graphs.targets.label_names == ("0", "2")


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
def test_numbers_of_graphs_are_targets_and_blank_if_unknown(ending: str, tmp_path: Path) -> None:
    parts: Mapping[str, str | None] = PARTS | {"graph_labels": None}
    of_first = write_folder(
        tmp_path / "a", dict(parts) | {"graph_attributes": f"\n1e9\n-.5{ending}"}
    )
    of_last = write_folder(tmp_path / "b", dict(parts) | {"graph_attributes": f"2\n1\n\n{ending}"})
    for folder, wanted in ((of_first, [np.nan, 1e9, -0.5]), (of_last, [2, 1, np.nan])):
        graphs = read_tu(folder)
        assert graphs.task == "regression"
        assert graphs.y is not None
        np.testing.assert_array_equal(graphs.y.numpy(), wanted)


def test_the_target_is_chosen_among_several(tmp_path: Path) -> None:
    parts = {**PARTS, "graph_labels": None, "graph_attributes": "1, 2\n3, 4\n5, nan\n"}
    folder = write_folder(tmp_path, parts)
    for target, wanted in ((0, [1, 3, 5]), (1, [2, 4, np.nan])):
        graphs = read_tu(folder, target=target)
        assert graphs.y is not None
        np.testing.assert_array_equal(graphs.y.numpy(), wanted)
    with pytest.raises(UsageError, match=r"2 numbers per graph.*target"):
        read_tu(folder)
    with pytest.raises(UsageError, match=r"target must be .* 0 to 1, got 2"):
        read_tu(folder, target=2)


def test_a_target_without_numbers_to_choose_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"target.*S has labels"):
        read_tu(write_folder(tmp_path / "a", PARTS), target=0)
    with pytest.raises(UsageError, match=r"target needs .*S_graph_attributes"):
        read_tu(write_folder(tmp_path / "b", {**PARTS, "graph_labels": None}), target=0)


def test_graphs_without_nodes_edges_or_labels_are_kept(tmp_path: Path) -> None:
    parts = {"A": "1, 2\n", "graph_indicator": "2\n2\n4\n", "graph_labels": "1\n0\n1\n0\n1\n"}
    graphs = read_tu(write_folder(tmp_path / "a", parts))
    assert graphs.sizes.tolist() == [0, 2, 0, 1, 0]
    unlabelled = {**parts, "graph_labels": None, "graph_indicator": "2\n2\n3\n"}
    graphs = read_tu(write_folder(tmp_path / "b", unlabelled))
    assert graphs.y is None
    assert graphs.sizes.tolist() == [0, 2, 1]
    assert edges_of(graphs) == [set(), {(0, 1)}, set()]
    none = read_tu(write_folder(tmp_path / "c", dict.fromkeys(parts, "")))
    assert (len(none), none.num_nodes) == (0, 0)


def test_a_huge_graph_among_small_ones_is_read_quickly(tmp_path: Path) -> None:
    size = 200_000
    sizes = [size, *[3] * 100]
    first = np.cumsum([0, *sizes])
    pairs = [(first[place] + i, first[place] + i + 1) for place in range(101) for i in (1, 2)]
    pairs += [(place, place + 1) for place in range(1, size)]
    parts = {
        "A": lines(pairs),
        "graph_indicator": lines(np.repeat(np.arange(1, 102), sizes)),
        "graph_labels": lines([place % 2 for place in range(101)]),
    }
    folder = write_folder(tmp_path, parts)
    read_tu(folder)  # which compiles
    start = time.perf_counter()
    graphs = read_tu(folder)
    assert time.perf_counter() - start < 5
    assert graphs.sizes.tolist() == sizes
    assert graphs.graph.num_edges == 2 * (size - 1 + 200)


@st.composite
def sets(draw: st.DrawFn) -> tuple[list[nx.Graph], list[int], bool]:
    """Random graphs with labels, edges both ways or one, and perhaps features."""
    with_labels, with_attributes = draw(st.booleans()), draw(st.booleans())
    graphs = []
    for size in draw(st.lists(st.integers(0, 5), min_size=1, max_size=6)):
        graph = nx.empty_graph(size)
        if size:
            node = st.integers(0, size - 1)
            graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=8)))
        for place in range(size):
            if with_labels:
                graph.nodes[place]["labels"] = draw(st.integers(-2, 2))
            if with_attributes:
                numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
                graph.nodes[place]["attributes"] = [draw(numbers), draw(numbers)]
        graphs.append(graph)
    count = len(graphs)
    labels = draw(st.lists(st.integers(-3, 3), min_size=count, max_size=count))
    return graphs, labels, draw(st.booleans())


@given(sets())
@pytest.mark.hypothesis
def test_random_sets_are_read_as_they_were_written(
    drawn: tuple[list[nx.Graph], list[int], bool],
) -> None:
    single, labels, both = drawn
    with tempfile.TemporaryDirectory() as folder:
        graphs = read_tu(write_folder(Path(folder), parts_of(single, labels, both=both)))
    assert graphs.sizes.tolist() == [len(graph) for graph in single]
    assert edges_of(graphs) == expected_edges(single)
    assert graphs.y is not None
    assert graphs.targets.label_names is not None
    assert [int(graphs.targets.label_names[number]) for number in graphs.y] == labels
    nodes = [data for graph in single for _, data in sorted(graph.nodes(data=True))]
    wanted = [data.get("attributes", []) for data in nodes]
    if nodes and "labels" in nodes[0]:
        codes = one_hot([data["labels"] for data in nodes])
        wanted = [a + b for a, b in zip(wanted, codes, strict=True)]
    x = graphs.graph.x
    assert ([[]] * len(nodes) if x is None else x.tolist()) == wanted


TWO = {"A": "1, 2\n3, 4\n", "graph_indicator": "1\n1\n2\n2\n2\n", "graph_labels": "0\n1\n"}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"A": None}, r"NAME_A\.txt, got none"),
        ({"T_A.txt": ""}, r"S_A\.txt, S_T_A"),
        ({"A": "1\n"}, r"S_A\.txt, line 1.*2"),
        ({"A": "1, 2\n1, 2, 3\n"}, r"S_A\.txt, line 2.*2"),
        ({"A": "1 2\n"}, r"S_A\.txt, line 1"),
        ({"A": "1, 2\n\n3, 4\n"}, r"S_A\.txt, line 2.*missing"),
        ({"A": "1, x\n"}, r"S_A\.txt, line 1.*'x'"),
        ({"A": "1, 2.5\n"}, r"S_A\.txt, line 1.*'2\.5'"),
        ({"A": "1, 99999999999999999999\n"}, r"S_A\.txt, line 1.*'99999"),
        ({"A": "1, 2147483648\n"}, r"S_A\.txt, line 1: .*1 to 5.*got 1 and 2147483648"),
        ({"A": "1, 2\n0, 1\n"}, r"S_A\.txt, line 2: .*1 to 5.*got 0 and 1"),
        ({"A": "1, 2\n4, 6\n"}, r"S_A\.txt, line 2: .*1 to 5.*got 4 and 6"),
        ({"A": "1, -2\n"}, r"S_A\.txt, line 1: .*got 1 and -2"),
        ({"A": "1, 2\n2, 3\n"}, r"line 2: .*node 2 of graph 1 and node 3 of graph 2"),
        ({"A": b"\xff\xfe1, 2\n"}, r"S_A\.txt, line 1"),
        ({"A": b"1\x00, 2\n"}, r"S_A\.txt, line 1"),
        ({"graph_indicator": None}, r"S_graph_indicator\.txt is missing"),
        ({"graph_indicator": ""}, r"S_A\.txt, line 1: .*1 to 0"),
        ({"graph_indicator": "1\n1\n"}, r"S_A\.txt, line 2: .*1 to 2"),
        ({"graph_indicator": "1\n2\n1\n"}, r"indicator\.txt, line 3: .*got 1 after 2"),
        ({"graph_indicator": "1\n1\n3\n3\n3\n"}, r"indicator\.txt, line 3: .*1 to 2, .*got 3"),
        ({"graph_indicator": "0\n0\n1\n1\n1\n"}, r"indicator\.txt, line 1: .*got 0"),
        ({"graph_indicator": "1, 1\n1, 1\n"}, r"indicator\.txt, line 1"),
        (
            {"graph_indicator": "1\n1\n2\n2\n9999999999\n", "graph_labels": None},
            r"indicator\.txt, line 5: .*1 to 5.*got 9999999999",
        ),
        ({"graph_labels": "yes\nno\n"}, r"graph_labels\.txt, line 1.*'yes'"),
        ({"graph_labels": "0\n1.0\n"}, r"graph_labels\.txt, line 2"),
        ({"graph_labels": "0\n"}, r"indicator\.txt, line 3: .*1 to 1"),
        ({"graph_labels": ""}, r"indicator\.txt, line 1: .*1 to 0, .*S_graph_labels"),
        ({"graph_labels": "0, 1\n1, 0\n"}, r"graph_labels\.txt, line 1"),
        ({"graph_labels": None, "graph_attributes": "1\ninf\n"}, r"attributes\.txt, line 2"),
        ({"graph_labels": None, "graph_attributes": "1\n-1e101\n"}, r"line 2: .*1e\+100"),
        ({"graph_labels": None, "graph_attributes": "1\na\n"}, r"attributes\.txt, line 2.*'a'"),
        ({"node_labels": "1\n1\n"}, r"node_labels\.txt must .*\(5, .*got 2"),
        ({"node_labels": ""}, r"node_labels\.txt must .*got 0"),
        ({"node_labels": "1\n\n1\n1\n1\n"}, r"node_labels\.txt, line 2.*missing"),
        ({"node_labels": "1\nC\n1\n1\n1\n"}, r"node_labels\.txt, line 2.*'C'"),
        ({"node_labels": "1\n1, 2\n1\n1\n1\n"}, r"node_labels\.txt, line 2"),
        ({"node_attributes": "1\n" * 6}, r"node_attributes\.txt must .*got 6"),
        ({"node_attributes": "1\n\n1\n1\n1\n"}, r"node_attributes\.txt, line 2.*finite"),
        ({"node_attributes": "1\n1\nnan\n1\n1\n"}, r"node_attributes\.txt, line 3.*finite"),
        ({"node_attributes": "1\n1\n1\n1e39\n1\n"}, r"node_attributes\.txt, line 4.*float32"),
        ({"node_attributes": ", ".join(["1"] * 10_001)}, r"attributes\.txt must .*10000"),
    ],
)
def test_wrong_files_are_named_with_the_line(
    changed: dict[str, Any], message: str, tmp_path: Path
) -> None:
    more = {name.removesuffix(".txt"): text for name, text in changed.items()}
    folder = write_folder(tmp_path, {**TWO, **more})
    with pytest.raises(DataError, match=message) as error:
        read_tu(folder)
    assert "\n" not in str(error.value)


def test_a_folder_in_the_place_of_a_file_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, {**TWO, "graph_labels": None})
    (folder / "S_graph_labels.txt").mkdir()
    with pytest.raises(DataError, match=r"S_graph_labels\.txt: .*plain file"):
        read_tu(folder)


def test_labels_of_nodes_that_need_too_much_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path, PARTS | {"node_labels": lines(range(9))})
    monkeypatch.setattr(memory, "machine_memory", lambda: 4 * 9 * 9 - 1)
    with pytest.raises(DataError, match=r"node_labels\.txt: .*9 labels"):
        read_tu(folder)


@pytest.mark.parametrize("inside", ["", "raw", "S", "S/raw"])
def test_a_folder_may_hold_the_files_deeper(inside: str, tmp_path: Path) -> None:
    write_folder(tmp_path / "S" / inside, PARTS)
    assert edges_of(read_tu(tmp_path / "S")) == expected_edges(GRAPHS)


@pytest.mark.parametrize("prefix", ["S_", "S/S_", "a/b/S_", "../../S_", "/etc/S_"])
def test_members_of_zip_files_are_read_and_never_unpacked(prefix: str, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "deep" / "deeper" / "set.zip", PARTS, prefix)
    graphs = read_tu(path)
    assert graphs.name == "S"
    assert edges_of(graphs) == expected_edges(GRAPHS)
    assert [found for found in tmp_path.rglob("*") if found.is_file()] == [path]


def test_what_macos_adds_to_zip_files_is_not_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "set.zip", PARTS, "S/S_", {"__MACOSX/S/S_A.txt": "no numbers"})
    assert edges_of(read_tu(path)) == expected_edges(GRAPHS)


@pytest.mark.parametrize(
    ("more", "kind"),
    [({"b/S_A.txt": ""}, zipfile.ZIP_DEFLATED), ({}, zipfile.ZIP_BZIP2), ({}, zipfile.ZIP_LZMA)],
    ids=["two-sets", "bzip2", "lzma"],
)
def test_zip_files_without_one_readable_set_are_refused(
    more: Parts, kind: int, tmp_path: Path
) -> None:
    path = write_zip(tmp_path / "set.zip", PARTS, "a/S_", more, kind)
    with pytest.raises(DataError, match=r"set\.zip must hold one set.*NAME_A\.txt"):
        TUFiles(path)


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04garbage", None])
def test_what_is_no_zip_file_is_said_so(content: bytes | None, tmp_path: Path) -> None:
    path = write_zip(tmp_path / "set.zip", PARTS)
    path.write_bytes(path.read_bytes()[:-30] if content is None else content)
    with pytest.raises(DataError, match=r"set\.zip is not a readable zip"):
        read_tu(path)


def with_size(path: Path, size: int) -> None:
    """Lets the first member of a zip file claim another size."""
    data = bytearray(path.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[22:26] = data[central + 24 : central + 28] = size.to_bytes(4, "little")
    path.write_bytes(data)


def test_damage_in_a_zip_file_is_found(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "set.zip", PARTS, kind=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    data[data.index(b"1, 2")] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"set\.zip: S_A\.txt: .*CRC"):
        read_tu(path)
    path = write_zip(tmp_path / "less.zip", PARTS)
    with_size(path, 3)
    with pytest.raises(DataError, match=r"less\.zip: S_A\.txt"):
        read_tu(path)


def test_zip_files_that_unpack_to_far_more_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_zip(tmp_path / "claim.zip", PARTS)
    with_size(path, 2**32 - 2)
    with pytest.raises(DataError, match=r"claim\.zip unpacks to 4\.3 GB"):
        read_tu(path)
    monkeypatch.setattr(tu, "MAX_UNPACKED", 10**6)
    bomb = write_zip(tmp_path / "bomb.zip", PARTS, more={"S_edge_labels.txt": "0\n" * 10**6})
    with pytest.raises(DataError, match=r"bomb\.zip unpacks to .* 200 times"):
        read_tu(bomb)


SIZES = {
    "MUTAG": (188, 2),
    "ENZYMES": (600, 6),
    "PROTEINS": (1113, 2),
    "NCI1": (4110, 2),
    "DD": (1178, 2),
    "IMDB-BINARY": (1000, 2),
    "IMDB-MULTI": (1500, 3),
    "REDDIT-BINARY": (2000, 2),
}


@pytest.mark.parametrize("name", SIZES)
def test_real_sets_have_the_published_sizes(name: str, real_data: Path) -> None:
    if not (real_data / "tu" / f"{name}.zip").is_file():
        pytest.skip(f"LGCN_DATA lacks {name}")
    graphs = load_graphs(name, root=real_data)
    assert (len(graphs), graphs.num_classes) == SIZES[name]
    with zipfile.ZipFile(real_data / "tu" / f"{name}.zip") as archive:
        texts = {
            Path(member).stem: archive.read(member).decode()
            for member in archive.namelist()
            if member.endswith(".txt")
        }
    source, target = np.fromstring(texts[f"{name}_A"].replace(",", " "), sep=" ").reshape(-1, 2).T
    listed = np.unique((source * 1e7 + target)[source != target])  # both ways
    found = graphs.graph.edge_index.numpy() + 1
    np.testing.assert_array_equal(np.sort(found[0] * 1e7 + found[1]), listed)
    labels = texts.get(f"{name}_node_labels", "").split()
    numbers = sorted(set(map(int, labels)))
    assert graphs.num_features == len(numbers)
    if graphs.graph.x is not None:
        place = {str(number): column for column, number in enumerate(numbers)}
        assert graphs.graph.x.argmax(1).tolist() == [place[label] for label in labels]
