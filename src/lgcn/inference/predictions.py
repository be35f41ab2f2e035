"""Predictions as a table with the user's node ids and label names, and a confidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lgcn.errors import UsageError
from lgcn.inference.output_file import check_output
from lgcn.inference.truth import Truth, joined, named
from lgcn.utils.files import atomic
from lgcn.utils.numbers import real_number

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.utils.choices import Unit
    from lgcn.utils.progress import OnProgress

SUFFIXES = (".csv", ".tsv", ".parquet")
# What a spreadsheet takes for a formula, also in full-width letters, and the numbers among it.
FORMULA = "^[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


def predictions(
    logits: Tensor,
    label_names: Sequence[Any],
    *,
    multi_label: bool = False,
    temperature: float = 1.0,
    threshold: float | None = None,
    node_ids: Any = None,
    abstain_below: float | None = None,
    truth: Truth | None = None,
    unit: Unit = "node",
) -> pa.Table:
    """The table of predictions, one row per node.

    | column | content |
    |---|---|
    | `node` | the user's id, or the number of the node |
    | `predicted` | the class, or the labels above 0.5 as `"a;b"`; null if the model abstains |
    | `confidence` | probability of the predicted class; of several labels, the least certain |
    | `true` | the true class or labels, null if unknown; with `truth` |
    | `split` | `train`, `val` or `test`, null if the node is in none; with `truth` |
    | `probability_A` | one column per class or label, calibrated by the temperature |

    Args:
        logits: Scores before softmax or sigmoid, [nodes, classes].
        label_names: The names of the classes or labels, strings or numbers.
        multi_label: Whether a node can have several labels. (default: `False`)
        temperature: Softmax temperature, see `lgcn.training.calibration`. (default: 1)
        threshold: For two classes, the probability from which on the second is predicted.
            (default: the most likely class)
        node_ids: The ids of the nodes. (default: their numbers)
        abstain_below: Confidence, from 0 to 1, below which nothing is predicted. (default: none)
        truth: The true labels and the split of the nodes. (default: no columns for them)
        unit: What is predicted, which is the name of the first column: `"node"`, or `"graph"` for
            whole graphs. (default: `"node"`)
    """
    from lgcn.training.calibration import confidence, decide, probabilities

    num_nodes, num_classes = logits.shape
    if len(label_names) != num_classes:
        raise UsageError(
            f"label_names must have one name per class ({num_classes}), got {len(label_names)}"
        )
    ids = _id_column(node_ids, num_nodes)
    chances = probabilities(logits.detach().cpu(), multi_label, temperature)
    sure = confidence(chances, multi_label)
    chosen = None if multi_label else decide(chances, threshold)
    if chosen is not None and num_classes == 2:  # the likelier class may not be the predicted one
        sure = chances.gather(1, chosen.unsqueeze(1)).squeeze(1)
    abstains = None
    if abstain_below is not None:
        threshold = real_number("abstain_below", abstain_below, 0, 1)
        abstains = (sure.double() < threshold).numpy()
    if chosen is None:
        predicted = pa.array(joined(chances > 0.5, label_names), pa.string(), mask=abstains)
    else:
        predicted = named(chosen, label_names, abstains)
    columns = {unit: ids, "predicted": predicted, "confidence": pa.array(sure.numpy())}
    if truth is not None:
        columns |= truth.columns(label_names)
    for name, column in zip(label_names, chances.t().contiguous(), strict=True):
        columns[f"probability_{name}"] = pa.array(column.numpy())
    return pa.table(columns)


def predicted_values(
    values: Tensor,
    *,
    half_width: float | None = None,
    node_ids: Any = None,
    truth: Truth | None = None,
    unit: Unit = "node",
) -> pa.Table:
    """The table of a regression's predictions, one row per node.

    | column | content |
    |---|---|
    | `node` | the user's id, or the number of the node |
    | `predicted` | the predicted value |
    | `lower`, `upper` | the interval around it; null if its width is not known |
    | `true` | the true value, null if unknown; with `truth` |
    | `split` | `train`, `val` or `test`, null if the node is in none; with `truth` |

    Args:
        values: The predicted values, [nodes].
        half_width: Half the width of the interval. (default: not known)
        node_ids, truth, unit: See `predictions`.
    """
    found = values.detach().double().cpu().numpy()
    edges: list[Any] = [pa.nulls(len(found), pa.float64())] * 2
    if half_width is not None:
        edges = [pa.array(found - half_width), pa.array(found + half_width)]
    columns: dict[str, Any] = {unit: _id_column(node_ids, len(found)), "predicted": pa.array(found)}
    columns |= dict(zip(("lower", "upper"), edges, strict=True))
    return pa.table(columns | ({} if truth is None else truth.columns(())))


def prediction_blocks(
    scores: Tensor,
    label_names: Sequence[Any] | None,
    *,
    node_ids: Callable[[int, int], Any] | None = None,
    nodes: Tensor | None = None,
    truth: Truth | None = None,
    values: Callable[[Tensor], Tensor] | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Iterator[pa.Table]:
    """The table of `predictions` in pieces, so that it does not have to fit in memory.

    Args:
        scores: Scores before softmax or sigmoid, of all nodes.
        label_names: The names of the classes or labels; `None` for a regression, whose table is
            that of `predicted_values`.
        node_ids: Gives the ids of the nodes from `start` up to `stop`, as
            `lgcn.store.open_store.Store.node_ids` does. (default: their numbers)
        nodes: A mask of the nodes to keep. (default: all)
        truth: The true labels and the split of all nodes. (default: none)
        values: For a regression, gives the values of a block of scores.
        on_progress: Called after each piece. (default: none)
        **options: The other arguments of `predictions` or `predicted_values`.
    """
    from lgcn.nn.layerwise import read_blocks

    for start, stop, logits in read_blocks(scores):
        ids = np.arange(start, stop) if node_ids is None else node_ids(start, stop)
        known = None if truth is None else truth.rows(start, stop)
        more = {"node_ids": ids, "truth": known, **options}
        if label_names is None:
            assert values is not None
            table = predicted_values(values(logits), **more)
        else:
            table = predictions(logits, label_names, **more)
        yield table if nodes is None else table.filter(nodes[start:stop].cpu().numpy())
        if on_progress is not None:
            on_progress("predictions", stop, scores.shape[0])


def _id_column(node_ids: Any, num_nodes: int) -> pa.Array:
    """The ids as a column; the numbers of the nodes if they have none."""
    if not isinstance(node_ids, pa.Array):
        node_ids = np.arange(num_nodes) if node_ids is None else np.asarray(node_ids)
        if node_ids.dtype.kind == "S":  # strings, which Arrow would take for bytes
            node_ids = np.char.decode(node_ids, "utf-8", "replace")
    shape = [len(node_ids)] if isinstance(node_ids, pa.Array) else list(node_ids.shape)
    if shape != [num_nodes]:
        raise UsageError(f"node_ids must have one id per node ({num_nodes}), got shape {shape}")
    return pa.array(node_ids)


def predictions_format(path: str | Path) -> str:
    """The format of a file of predictions, see `lgcn.inference.output_file.check_output`."""
    return check_output(path, "predictions", SUFFIXES, streams=(".csv", ".tsv"))


class Written(NamedTuple):
    """What was written to a file of predictions."""

    nodes: int
    abstained: int
    protected: int = 0  # strings that got a quote in front, see write_predictions


def write_predictions(
    tables: pa.Table | Iterable[pa.Table], path: str | Path, *, spreadsheet_safe: bool = True
) -> Written:
    """Writes a table as CSV, TSV or Parquet, by the ending of the path; replaces a file there.

    The file appears once it is complete. In text files a null is an empty cell, and strings are
    quoted.

    Args:
        tables: The table, or its pieces (`prediction_blocks`), at least one.
        path: The file. A pipe or a device such as `/dev/stdout` gets CSV unless it ends in
            `.tsv`.
        spreadsheet_safe: In text files, put a `'` in front of ids and labels that start with
            `=`, `+`, `-`, `@`, a tab or a line break and are not numbers, because
            spreadsheets would run them as formulas. Parquet files are never changed.
            (default: `True`)
    """
    suffix = predictions_format(path)
    pieces = iter([tables] if isinstance(tables, pa.Table) else tables)
    first = next(pieces)
    nodes = abstained = protected = 0
    with (
        atomic(Path(path), streams=suffix != ".parquet") as temporary,
        temporary.open("ab") as file,  # standard output may be a file with content
        _writer(file, suffix, first.schema) as writer,
    ):
        for table in chain([first], pieces):
            if spreadsheet_safe and suffix != ".parquet":
                table, number = _without_formulas(table)
                protected += number
            writer.write_table(table)
            nodes += len(table)
            abstained += table["predicted"].null_count
    return Written(nodes, abstained, protected)


def write_table(table: pa.Table, path: str | Path, suffix: str) -> int:
    """Writes a table, and gives the number of strings that got a quote in front.

    Args:
        table: The table.
        path: The file.
        suffix: Its format: `.csv`, `.tsv` or `.parquet`.
    """
    protected = 0
    if suffix != ".parquet":
        table, protected = _without_formulas(table)
    with (
        atomic(Path(path), streams=suffix != ".parquet") as temporary,
        temporary.open("ab") as file,
        _writer(file, suffix, table.schema) as writer,
    ):
        writer.write_table(table)
    return protected


def _without_formulas(table: pa.Table) -> tuple[pa.Table, int]:
    """The table with a quote before each string that could be a formula, and how many there are."""
    protected = 0
    for place, column in enumerate(table.columns):
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            continue
        risky = pc.and_not(
            pc.match_substring_regex(column, FORMULA), pc.match_substring_regex(column, NUMBER)
        )
        number = pc.sum(risky).as_py() or 0
        if number:
            quote, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
            quoted = pc.binary_join_element_wise(quote, column, nothing)
            table = table.set_column(
                place, table.schema.field(place), pc.if_else(risky, quoted, column)
            )
            protected += number
    return table, protected


def _writer(file: IO[bytes], suffix: str, schema: pa.Schema) -> Any:
    if suffix == ".parquet":
        from pyarrow import parquet

        return parquet.ParquetWriter(file, schema)
    from pyarrow import csv

    delimiter = "\t" if suffix == ".tsv" else ","
    return csv.CSVWriter(file, schema, write_options=csv.WriteOptions(delimiter=delimiter))
