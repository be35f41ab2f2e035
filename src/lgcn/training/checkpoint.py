"""The folder of a run: what is in it, written atomically and checked when read.

======================  ============================================================
``run.json``            settings, and what the model was built for
``features.json``       how features are made of the user's columns, where they are
``checkpoint.json``     where training stands; names the file of tensors below
``checkpoint-N.safetensors``  weights, best weights and optimiser state after epoch N
``model.safetensors``   the best weights, once training has ended
``result.json``         the scores, and every epoch's history
``estimator.json``      what :class:`lgcn.LGCNClassifier` adds when it is saved
======================  ============================================================

``checkpoint.json`` is written last and names its tensors with their checksum, so that a run killed
at any moment has one consistent checkpoint: the new one or the one before.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.errors import CheckpointError, DataError, UsageError
from lgcn.files import atomic, write_json
from lgcn.training.config import Config

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from lgcn.data.tables.encoder import FeatureEncoder
    from lgcn.graph import Graph

FORMAT = 1
# What a run may leave besides checkpoints; estimator.json is LGCNClassifier's.
FILES = (
    "result.json",
    "checkpoint.json",
    "model.safetensors",
    "run.json",
    "features.json",
    "estimator.json",
)


@dataclass(frozen=True)
class ModelSpec:
    """What a model was built for; a graph must match it to be predicted."""

    num_features: int
    num_classes: int
    multi_label: bool
    label_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: Graph) -> ModelSpec:
        return cls(graph.num_features, graph.num_classes, graph.multi_label, graph.label_names)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> ModelSpec:
        """The specification in a file, checked; raises ValueError or TypeError."""
        spec = cls(**stored)
        for key in ("num_features", "num_classes"):
            if type(getattr(spec, key)) is not int or getattr(spec, key) < 1:
                raise ValueError(f"{key} must be a positive whole number")
        if not isinstance(spec.multi_label, bool):
            raise ValueError("multi_label must be true or false")
        names: Any = spec.label_names
        if names is None:
            return spec
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ValueError("label_names must be a list of texts")
        if len(names) != spec.num_classes:
            raise ValueError(f"label_names must have {spec.num_classes} names, got {len(names)}")
        return replace(spec, label_names=tuple(names))

    def build(self, config: Config) -> Module:
        """A model with new weights."""
        from lgcn.nn.models import model_class

        options = config.model_options()
        return model_class(config.model)(self.num_features, self.num_classes, **options)

    def check(self, graph: Graph) -> None:
        """Raises UsageError where the graph does not fit."""
        if graph.num_features != self.num_features:
            raise UsageError(
                f"the model wants {self.num_features} features a node, "
                f"{graph.name} has {graph.num_features}"
            )
        if graph.y is not None and graph.multi_label != self.multi_label:
            kinds = {True: "several labels a node", False: "one class a node"}
            raise UsageError(
                f"the model predicts {kinds[self.multi_label]}, "
                f"{graph.name} has {kinds[graph.multi_label]}"
            )
        if graph.y is not None and graph.num_classes > self.num_classes:
            raise UsageError(
                f"the model knows {self.num_classes} classes, {graph.name} has {graph.num_classes}"
            )


class Run:
    """A run folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    @property
    def started(self) -> bool:
        return (self.folder / "run.json").exists()

    @property
    def holds_work(self) -> bool:
        """Whether there is something to lose: a checkpoint or a trained model."""
        names = ("checkpoint.json", "model.safetensors", "result.json")
        return any((self.folder / name).exists() for name in names)

    @property
    def has_encoder(self) -> bool:
        """Whether features are made of the user's columns."""
        return (self.folder / "features.json").exists()

    @property
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    @property
    def resume_command(self) -> str:
        return f"lgcn train --resume --out {shlex.quote(str(self.folder))}"

    def start(self, config: Config, spec: ModelSpec, encoder: FeatureEncoder | None = None) -> None:
        """Makes the folder that of a new run; nothing of an earlier one stays."""
        self.clear()
        if encoder is not None:
            write_json(self.folder / "features.json", encoder.to_dict())
        record = {"format": FORMAT, "config": config.to_dict(), "model": vars(spec)}
        write_json(self.folder / "run.json", record)

    def clear(self) -> None:
        """Removes the run's files, and no others."""
        for name in FILES:
            (self.folder / name).unlink(missing_ok=True)
        self._remove_checkpoints(keep=None)

    def read(self) -> tuple[Config, ModelSpec]:
        """Settings and model of the run."""
        if not self.folder.is_dir():
            raise UsageError(f"no such run folder: {self.folder}")
        record = self.read_json("run.json")
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise CheckpointError(
                f"{self.folder / 'run.json'} is not of format {FORMAT}; "
                "it was written by another version of lgcn"
            )
        try:
            config, spec = Config.create(**record["config"]), ModelSpec.from_dict(record["model"])
            if config.k is None:
                raise ValueError("k must be a whole number")
            return config, spec
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.folder / 'run.json'} is damaged: {error}") from error

    def save_checkpoint(self, epoch: int, tensors: dict[str, Tensor], state: Any) -> None:
        name = f"checkpoint-{epoch}.safetensors"
        _save(self.folder / name, tensors)
        digest = _sha256(self.folder / name)
        record = {"epoch": epoch, "tensors": name, "sha256": digest, "state": state}
        write_json(self.folder / "checkpoint.json", record)
        self._remove_checkpoints(keep=name)

    def load_checkpoint(self) -> tuple[int, dict[str, Tensor], Any] | None:
        """(epoch, tensors, state) of the last checkpoint, or None where there is none yet."""
        if not (self.folder / "checkpoint.json").exists():
            return None
        record = self.read_json("checkpoint.json")
        try:
            epoch, name, digest, state = (
                record[key] for key in ("epoch", "tensors", "sha256", "state")
            )
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{self.folder / 'checkpoint.json'} is damaged") from error
        # No path from a file leads elsewhere.
        if not isinstance(epoch, int) or name != f"checkpoint-{epoch}.safetensors":
            raise CheckpointError(f"{self.folder / 'checkpoint.json'} names {name!r}")
        path = self.folder / name
        if not path.exists() or _sha256(path) != digest:
            raise CheckpointError(f"{path} is missing or does not match its checksum")
        return epoch, _load(path), state

    def finish(self, weights: dict[str, Tensor], result: dict[str, Any]) -> None:
        _save(self.folder / "model.safetensors", weights)
        write_json(self.folder / "result.json", result)
        (self.folder / "checkpoint.json").unlink(missing_ok=True)
        self._remove_checkpoints(keep=None)

    def result(self) -> dict[str, Any]:
        result = self.read_json("result.json")
        if not isinstance(result, dict) or "test_score" not in result:
            raise CheckpointError(f"{self.folder / 'result.json'} is damaged")
        return result

    def temperature(self) -> float:
        """By what scores are divided to make probabilities; 1 for runs that recorded none."""
        from lgcn.calibration import HIGHEST, LOWEST

        value = self.result().get("temperature", 1.0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            value = float("nan")
        if not LOWEST <= value <= HIGHEST:
            raise CheckpointError(
                f"{self.folder / 'result.json'} is damaged: temperature must be a number from "
                f"{LOWEST} to {HIGHEST}"
            )
        return float(value)

    def encoder(self) -> FeatureEncoder | None:
        """How features are made of the user's columns; None where the features came as numbers."""
        if not self.has_encoder:
            return None
        from lgcn.data.tables.encoder import FeatureEncoder  # imports pyarrow

        try:
            return FeatureEncoder.from_dict(self.read_json("features.json"))
        except DataError as error:
            raise CheckpointError(f"{self.folder / 'features.json'} is damaged: {error}") from error

    def read_finished(self) -> tuple[Config, ModelSpec]:
        """Settings and model of a run whose training has ended."""
        record = self.read()
        if not self.finished:
            raise CheckpointError(
                f"training in {self.folder} has not finished; go on with: {self.resume_command}"
            )
        return record

    def load_model(self) -> tuple[Module, Config, ModelSpec]:
        """The trained model, in evaluation mode."""
        config, spec = self.read_finished()
        import torch

        path = self.folder / "model.safetensors"
        weights = _load(path)
        # The sizes in run.json are believed, and memory asked for, only once the weights have them.
        try:
            if config.num_layers > len(weights):
                raise ValueError(f"they have less than {config.num_layers} layers")
            with torch.device("meta"):
                model = spec.build(config)
        except (RuntimeError, ValueError, OverflowError) as error:
            raise CheckpointError(
                f"the weights in {path} do not fit the run's settings: {error}"
            ) from error
        load_weights(model, weights, path, assign=True)
        return model.float().eval(), config, spec

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run, not yet checked."""
        path = self.folder / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise CheckpointError(f"{self.folder} is not a run folder: no {name}") from error
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def _remove_checkpoints(self, keep: str | None) -> None:
        for path in self.folder.glob("checkpoint-*.safetensors"):
            if path.name != keep:
                path.unlink(missing_ok=True)


def _save(path: Path, tensors: dict[str, Tensor]) -> None:
    from safetensors.torch import save_file

    with atomic(path) as temporary:
        save_file({key: value.contiguous().cpu() for key, value in tensors.items()}, temporary)


def _load(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing") from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def load_weights(
    model: Module, weights: dict[str, Tensor], path: Path, *, assign: bool = False
) -> None:
    try:
        model.load_state_dict(weights, assign=assign)
    except RuntimeError as error:
        raise CheckpointError(
            f"the weights in {path} do not fit the run's settings: {error}"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
