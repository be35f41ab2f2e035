"""What all estimators share once they are fitted: their attributes, saving, explanations."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch.nn import Module

from lgcn.estimator import saved as estimator_files
from lgcn.estimator.targets import Targets
from lgcn.graph import Graph
from lgcn.training import ModelSpec, Settings

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation
    from lgcn.inference import TrainedRun
    from lgcn.tables.encoder import FeatureEncoder


class FittedEstimator(  # type: ignore[call-arg]
    TransformerMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
    ABC,
    auto_wrap_output_keys=None,  # scikit-learn's wrapper does not allow X to be omitted
):
    """The common part of the estimators for nodes and for whole graphs."""

    directed_: bool
    encoder_: FeatureEncoder | None
    history_: list[dict[str, Any]]
    loss_curve_: list[float]
    model_: Module
    n_features_in_: int
    n_iter_: int
    result_: dict[str, Any]
    settings_: Settings
    validation_scores_: list[float | None]
    _spec: ModelSpec

    unit: ClassVar[str]  # what is predicted

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def save(self, folder: str | Path) -> None:
        """Writes the fitted estimator, without its data, to a folder; replaces an earlier one.

        It is a run folder as `lgcn train` writes it, with one more file. It holds no pickles.
        """
        check_is_fitted(self)
        estimator_files.save(self, Path(folder))

    @classmethod
    def load(cls, folder: str | Path, device: str | None = None) -> Self:
        """The estimator that `save` or `lgcn train` wrote; every file is checked.

        Args:
            folder: The folder.
            device: Where to compute. (default: the `device` of the fit)
        """
        estimator: Self = estimator_files.load(cls, Path(folder), device)
        return estimator

    def _explain(self, prepared: Any, ids: Any, wanted: Any, **options: Any) -> list[Explanation]:
        """Explanations of nodes or graphs.

        Args:
            prepared: The data with the features that the model takes.
            ids: The ids of all nodes or graphs, or `None`.
            wanted: Those to explain.
            **options: `target`, `against` and `counterfactual`.
        """
        from lgcn.inference.explanations import RunExplainer

        explainer = RunExplainer(
            self.model_,
            prepared,
            None if ids is None else lambda start, stop: ids[start:stop],
            encoder=self.encoder_,
            **self._explained_as(),
        )
        return explainer.explain(wanted, **options)

    def _explained_as(self) -> dict[str, Any]:
        """What `explain` needs to know of the outputs."""
        return {"spec": self._spec}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # embeddings are float32
        return tags

    # What a classifier and a regressor do in their own way.

    _tasks: ClassVar[tuple[str, ...]]  # see lgcn.Graph.task
    _wanted_y: ClassVar[str]  # what to pass as y, for messages

    @abstractmethod
    def _read_y(self, y: Any, fitted: bool) -> Targets:
        """The targets in `y`.

        Args:
            y: What the user passes.
            fitted: Whether only the classes of the fit are allowed.
        """

    @abstractmethod
    def _targets_of(self, graph: Graph, fitted: bool) -> Targets:
        """The targets of a graph; `fitted` as in `_read_y`."""

    @abstractmethod
    def _with_targets(self, graph: Graph, targets: Targets) -> Graph:
        """The graph with the targets to train on."""

    def _for_targets(self, settings: Settings, targets: Targets, graph: Graph) -> Settings:
        """The settings with those that depend on the targets."""
        return settings

    @abstractmethod
    def _keep(self, targets: Targets) -> None:
        """Sets the attributes that only this kind of estimator has, after a fit."""

    @abstractmethod
    def _restore(self, run: TrainedRun) -> None:
        """Sets them from a run folder."""
