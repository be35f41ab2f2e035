"""The node table: ids, features, labels and splits by its columns."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch

from lgcn.errors import DataError, UsageError, did_you_mean
from lgcn.graph import Graph
from lgcn.graph.splits import fraction_split, random_split
from lgcn.tables.cell_options import CellOptions
from lgcn.tables.column_kinds import infer
from lgcn.tables.columns import EMPTY_WORDS, CellError, quoted, storage
from lgcn.tables.early_checks import OF_FEATURES, check_task
from lgcn.tables.encoder import FeatureEncoder, NoFeatures, Surprises
from lgcn.tables.ids import NodeIndex, to_ids
from lgcn.tables.labels import ColumnLabels, read_label_columns, read_split
from lgcn.tables.table_source import TableSource
from lgcn.tables.targets import read_sample_weight, read_targets
from lgcn.utils.limits import MAX_NODES

_HEAD = 10_000  # rows that show whether a file has decimal commas
ID_NAMES = ("id", "node", "node_id")


class NodeArguments(TypedDict, total=False):
    """What a user says about a node table's columns, see `lgcn.from_tables`."""

    label_column: str | Sequence[str] | None
    label_separator: str | None
    label_names: Sequence[str] | None
    task: str
    sample_weight_column: str | None
    split_column: str | None
    labels_per_class: int | None
    val: float | None
    test: float | None
    split_seed: int
    numeric_columns: str | Sequence[str]
    categorical_columns: str | Sequence[str]
    text_columns: str | Sequence[str]
    list_columns: str | Sequence[str]
    decimal: str
    date_order: str
    na_values: str | Sequence[str]
    encoder: FeatureEncoder | None


@dataclass(frozen=True)
class NodeOptions:
    """The role of each column of a node table, and how to split; see `lgcn.from_tables`."""

    label_columns: Sequence[str] = ()
    label_separator: str | None = None
    label_names: Sequence[str] | None = None
    task: str = "auto"
    sample_weight_column: str | None = None
    split_column: str | None = None
    labels_per_class: int | None = None
    val: float | None = None
    test: float | None = None
    split_seed: int = 0
    numeric: Sequence[str] = ()
    categorical: Sequence[str] = ()
    text: Sequence[str] = ()
    lists: Sequence[str] = ()
    decimal: str = "auto"
    date_order: str = "auto"
    na_values: str | Sequence[str] = ()
    encoder: FeatureEncoder | None = None

    def __post_init__(self) -> None:
        check_task(self.task)
        if self.encoder is not None:
            object.__setattr__(self, "encoder", self.encoder.read_as(self.cells))
        given = {
            "split_column": self.split_column is not None,
            "labels_per_class": self.labels_per_class is not None,
            "val and test": self.val is not None or self.test is not None,
        }
        chosen = [name for name, is_given in given.items() if is_given]
        if len(chosen) > 1:
            raise UsageError(
                f"give one of split_column, labels_per_class, and val and test, got "
                f"{' and '.join(chosen)}. Omit all but one"
            )
        if self.sample_weight_column is not None:
            chosen.append("sample_weight_column")
        if chosen and not self.label_columns:
            raise UsageError(f"{chosen[0]} needs labels. Name their column in label_column")

    @classmethod
    def named(cls, **arguments: Unpack[NodeArguments]) -> NodeOptions:
        """From a user's arguments, in which one name may stand for a list of names."""
        unknown = sorted(arguments.keys() - NodeArguments.__annotations__.keys())
        if unknown:
            raise UsageError(
                f"{unknown[0]} is not an option of a node table; "
                f"{did_you_mean(unknown[0], NodeArguments.__annotations__)}"
            )
        given: dict[str, Any] = dict(arguments)
        return cls(
            label_columns=column_names(given.pop("label_column", None)),
            numeric=column_names(given.pop("numeric_columns", None)),
            categorical=column_names(given.pop("categorical_columns", None)),
            text=column_names(given.pop("text_columns", None)),
            lists=column_names(given.pop("list_columns", None)),
            **given,
        )

    @property
    def cells(self) -> CellOptions:
        """How the text in cells is read."""
        return CellOptions(self.decimal, self.date_order, self.na_values)

    def labels(self, table: Any, first_line: int | None) -> ColumnLabels:
        """The labels in their columns."""
        if self.task == "regression":
            return read_targets(
                table,
                self.label_columns,
                self.label_separator,
                first_line=first_line,
                need_different=self.encoder is None,
                cells=self.cells,
            )
        return read_label_columns(
            table,
            self.label_columns,
            self.label_separator,
            self.label_names,
            first_line=first_line,
            task=self.task,
            na_values=self.cells.na_values,
        )

    @property
    def other_columns(self) -> list[str]:
        """Columns that are neither ids, labels nor features: the split and the weights."""
        named = (self.split_column, self.sample_weight_column)
        return [column for column in named if column is not None]

    def fit_encoder(self, features: Any, rows: Any, first_line: int | None) -> FeatureEncoder:
        """An encoder of the columns, fitted to training rows and rows without a label."""
        return FeatureEncoder.fit(
            features,
            rows,
            numeric=self.numeric,
            categorical=self.categorical,
            text=self.text,
            lists=self.lists,
            first_line=first_line,
            cells=self.cells,
        )

    def split(self, table: Any, labels: ColumnLabels, first_line: int | None) -> Any:
        """Masks of training, validation and test nodes."""
        if self.split_column is not None:
            return read_split(table, self.split_column, labels.known, first_line=first_line)
        if self.labels_per_class is not None:
            if labels.y.dim() == 2 or labels.y.is_floating_point():
                found = "several labels" if labels.y.dim() == 2 else "a number each"
                raise UsageError(
                    f"labels_per_class needs one class per node; here nodes have {found}. "
                    "Give val and test, or split_column"
                )
            return random_split(labels.y, self.labels_per_class, seed=self.split_seed)
        val, test = (0.2 if share is None else share for share in (self.val, self.test))
        return fraction_split(labels.y, labels.known, val, test, self.split_seed)


def column_names(columns: str | Sequence[str] | None) -> list[str]:
    """A list of names; one name alone is a list of one."""
    return [] if columns is None else [columns] if isinstance(columns, str) else list(columns)


def read_nodes(
    source: TableSource,
    id_column: str | None,
    options: NodeOptions,
    ignore: list[str],
    notes: list[str],
) -> tuple[Any, Any, NodeIndex]:
    """The table without the ids, the ids, and the index of these."""
    by_default = id_column is None
    id_column = find_id_column(source, id_column)
    table = read_columns(source, {"id_column": id_column}, options, ignore, notes)
    which = f"column {id_column!r}"
    if by_default and id_column.lower() not in ID_NAMES:
        which += f" (the first one, taken for the ids since none is called {', '.join(ID_NAMES)})"
    ids = node_ids(source, table.column(id_column), which)
    index = NodeIndex(ids)
    if index.repeated is not None:
        first, second = source.where(index.repeated)
        raise DataError(
            f"{source.name}: ids must differ, got {quoted(ids[index.repeated[0]].as_py())} in "
            f"{first} and in {second}, {which}. Remove one of the rows, or name another column in "
            "id_column"
        )
    return table.drop_columns([id_column]), ids, index


def read_columns(
    source: TableSource,
    ids: Mapping[str, str],
    options: NodeOptions,
    ignore: list[str],
    notes: list[str],
    *,
    per: str = "node",
) -> Any:
    """The columns of a node table that are ids, labels, features and the like.

    Args:
        source: The table.
        ids: Columns of ids, by the arguments that name them. They are read as strings.
        options: What the other columns are.
        ignore: Columns that are not read.
        notes: What a user should know is added here.
        per: What a row stands for. (default: `"node"`)
    """
    roles: dict[str, Sequence[str]] = {argument: [column] for argument, column in ids.items()}
    roles |= {"label_column": options.label_columns}
    roles |= {"split_column": [] if options.split_column is None else [options.split_column]}
    weight = options.sample_weight_column
    roles |= {"sample_weight_column": [] if weight is None else [weight]}
    roles |= {"ignore_columns": ignore}
    if options.encoder is None:
        roles |= {"numeric_columns": options.numeric}
        roles |= {"categorical_columns": options.categorical, "text_columns": options.text}
        roles |= {"list_columns": options.lists}
    place: dict[str, str] = {}
    for argument, names in roles.items():
        for column in names:
            source.column(argument, column)
            if column in place:
                raise UsageError(
                    f"column {column!r} is named in {place[column]} and in {argument}. "
                    "Name it in one of them"
                )
            place[column] = argument
    columns = [column for column in source.columns if column not in ignore]
    if "" in columns and "" not in place:
        columns.remove("")
        notes.append(
            f"{source.name}: a column without a name is left out. It is often the index that "
            "pandas writes (index=False omits it); give it a name to use it"
        )
    if options.encoder is not None:
        known = {column.name for column in options.encoder.columns}
        columns = [column for column in columns if column in known or column in place]
    # Ids are read as strings: as numbers, 007 and 7 would be the same.
    types = dict.fromkeys(ids.values(), pa.string())
    if options.encoder is not None:
        types |= dict.fromkeys(options.encoder.comma_columns, pa.string())
    types = {column: kind for column, kind in types.items() if column in columns}
    table = source.read(columns, types)
    if source.textual and options.encoder is None:
        numeric = {*OF_FEATURES, "sample_weight_column"}
        if options.task == "regression":
            numeric.add("label_column")
        may_be = [column for column in columns if column not in place or place[column] in numeric]
        seen = source.seen(table)
        seen = seen.select([column for column in may_be if column in seen.column_names])
        again = _misread(seen, options.cells)
        if again:
            table = source.read(columns, types | dict.fromkeys(again, pa.string()))
    if len(table) == 0:
        raise DataError(f"{source.name} has no rows. It must have one row per {per}")
    if len(table) > MAX_NODES:
        raise DataError(f"{source.name} must have at most {MAX_NODES} rows, got {len(table)}")
    return table


def _misread(table: Any, cells: CellOptions) -> list[str]:
    """Columns of a text file that were read with a decimal point, but may have a decimal comma.

    In a file with decimal commas, 1.234 is probably 1234.
    """
    kinds = {column.name: column.type for column in table.schema}
    floats = [name for name, kind in kinds.items() if pa.types.is_floating(kind)]
    if not floats or cells.decimal != "auto":
        return floats if cells.decimal == "," else []
    strings = [name for name in table.column_names if storage(table.column(name)) == "string"]
    for name in strings:
        found = infer(table.column(name).slice(0, _HEAD), cells)
        if found.decided and found.reading.decimal == ",":
            return floats
    return []


def node_ids(
    source: TableSource, column: Any, which: str, *, per: str = "node", argument: str = "id_column"
) -> Any:
    """The ids in a column of a node table, if none is missing.

    Args:
        source: The table.
        column: The column.
        which: Its name in messages.
        per: What a row stands for. (default: `"node"`)
        argument: What names the column. (default: `"id_column"`)
    """

    def where(row: int) -> str:
        return f"{source.name}, {source.where([row])[0]}, {which}"

    ids = to_ids(whole_numbers(column) if source.textual else column, where)
    missing = pc.is_null(ids)
    if pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(ids, ""), True))
    row = pc.index(missing, True).as_py()
    if row >= 0:
        raise DataError(
            f"{where(row)}: the id is missing. Every {per} needs one; fill it in, remove the "
            f"row, or name another column in {argument}"
        )
    return ids


def whole_numbers(texts: Any) -> Any:
    """Strings as int64 if all are whole numbers as Python writes them, else unchanged."""
    trimmed = pc.utf8_trim_whitespace(texts)
    empty = pc.is_in(trimmed, value_set=EMPTY_WORDS.cast(trimmed.type))
    trimmed = pc.if_else(empty, pa.scalar(None, trimmed.type), trimmed)
    try:
        numbers = trimmed.cast(pa.int64())
    except pa.ArrowInvalid:
        return texts
    same = pc.all(pc.equal(numbers.cast(trimmed.type), trimmed)).as_py()
    return numbers if same and numbers.null_count < len(numbers) else texts


def find_id_column(source: TableSource, name: str | None, besides: str | None = None) -> str:
    """The column of ids: as named, else by its name, else the first one but `besides`."""
    if name is not None:
        return source.column("id_column", name)
    columns = [column for column in source.columns if column != besides]
    lower = {column.lower(): column for column in reversed(columns)}
    named = [column for column in columns if column] or columns
    if not named:
        others = "no columns" if besides is None else f"no column besides {besides!r}"
        raise DataError(f"{source.name} has {others}. It must have one of ids")
    return next((lower[known] for known in ID_NAMES if known in lower), named[0])


def node_data(
    table: Any,
    options: NodeOptions,
    notes: list[str],
    name: str,
    *,
    first_line: int | None = None,
    fit_rows: Any = None,
) -> Graph:
    """A graph without edges that has the features, labels and splits of a node table.

    Without a column that can be a feature, it has no `x`, and an encoder of no columns.

    Args:
        table: Columns of features, labels and the split, no ids.
        options: What the columns are.
        notes: What a user should know is added here.
        name, first_line: The table's name and where its first row is, for messages.
        fit_rows: Mask of the rows that the encoder may see, if the table has no labels.
            (default: all)
    """
    rowptr = torch.zeros(len(table) + 1, dtype=torch.int32)
    fields: dict[str, Any] = {}
    allowed = np.ones(len(table), dtype=bool) if fit_rows is None else fit_rows
    try:
        if options.label_columns:
            labels = options.labels(table, first_line)
            notes += [f"{name}: {note}" for note in labels.notes]
            masks = options.split(table, labels, first_line)
            fields = {"y": labels.y, "label_names": labels.names or None}
            fields |= dict(zip(("train_mask", "val_mask", "test_mask"), masks, strict=True))
            allowed = ~(masks[1] | masks[2]).numpy()
            if options.sample_weight_column is not None:
                fields["sample_weight"] = read_sample_weight(
                    table,
                    options.sample_weight_column,
                    labels.known,
                    first_line=first_line,
                    cells=options.cells,
                )
        no_features = {*options.label_columns, *options.other_columns}
        features = table.select([c for c in table.column_names if c not in no_features])
        encoder = options.encoder
        if encoder is None:
            try:
                encoder = options.fit_encoder(features, allowed, first_line)
            except NoFeatures as error:  # the edges give some
                encoder = FeatureEncoder((), error.notes, sparse=False)
            notes += [f"{name}: {note}" for note in encoder.notes]
        surprises, x = Surprises(), None
        if encoder.columns:
            x = encoder.transform(features, first_line=first_line, surprises=surprises)
        for message in surprises.messages(encoder, numbers=options.encoder is not None):
            warnings.warn(f"{name}: {message}", stacklevel=2)
    except DataError as error:
        if isinstance(error, CellError) and options.encoder is not None:
            raise DataError(f"{name}: {error.remedy}") from error
        raise DataError(f"{name}: {error}") from error
    return Graph(rowptr, rowptr.new_empty(0), x=x, encoder=encoder, **fields)
