"""The paper's numbers against its text, where that is at hand."""

import re
from pathlib import Path

import pytest

from lgcn.paper import printed as paper

TEX = Path(__file__).parents[3] / "shared" / "paper" / "lgcn-kdd18.tex"


@pytest.fixture(scope="module")
def tables() -> dict[str, list[list[str]]]:
    """The cells of each table of the paper, by its label."""
    if not TEX.is_file():
        pytest.skip(f"the paper is not at {TEX.name}")
    found = {}
    for text in re.findall(r"\\begin\{table\}.*?\\end\{table\}", TEX.read_text(), re.DOTALL):
        label = re.findall(r"\\label\{table:(\w+)\}", text)[0]
        body = text.partition(r"\begin{tabular}")[2]
        found[label] = [row.split("&") for row in re.split(r"\\\\", body)]
    return found


def numbers(cells: list[str]) -> list[paper.Number]:
    """What the cells of a row print."""
    result = []
    for cell in cells:
        found = [
            float(n) for n in re.findall(r"\d+(?:\.\d+)?", re.sub(r"\\cline\{.*?\}", "", cell))
        ]
        result.append(paper.Number(*found))
    return result


def row_of(rows: list[list[str]], name: str) -> list[paper.Number]:
    [cells] = [cells for cells in rows if re.search(name, cells[0])]
    return numbers(cells[1:])


@pytest.mark.parametrize(
    ("table", "label", "names"),
    [
        (
            "table2",
            "trans",
            {
                "deepwalk": "DeepWalk",
                "planetoid": "Planetoid",
                "chebyshev": "Chebyshev",
                "gcn": "GCN~",
                "lgcn": "Ours",
            },
        ),
        (
            "table3",
            "induc",
            {
                "sage-gcn": "GraphSAGE-GCN",
                "sage-mean": "GraphSAGE-mean",
                "sage-pool": "GraphSAGE-pool",
                "sage-lstm": "GraphSAGE-LSTM",
                "lgcn": "Ours",
            },
        ),
        ("table4", "lgcl_vs_gcn", {"lgcn-gcn": "-GCN", "lgcn": "Ours"}),
    ],
)
def test_scores(
    tables: dict[str, list[list[str]]], table: str, label: str, names: dict[str, str]
) -> None:
    assert paper.SCORES[table].keys() == names.keys()
    for system, name in names.items():
        printed = row_of(tables[label], name)
        assert list(paper.SCORES[table][system].values())[: len(printed)] == printed


def test_table_5(tables: dict[str, list[list[str]]]) -> None:
    rows = [cells for cells in tables["batch_vs_unbatch"] if len(cells) == 5]
    values = {
        kind: [numbers(cells[2:]) for cells in rows if kind in cells[1]]
        for kind in ("Nodes", "Accuracy", "Time")
    }
    for i, system in enumerate(("gcn", "lgcn-whole", "lgcn")):
        assert list(paper.NODES[system].values()) == values["Nodes"][i]
        assert list(paper.SCORES["table5"][system].values()) == values["Accuracy"][i]
        assert list(paper.SECONDS[system].values()) == values["Time"][i]


def test_what_stands_beside_other_labels_is_the_same_number() -> None:
    for row in paper.SCORES["table3"].values():
        assert row["ppi"] == row["ppi-rederived"]
