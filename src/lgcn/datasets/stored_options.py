"""Which options of a data set may come from a file, such as a run folder's ``run.json``.

Anyone may have written the file. So these are numbers, texts and flags alone, of the kinds listed
here, and none that switches a check off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_Check = Callable[[Any], bool]
LONGEST_TEXT = 10_000  # characters of a path, a column name or a separator


def _text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value


def _text_or_none(value: Any) -> bool:
    return value is None or _text(value)


def _texts(value: Any) -> bool:
    """One text, or a list of them."""
    return _text_or_none(value) or (isinstance(value, list) and all(map(_text, value)))


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number_or_none(value: Any) -> bool:
    return value is None or _number(value)


_SPLIT = dict.fromkeys(("labels_per_class", "num_val", "split_seed"), _number)
_SYNTHETIC = ("num_nodes", "mean_degree", "num_features", "num_classes", "homophily", "skew")
_NORMALIZE: dict[str, _Check] = {"normalize_features": _flag}
_NPZ: dict[str, _Check] = {**_SPLIT, **_NORMALIZE, "train_share": _number_or_none}
OPTIONS: dict[str, Mapping[str, _Check]] = {
    "digits": {"n_neighbors": _number, **_SPLIT},
    "synthetic": dict.fromkeys(
        (*_SYNTHETIC, "noise", "labels_per_class", "num_val", "seed"), _number
    ),
    **dict.fromkeys(("cora", "citeseer", "pubmed", "ppi", "ppi-rederived"), _NORMALIZE),
    "store": {"path": _text},
    # Not encoder and label_names: these are in files of their own, and are read from there.
    "tables": {
        "nodes": _text,
        **dict.fromkeys(
            (
                "edges",
                "label_separator",
                "id_column",
                "source_column",
                "target_column",
                "weight_column",
                "split_column",
                "delimiter",
                "name",
            ),
            _text_or_none,
        ),
        **dict.fromkeys(
            (
                "label_column",
                "numeric_columns",
                "categorical_columns",
                "text_columns",
                "ignore_columns",
            ),
            _texts,
        ),
        **dict.fromkeys(("labels_per_class", "val", "test"), _number_or_none),
        **dict.fromkeys(("unknown_nodes", "encoding"), _text),
        "split_seed": _number,
        "directed": _flag,
    },
}


def check_options(dataset: str, options: Mapping[str, Any]) -> None:
    """Raises ValueError where a file names options that it must not set.

    Args:
        dataset: The data set; one that is not known by name is an ``.npz`` file or a store.
        options: Its options in the file.
    """
    if not _text(dataset):
        raise ValueError(f"dataset must be a name or a path, got {dataset!r:.80}")
    allowed = OPTIONS.get(dataset, _NPZ)
    for name, value in options.items():
        if name not in allowed:
            raise ValueError(
                f"a file must not set the option {name!r:.80} of the data set {dataset!r:.80}"
            )
        if not allowed[name](value):
            raise ValueError(f"dataset_options: {name} must not be {value!r:.80}")
