"""Renderings have every number of the table, and can be read back."""

import csv
import io
from pathlib import Path

import pytest
from rich.console import Console

from lgcn.paper.plans import TARGETS, make_plans
from lgcn.paper.render import LONG, csv_text, markdown, terminal, write_page
from lgcn.paper.tables import Table, make_table, title_of

from .fakes import fill


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    folder = tmp_path_factory.mktemp("records")
    plans = make_plans("all", seeds=2, trials=1)
    fill(plans, folder)
    return {plan.target: make_table(plan, folder) for plan in plans}


@pytest.mark.parametrize("target", list(TARGETS))
def test_csv_reads_back(target: str, tables: dict[str, Table]) -> None:
    table = tables[target]
    rows = list(csv.DictReader(io.StringIO(csv_text(table))))
    assert len(rows) == len(table.entries)
    for row, entry in zip(rows, table.entries, strict=True):
        for key, value in entry.items():
            if value is None:
                assert row[key] == ""
            elif isinstance(value, str):
                assert row[key] == value
            else:
                assert float(row[key]) == value


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|\n ").split("|")]


@pytest.mark.parametrize("target", list(TARGETS))
def test_markdown_has_every_number(target: str, tables: dict[str, Table]) -> None:
    table = tables[target]
    page = markdown(table, "--seeds 2", chart=True)
    lines = [cells(line) for line in page.splitlines() if line.startswith("|")]
    header, body = lines[0], lines[2:]
    assert all(len(line) == len(header) for line in lines)
    for entry in table.entries:
        for column in table.columns:
            if target in LONG:
                [line] = [b for b in body if b[:2] == [title_of(entry["dataset"]), entry["row"]]]
                found = line[header.index(column.title)]
            else:
                [line] = [b for b in body if b[0] == entry["row"]]
                found = line[header.index(f"{title_of(entry['dataset'])}: {column.title}")]
            text = column.text(entry)
            assert found.replace("**", "") == text
            assert ("**" in found) == (column.bold and text != "-")
    assert f"]({target}.svg)" in page
    assert f"`lgcn reproduce {target} --seeds 2`" in page
    for note in table.notes:
        assert note in page
    for command in table.commands.values():
        assert command in page


def test_markdown_without_a_chart(tables: dict[str, Table]) -> None:
    page = markdown(tables["table4"], "", chart=False)
    assert "svg" not in page
    assert "`lgcn reproduce table4`" in page


@pytest.mark.parametrize("target", list(TARGETS))
def test_a_terminal_shows_every_number(target: str, tables: dict[str, Table]) -> None:
    table = tables[target]
    file = io.StringIO()
    Console(file=file, width=200).print(terminal(table))
    lines = file.getvalue().splitlines()
    for entry in table.entries:
        texts = [entry["row"], *(column.text(entry) for column in table.columns)]
        assert any(all(text in line for text in texts) for line in lines)
    for dataset in table.datasets:
        assert any(line.split("│")[1].strip() == title_of(dataset) for line in lines if "│" in line)


def test_the_page_keeps_what_was_there(tables: dict[str, Table], tmp_path: Path) -> None:
    for target in ("figure5", "table3"):
        text = markdown(tables[target], "", chart=False)
        path = write_page(tmp_path, {target: text}, list(TARGETS))
    page = path.read_text()
    assert path == tmp_path / "README.md"
    write_page(tmp_path, {target: text}, list(TARGETS))
    assert path.read_text() == page
    assert page.startswith("# ")
    assert page.index("## Table 3") < page.index("## Figure 5")
    assert "## Table 2" not in page
    assert "not PPI scores" in page
