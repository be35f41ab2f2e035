"""How the scores of a trained run become predictions: names, temperature, threshold, interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import Tensor

    from lgcn.inference.truth import Truth
    from lgcn.training.model_spec import ModelSpec
    from lgcn.utils.progress import OnProgress


@dataclass(frozen=True)
class Decision:
    """Everything that turns scores into the table of predictions, read once from a run.

    Args:
        spec: What the model was built for.
        temperature: The softmax temperature. (default: 1)
        threshold: For two classes, the probability from which on the second is predicted.
            (default: the most likely class)
        interval: For a regression, the level of the interval and half its width, see
            `lgcn.inference.TrainedRun.interval`. (default: none)
        abstain_below: Confidence below which nothing is predicted. (default: none)
    """

    spec: ModelSpec
    temperature: float = 1.0
    threshold: float | None = None
    interval: tuple[float, float | None] | None = None
    abstain_below: float | None = None

    def tables(
        self,
        scores: Tensor,
        *,
        node_ids: Callable[[int, int], Any] | None = None,
        nodes: Tensor | None = None,
        truth: Truth | None = None,
        on_progress: OnProgress | None = None,
    ) -> Iterator[pa.Table]:
        """The table of predictions in pieces, see `lgcn.inference.predictions`.

        Args:
            scores: Scores before softmax or sigmoid, [nodes, classes].
            node_ids, nodes, truth, on_progress: See
                `lgcn.inference.predictions.prediction_blocks`.
        """
        from lgcn.inference.predictions import prediction_blocks

        regression = self.spec.task == "regression"
        options: dict[str, Any]
        if regression:
            assert self.interval is not None
            options = {"half_width": self.interval[1], "values": self.spec.values}
        else:
            options = {
                "multi_label": self.spec.multi_label,
                "temperature": self.temperature,
                "threshold": self.threshold,
                "abstain_below": self.abstain_below,
            }
        return prediction_blocks(
            scores,
            None if regression else self.spec.class_names,
            node_ids=node_ids,
            nodes=nodes,
            truth=truth,
            unit=self.spec.unit,
            on_progress=on_progress,
            **options,
        )
