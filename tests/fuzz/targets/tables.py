"""Tables in files: text, compared with the ``csv`` module, and damaged files of every format."""

import csv
import io
import re
from typing import Any

from lgcn.tables.from_tables import import_tables

from ..rules import Refused
from ..scratch import scratch
from ..source import Source
from ..table_files import (
    EDGES,
    NODES,
    OPTIONS,
    damaged,
    intact,
    npy_files,
    try_tables,
    zipped,
)

CELLS = (
    *("", " ", "NaN", "nan", "NA", "null", "None", "true", "False", "train", "test"),
    *("0", "1", "-1", "1.0", "1,5", "1e999", "inf", "-inf", "-0", "007", "1_000", "1.234,56"),
    *("9" * 18, "9" * 40, "0x1f", "2024-12-31", "2024-12-31T10:00:00Z", "12:30", "08.07.2022"),
    *("a", "b", "a b c", "a;b", "a|b", "a,b", "x" * 5000, '"', '""', "'", "\\", "€ 12.50", "12 %"),
    *("ü", "\u202e", "\ufeff", "\u200b", "\xa0", "e\u0301", "😀", "\x85", "\u2028", "\x1b[2J"),
    *("\n", "\r\n", "\r", "\t", "\v", "\x1c", "\0", "=cmd|calc", "-"),
)
NAMES = (
    *("id", "ID", "node", "source", "target", "src", "dst", "weight", "topic", "y", "c1"),
    *("", " ", "a", "A", "a ", "ü", '"', "\n", ",", "nan", "1", "x" * 300, "\0", "\x1b[2J"),
)
ENCODINGS = (
    *("utf-8", "latin-1", "cp1252", "utf-16", "utf-32", "utf-7", "ascii", "shift_jis", "idna"),
    *("rot13", "hex", "undefined", "unicode_escape", "nonsense", "", "\0"),
)
PIECES = (
    *(b",", b";", b"\t", b"\n", b"\r", b'"', b'""', b"'", b"\\", b"\0", b"\xff", b"", b"\x1b[2J"),
    *(b"nan", b"inf", b"-1", b"1e999", b"9" * 30, b"\xef\xbb\xbf", b"\xff\xfe", b"\xff" * 8),
)


def cell_of(source: Source) -> str:
    kind = source.below(4)
    if kind == 0:
        return str(source.between(-5, 30))
    return source.text(6) if kind == 1 else source.choice(CELLS)


def options_of(source: Source, node_names: list[str], edge_names: list[str]) -> dict[str, Any]:
    """Options of an import, a few of them odd."""
    options: dict[str, Any] = {"unknown_nodes": "drop"}
    if "topic" in node_names and not source.rarely():
        options["label_column"] = "topic"
    columns = [*node_names, "missing", ""]
    ends = [*edge_names, "missing"]
    for _ in range(source.choice((0, 0, 0, 1, 1, 2))):
        kind = source.below(9)
        if kind == 0:
            name = source.choice(("label_column", "id_column", "split_column"))
            options[name] = source.choice(columns)
        elif kind == 1:
            name = source.choice(("weight_column", "source_column", "target_column"))
            options[name] = source.choice(ends)
        elif kind == 2:
            several = ("numeric_columns", "text_columns", "categorical_columns", "ignore_columns")
            options[source.choice(several)] = source.several(columns, 2)
        elif kind == 3:
            options["delimiter"] = source.choice(
                (",", ";", "\t", "\\t", "|", " ", "", "ab", "ü", "\0", "\n")
            )
        elif kind == 4:
            options["encoding"] = source.choice(ENCODINGS)
        elif kind == 5:
            shares = (0, 0.0, 0.5, 1, -1, float("nan"), float("inf"), "0.2", 2)
            options[source.choice(("val", "test"))] = source.choice(shares)
        elif kind == 6:
            options["labels_per_class"] = source.between(-1, 3)
        elif kind == 7:
            options["label_separator"] = source.choice((";", ",", "", " ", "\0"))
        else:
            options["directed"] = True
    return options


def lines_of(
    source: Source, names: list[str], pools: list[list[str]], length: int
) -> list[list[str]]:
    """A header and rows of mostly usual cells."""
    header = [source.choice(NAMES) if source.rarely() else name for name in names]
    columns = list(pools)
    for number in range(source.below(3)):
        header.append(source.choice(NAMES) if source.rarely() else f"c{number}")
        columns.append([cell_of(source) for _ in range(source.between(1, 4))])
    rows = [
        [pool[(i * 7 + j) % len(pool)] for j, pool in enumerate(columns)] for i in range(length)
    ]
    for _ in range(source.choice((0, 0, 1, 2)) if rows else 0):
        row = source.choice(rows)
        if source.below(4):
            row[source.below(len(row))] = cell_of(source)
        elif source.flag():
            row.append(cell_of(source))
        else:
            row.pop()
    return [header, *rows]


def encoded(source: Source, lines: list[list[str]], delimiter: str) -> tuple[bytes, bool]:
    """The file, and whether the ``csv`` module reads it back by the usual rules."""
    usual = True
    if source.rarely():
        delimiter, usual = source.choice((",", ";", "\t", "|", " ")), False
    newline = source.choice(("\n", "\n", "\n", "\r\n", "\r\n", "\r"))
    if source.rarely():
        lines, usual = lines[1:], False  # no header
    if source.rarely():  # no quotes at all
        text, usual = newline.join(delimiter.join(line) for line in lines), False
    else:
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=delimiter, lineterminator=newline).writerows(lines)
        text = file.getvalue()
    encoding = "utf-8"
    if source.rarely():
        encoding = source.choice(("utf-8-sig", "utf-16", "cp1252", "utf-32"))
        usual = usual and encoding == "utf-8-sig"
    content = text.encode(encoding, errors="ignore")
    if source.below(8) == 7:
        content, usual = damaged(content, edits_of(source), 0), False
    return content, usual


def edits_of(source: Source) -> list[tuple[int, int, bytes]]:
    """Positions, how many bytes are deleted there, and what replaces them."""
    return [
        (
            source.below(1 << 16),
            source.below(5),
            source.choice(PIECES) if source.flag() else source.take(source.below(5)),
        )
        for _ in range(source.below(4))
    ]


def text_target(source: Source) -> None:
    """Text files: read as the ``csv`` module reads them, or refused."""
    ending = source.choice((".csv", ".csv", ".tsv", ".txt", ".TXT"))
    delimiter = "\t" if ending == ".tsv" else ","
    kind = source.below(4)
    if kind < 2:
        ids = [f"n{i}" for i in range(12)]
    elif kind == 2:
        ids = [str(i * 10 ** source.below(15) - 5) for i in range(12)]
    else:
        ids = [f"{i}{source.choice(CELLS[:-3])}" for i in range(12)]
    length = source.choice((12, 12, 12, 12, 12, 3, 1, 0))
    usual = [ids, ["1", "2.5", "-3e2", ""], ["x", "y", "", "x", "y"]]
    nodes = lines_of(source, ["id", "size", "topic"], usual, length)
    edges = lines_of(source, ["source", "target"], [ids, ids[1:8]], length)
    options = options_of(source, nodes[0], edges[0])
    folder = scratch("tables")
    paths = [folder / f"edges{ending}", folder / f"nodes{ending}"]
    plain = set(options) <= {"unknown_nodes", "label_column", "directed"}
    for path, lines in zip(paths, (edges, nodes), strict=True):
        content, as_usual = encoded(source, lines, delimiter)
        plain = plain and as_usual
        path.write_bytes(content)
    message = try_tables(*paths, options)
    if message is not None:
        raise Refused(message)
    if plain:
        same_as_csv(paths, delimiter, options)


def same_as_csv(paths: list[Any], delimiter: str, options: dict[str, Any]) -> None:
    """Ids and edges are those that the ``csv`` module reads."""
    tables = []
    for path in paths:
        text = path.read_bytes().decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
        tables.append([row for row in rows if row])
    (edge_names, *edges), (node_names, *nodes) = tables
    if edge_names[:2] != ["source", "target"] or node_names[:1] != ["id"]:
        return
    if len({*edge_names}) < len(edge_names) or len({*node_names}) < len(node_names):
        return
    graph = import_tables(*paths, **options).graph
    ids = graph.node_ids.tolist()
    integer = all(isinstance(found, int) for found in ids)

    def as_id(cell: str) -> int | str | None:
        """In a table whose ids are numbers, any other cell names no node."""
        if not integer:
            return cell
        return int(cell) if re.fullmatch(r"\s*-?\d+\s*", cell) else None

    assert ids == [as_id(row[0]) for row in nodes]
    number = {found: i for i, found in enumerate(ids)}
    expected = set()
    for row in edges:
        source, target = (number.get(as_id(cell)) for cell in row[:2])
        if source is not None and target is not None and source != target:
            expected.add((source, target))
            if not options.get("directed"):
                expected.add((target, source))
    found = list(zip(*graph.edge_index.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected


NODE_FILES, EDGE_FILES = intact(NODES), intact(EDGES)
# The checksum of a zip file would hide damage inside.
NODE_ARRAYS, EDGE_ARRAYS = npy_files(NODES), npy_files(EDGES)


def damaged_target(source: Source) -> None:
    """Damaged bytes in files of every format."""
    options = source.choice(OPTIONS)
    folder = scratch("damaged")
    paths, changed = [], False
    for name, files, arrays in (
        ("edges", EDGE_FILES, EDGE_ARRAYS),
        ("nodes", NODE_FILES, NODE_ARRAYS),
    ):
        if source.below(4) == 3:
            column = source.choice(list(arrays))
            content = damaged(arrays[column], edits_of(source), 0)
            changed = changed or content != arrays[column]
            ending, content = ".npz", zipped({**arrays, column: content})
        else:
            ending, before = source.choice(files)
            cut = source.choice((0, 0, 0, source.below(3000)))
            content = damaged(before, edits_of(source), cut)
            changed = changed or content != before
        paths.append(folder / f"{name}{ending}")
        paths[-1].write_bytes(content)
    message = try_tables(*paths, options)
    if message is not None:
        assert changed, message
        raise Refused(message)
