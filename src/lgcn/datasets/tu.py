"""Sets of graphs in the layout of TU Dortmund's collection, as a folder or a zip file.

| file | content |
|---|---|
| `NAME_A.txt` | a line per edge: two node numbers, from 1 over all graphs; often listed both ways |
| `NAME_graph_indicator.txt` | a line per node: the number of its graph, from 1, never falling |
| `NAME_graph_labels.txt` | a line per graph: its class, a whole number; optional |
| `NAME_node_labels.txt` | a line per node: one or several whole numbers, each one-hot; optional |
| `NAME_node_attributes.txt` | a line per node: numbers, taken as they are; optional |
| `NAME_graph_attributes.txt` | a line per graph: numbers to predict, where there are no labels |

Labels, attributes and weights of edges are not read. Edges are undirected; self-loops and
duplicates are left out. Graphs may have no nodes or no edges.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from lgcn.errors import DataError, UsageError, first_line_of
from lgcn.utils.files import open_plain
from lgcn.utils.limits import MAX_NODES, MAX_UNPACKED, MAX_UNPACKED_RATIO
from lgcn.utils.memory import check_memory
from lgcn.utils.numbers import whole_number

if TYPE_CHECKING:
    from lgcn.graph import GraphSet

EDGES = "_A.txt"
MAX_COLUMNS = 10_000  # numbers in a line
_ROW = re.compile(r"(?:.*: )?Row #(\d+): (.*)")


class TUFiles:
    """The files of one set of graphs. Members of a zip file are read, never unpacked to the disk.

    Args:
        path: A folder that holds the files itself, in `raw/`, or in a folder of its own name; or
            a zip file.

    Attributes:
        name: What the names of the files start with.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members: dict[str, zipfile.ZipInfo] = {}
        if path.is_dir():
            inside = (path, path / "raw", path / path.name, path / path.name / "raw")
            self._folder, found = next(
                ((place, names) for place in inside if (names := _edge_files(place))), (path, [])
            )
        else:
            self._members = _members(path)
            found = [member for member in self._members if member.endswith(EDGES)]
        if len(found) != 1:
            got = ", ".join(sorted(found)[:5]) or "none"
            raise DataError(
                f"{path} must hold one set of graphs, with one file NAME{EDGES}, got {got}"
            )
        self._prefix = found[0].removesuffix(EDGES)
        self.name = PurePosixPath(self._prefix).name

    def where(self, part: str) -> str:
        """What messages call the file of a part."""
        return f"{self.path}: {self.name}_{part}.txt"

    def numbers(
        self, part: str, kind: str, columns: int | None = None, *, at_least: int = 0
    ) -> Any:
        """The numbers in a file, in shape [lines, columns]; `None` if there is no such file.

        Args:
            part: Which file.
            kind: `"int64"`, or `"float64"` in which a blank line is NaN.
            columns: Numbers in a line. (default: as in the first)
            at_least: How many lines there must be for blank lines at the end to be left out.
                (default: any number)
        """
        import pyarrow as pa
        from pyarrow import csv

        data = self._read(part)
        if data is None:
            return None
        blank_lines = data[len(data.rstrip()) :].count(b"\n") - 1  # the first ends a line
        data = data.rstrip()
        width = data.partition(b"\n")[0].count(b",") + 1 if columns is None else columns
        if width > MAX_COLUMNS:
            raise DataError(f"{self.where(part)} must have at most {MAX_COLUMNS} numbers in a line")
        if not data:
            return np.empty((0, width), kind)
        names = [str(column) for column in range(width)]
        try:
            table = csv.read_csv(
                pa.BufferReader(data),
                csv.ReadOptions(use_threads=False, column_names=names),  # threads lose the line
                csv.ParseOptions(ignore_empty_lines=False, quote_char=False),
                csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.type_for_alias(kind)), null_values=[""]
                ),
            )
        except pa.ArrowException as error:
            found = _ROW.match(first_line_of(error))
            line, why = (f", line {found[1]}", found[2]) if found else ("", first_line_of(error))
            what = "whole numbers" if kind == "int64" else "numbers"
            raise DataError(
                f"{self.where(part)}{line}: want {width} {what}, with commas between: {why}"
            ) from error
        made = np.empty((len(table), width), kind)
        for place, column in enumerate(table.columns):
            if column.null_count and kind == "int64":
                blank = int(column.is_null().to_numpy().argmax()) + 1
                raise DataError(f"{self.where(part)}, line {blank}: the number is missing")
            made[:, place] = column.to_numpy()
        missing = min(at_least - len(made), blank_lines)
        if kind == "float64" and missing > 0:
            made = np.concatenate([made, np.full((missing, width), np.nan)])
        return made

    def _read(self, part: str) -> bytes | None:
        if not self._members:
            file_path = self._folder / f"{self._prefix}_{part}.txt"
            try:
                with open_plain(file_path) as file:
                    return file.read()
            except FileNotFoundError:
                return None
            except (OSError, ValueError) as error:
                raise DataError(f"{self.where(part)}: {first_line_of(error)}") from error
        member = self._members.get(f"{self._prefix}_{part}.txt")
        if member is None:
            return None
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(member) as packed:
                return packed.read(member.file_size)  # never more, whatever comes
        except Exception as error:  # zipfile raises many kinds on damaged files
            raise DataError(
                f"{self.where(part)}: {first_line_of(error)}. Fetch it again"
            ) from error


def _edge_files(folder: Path) -> list[str]:
    return [path.name for path in folder.glob(f"*{EDGES}")] if folder.is_dir() else []


def _members(path: Path) -> dict[str, zipfile.ZipInfo]:
    """The members of a zip file that may be read."""
    try:
        open_plain(path).close()
        with zipfile.ZipFile(path) as archive:
            found = archive.infolist()
    except Exception as error:  # as above
        raise DataError(f"{path} is not a readable zip file: {first_line_of(error)}") from error
    # What macOS adds, and compressions whose output cannot be limited.
    kinds = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    texts = [
        member
        for member in found
        if member.filename.endswith(".txt")
        and not member.filename.startswith("__MACOSX")
        and member.compress_type in kinds
    ]
    size = sum(member.file_size for member in texts)
    if size > max(MAX_UNPACKED, MAX_UNPACKED_RATIO * path.stat().st_size):
        raise DataError(
            f"{path} unpacks to {size / 1e9:.1f} GB, more than {MAX_UNPACKED_RATIO} times its size "
            f"and {MAX_UNPACKED / 1e9:.2f} GB: it is damaged, or made to fill the memory. If it is "
            "yours, give the unpacked folder"
        )
    return {member.filename: member for member in texts}


def read_tu(path: Path, *, target: int | None = None) -> GraphSet:
    """Reads a set of graphs, without splits. Classes are numbered by size; their names are kept.

    Args:
        path: See `TUFiles`.
        target: Which column of `graph_attributes` to predict, from 0. (default: the only one)
    """
    import torch

    from lgcn.graph import Graph, GraphSet
    from lgcn.tables.edges import to_adjacency

    files = TUFiles(path)
    indicator = files.numbers("graph_indicator", "int64", 1)
    if indicator is None:
        raise DataError(f"{files.where('graph_indicator')} is missing")
    num_nodes = len(indicator)
    if num_nodes > MAX_NODES:
        raise DataError(f"{files.where('graph_indicator')} must have at most {MAX_NODES} lines")
    part, y, label_names = _labels(files, target, int(indicator.max(initial=0)))
    graph_of = _graph_of_nodes(files, indicator[:, 0], part, None if y is None else len(y))
    num_graphs = int(graph_of.max(initial=-1)) + 1 if y is None else len(y)
    sizes = np.bincount(graph_of, minlength=num_graphs)
    rows, _ = to_adjacency(*_edges(files, graph_of), None, num_nodes, directed=False)
    graph = Graph(
        rows.rowptr,
        rows.col,
        x=_features(files, num_nodes),
        ptr=torch.from_numpy(np.concatenate([[0], sizes.cumsum()])),
        name=files.name,
    )
    targets = None if y is None else torch.from_numpy(y)
    return GraphSet.create(graph, y=targets, label_names=label_names)


def _labels(
    files: TUFiles, target: int | None, last_graph: int
) -> tuple[str, Any, list[str] | None]:
    """The file that has the labels, one label per graph, and the names of classes."""
    from lgcn.tables.columns import LARGEST

    labels = files.numbers("graph_labels", "int64", 1)
    if labels is not None:
        if target is not None:
            raise UsageError(f"target must be omitted: {files.name} has labels, not numbers")
        found, y = np.unique(labels[:, 0], return_inverse=True)
        return "graph_labels", y.astype(np.int64), [str(label) for label in found.tolist()]
    numbers = files.numbers("graph_attributes", "float64", at_least=last_graph)
    if numbers is None:
        if target is not None:
            raise UsageError(
                f"target needs {files.where('graph_attributes')}, which does not exist. Omit target"
            )
        return "", None, None
    width = numbers.shape[1]
    if target is None and width > 1:
        raise UsageError(
            f"{files.where('graph_attributes')} has {width} numbers per graph. Give "
            f"target=NUMBER for the one to predict, from 0 to {width - 1}"
        )
    y = numbers[:, whole_number("target", target or 0, 0, width - 1)]
    wrong = np.abs(y) > LARGEST  # as numbers in tables
    if wrong.any():
        raise DataError(
            f"{files.where('graph_attributes')}, line {int(wrong.argmax()) + 1}: want a finite "
            f"number of at most {LARGEST:g}"
        )
    return "graph_attributes", y, None


def _graph_of_nodes(files: TUFiles, indicator: Any, part: str, num_graphs: int | None) -> Any:
    """The graph of each node, from 0."""
    where = files.where("graph_indicator")
    falls = np.flatnonzero(indicator[1:] < indicator[:-1])
    if len(falls):
        line = int(falls[0])
        raise DataError(
            f"{where}, line {line + 2}: the numbers of graphs must never fall, got "
            f"{indicator[line + 1]} after {indicator[line]}"
        )
    # Without a file of labels, the graphs after the last node are unknown, and there are no more
    # graphs than nodes, or the file would be absurd.
    most = len(indicator) if num_graphs is None else num_graphs
    wrong = (indicator < 1) | (indicator > most)
    if wrong.any():
        line = int(wrong.argmax())
        source = f"one per line of {files.name}_{part}.txt" if part else "at most one per node"
        raise DataError(
            f"{where}, line {line + 1}: graphs must be numbered from 1 to {most}, {source}, got "
            f"{indicator[line]}"
        )
    return indicator - 1


def _edges(files: TUFiles, graph_of: Any) -> tuple[list[Any], list[Any]]:
    """Sources and targets, from 0, without self-loops."""
    edges = files.numbers("A", "int64", 2)
    assert edges is not None  # it gave the set its name
    num_nodes, where = len(graph_of), files.where("A")
    wrong = ((edges < 1) | (edges > num_nodes)).any(axis=1)
    if wrong.any():
        line = int(wrong.argmax())
        raise DataError(
            f"{where}, line {line + 1}: nodes must be numbered from 1 to {num_nodes}, one per line "
            f"of {files.name}_graph_indicator.txt, got {edges[line, 0]} and {edges[line, 1]}"
        )
    source, target = edges.T - 1
    apart = graph_of[source] != graph_of[target]
    if apart.any():
        line = int(apart.argmax())
        ends = source[line], target[line]
        raise DataError(
            f"{where}, line {line + 1}: an edge must join nodes of one graph, got node "
            f"{ends[0] + 1} of graph {graph_of[ends[0]] + 1} and node {ends[1] + 1} of graph "
            f"{graph_of[ends[1]] + 1}"
        )
    between = source != target
    return [source[between].astype(np.int32)], [target[between].astype(np.int32)]


def _features(files: TUFiles, num_nodes: int) -> Any:
    """Attributes, then a column of zeros and ones per label; `None` if nodes have neither."""
    import torch

    attributes = files.numbers("node_attributes", "float64")
    labels = files.numbers("node_labels", "int64")
    for part, found in (("node_attributes", attributes), ("node_labels", labels)):
        if found is not None and len(found) != num_nodes:
            raise DataError(
                f"{files.where(part)} must have one line per node ({num_nodes}, the lines of "
                f"{files.name}_graph_indicator.txt), got {len(found)}"
            )
    blocks = []
    if attributes is not None:
        with np.errstate(over="ignore"):
            attributes = attributes.astype(np.float32)
        wrong = ~np.isfinite(attributes).all(axis=1)
        if wrong.any():
            raise DataError(
                f"{files.where('node_attributes')}, line {int(wrong.argmax()) + 1}: want finite "
                "numbers that float32 can hold"
            )
        blocks.append(attributes)
    for column in () if labels is None else labels.T:
        values, codes = np.unique(column, return_inverse=True)
        what = f"{files.where('node_labels')}: one-hot features of {len(values)} labels"
        check_memory(4 * num_nodes * len(values), what, DataError)  # of a model's float32
        block = np.zeros((num_nodes, len(values)), np.uint8)
        block[np.arange(num_nodes), codes] = 1
        blocks.append(block)
    if not blocks:
        return None
    return torch.from_numpy(blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1))
