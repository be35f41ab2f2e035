"""The names of features, and the columns of the user's table that they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lgcn.tables.encoder import FeatureEncoder
    from lgcn.training.structure import Structure

POSITIONS = "position in the graph"


@dataclass(frozen=True, eq=False)
class Columns:
    """One name per feature, and the column that each comes from.

    Args:
        names: The names of the columns.
        features: The names of the features: `color=red` comes from the column `color`.
        column: The place in `names` of each feature's column.
    """

    names: tuple[str, ...]
    features: tuple[str, ...]
    column: Any

    @classmethod
    def of(
        cls,
        num_features: int,
        encoder: FeatureEncoder | None = None,
        structure: Structure | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> Columns:
        """The names of all features of a model.

        Args:
            num_features: How many there are, with those that the edges give.
            encoder: How the user's columns became features. (default: they came as numbers)
            structure: What is made from the edges. (default: nothing)
            feature_names: Names of features that came as numbers. (default: `feature 0`, ...)
        """
        added = 0 if structure is None else structure.width
        given = num_features - added
        if encoder is not None and encoder.num_features == given:
            names = [info.name for info in encoder.columns]
            features = list(encoder.feature_names)
            column = [
                place for place, info in enumerate(encoder.columns) for _ in range(info.width)
            ]
        else:
            known = feature_names is not None and len(feature_names) == given
            features = (
                list(feature_names or ()) if known else [f"feature {i}" for i in range(given)]
            )
            names, column = list(features), list(range(given))
        if structure is not None:
            from_edges = [f"{name} (from the edges)" for name in structure.features]
            column += range(len(names), len(names) + len(from_edges))
            names += from_edges
            features += from_edges
            if structure.dimensions:
                column += [len(names)] * structure.dimensions
                names.append(POSITIONS)
                features += [f"{POSITIONS} {i}" for i in range(structure.dimensions)]
        return cls(tuple(names), tuple(features), np.array(column, dtype=np.int64))
