"""What a regressor makes of targets and of a network's outputs, for nodes and for whole graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from lgcn.errors import UsageError
from lgcn.estimator.inputs import Array
from lgcn.estimator.targets import Targets, graph_numbers, read_numbers
from lgcn.graph import Graph
from lgcn.training.scoring import conformal_half_width
from lgcn.utils.numbers import real_number

if TYPE_CHECKING:
    from lgcn.inference import TrainedRun
    from lgcn.training import ModelSpec, Settings


class NumberOutputs:
    """The part of a regressor that knows targets and intervals."""

    interval_: dict[str, float | None]
    result_: dict[str, Any]

    _tasks = ("regression",)

    def _read_y(self, y: Any, fitted: bool) -> Targets:
        return read_numbers(y)

    def _targets_of(self, graph: Graph, fitted: bool) -> Targets:
        return graph_numbers(graph)

    def _with_targets(self, graph: Graph, targets: Targets) -> Graph:
        return replace(graph, y=torch.from_numpy(targets.y), label_names=None)

    def _for_targets(self, settings: Settings, targets: Targets, graph: Graph) -> Settings:
        return settings

    def _keep(self, targets: Targets) -> None:
        self.interval_ = self.result_["interval"]

    def _restore(self, run: TrainedRun) -> None:
        assert run.interval is not None  # it is a regression
        level, half_width = run.interval
        self.interval_ = {"level": level, "half_width": half_width}

    def _to_json(self) -> dict[str, Any]:
        return {}

    @classmethod
    def _from_json(cls, stored: dict[str, Any], spec: ModelSpec) -> dict[str, Any]:
        return {}

    def _half_width(self, level: float | None) -> float:
        """Half the width of the intervals; infinite if there are too few validation rows."""
        if level is None or level == self.interval_["level"]:
            half = self.interval_["half_width"]
        else:
            level = real_number("level", level, 0, 1)
            if level in (0, 1):
                raise UsageError(f"level must be above 0 and below 1, got {level:g}")
            residuals = self._validation_residuals()
            if residuals is None:
                raise UsageError(
                    f"level must be {self.interval_['level']:g} in a loaded estimator, which does "
                    f"not have the validation data, got {level:g}"
                )
            half = conformal_half_width(torch.from_numpy(residuals), level)
        return np.inf if half is None else half

    def _validation_residuals(self) -> Array | None:
        """True minus predicted numbers of the validation rows; `None` in a loaded estimator."""
        raise NotImplementedError
