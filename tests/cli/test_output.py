"""What the command line prints cannot control the terminal."""

import io

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table

from lgcn.cli.output import SafeConsole, visible

HARM = "a\x1b[2J\x07\x9bm\u202eb\udcff"
SHOWN = r"a\x1b[2J\x07\x9bm\u202eb\udcff"


@pytest.fixture
def console() -> SafeConsole:
    return SafeConsole(file=io.StringIO(), width=120, highlight=False, force_terminal=True)


def printed(console: SafeConsole) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_control_characters_are_shown_as_escapes():
    assert visible(HARM) == SHOWN
    assert visible("Müller\tß\n日本 = 3") == "Müller\tß\n日本 = 3"


def test_texts_tables_and_titles(console: SafeConsole):
    table = Table(HARM, title=HARM)
    table.add_row(HARM)
    console.print(HARM, table, markup=False)
    text = printed(console)
    assert text.count(SHOWN) >= 4
    assert not set("\x07\x9b\u202e\udcff") & set(text)
    assert "\x1b[2J" not in text
    rows = [line for line in text.splitlines() if SHOWN in line and line[0] in "┃│"]
    assert len({len(line) for line in rows if line.startswith("│")}) == 1


def test_progress(console: SafeConsole):
    with Progress(TextColumn("{task.description}"), console=console) as bar:
        bar.add_task(HARM, total=1)
    text = printed(console)
    assert r"a\x1b[2" in text  # cut to the width of the line
    assert "\x07" not in text
    assert "\x1b[2J" not in text


def test_styles_stay(console: SafeConsole):
    console.print("[bold]a[/bold]")
    assert "\x1b[1m" in printed(console)
