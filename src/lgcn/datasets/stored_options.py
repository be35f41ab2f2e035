"""Which options of a data set may come from a file, such as a run folder's ``run.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lgcn.datasets.npz import NPZ_OPTIONS
from lgcn.datasets.option_types import text
from lgcn.datasets.registry import DATASETS


def check_options(dataset: str, options: Mapping[str, Any]) -> None:
    """Raises ValueError where a file names options that it must not set.

    Args:
        dataset: The data set; one that is not known by name is an ``.npz`` file or a store.
        options: Its options in the file.
    """
    if not text(dataset):
        raise ValueError(f"dataset must be a name or a path, got {dataset!r:.80}")
    allowed = DATASETS[dataset].stored if dataset in DATASETS else NPZ_OPTIONS
    for name, value in options.items():
        if name not in allowed:
            raise ValueError(
                f"a file must not set the option {name!r:.80} of the data set {dataset!r:.80}"
            )
        if not allowed[name](value):
            raise ValueError(f"dataset_options: {name} must not be {value!r:.80}")
