"""The folder of a run: what is in it, written atomically and checked when read.

======================  ============================================================
``run.json``            settings, and what the model was built for
``checkpoint.json``     where training stands; names the file of tensors below
``checkpoint-N.safetensors``  weights, best weights and optimiser state after epoch N
``model.safetensors``   the best weights, once training has ended
``result.json``         the scores, and every epoch's history
======================  ============================================================

``checkpoint.json`` is written last and names its tensors with their checksum, so that a run killed
at any moment has one consistent checkpoint: the new one or the one before.
"""

import hashlib
import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch.nn import Module

from lgcn.errors import CheckpointError, UsageError
from lgcn.files import atomic, write_json
from lgcn.graph import Graph
from lgcn.nn.lgcn import LGCN
from lgcn.training.config import Config

FORMAT = 1


@dataclass(frozen=True)
class ModelSpec:
    """What a model was built for; a graph must match it to be predicted."""

    num_features: int
    num_classes: int
    multi_label: bool
    label_names: tuple[str, ...] | None = None

    @classmethod
    def of(cls, graph: Graph) -> "ModelSpec":
        return cls(graph.num_features, graph.num_classes, graph.multi_label, graph.label_names)

    def build(self, config: Config) -> LGCN:
        return LGCN(self.num_features, self.num_classes, **config.model_options())

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
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    @property
    def resume_command(self) -> str:
        return f"lgcn train --resume --out {shlex.quote(str(self.folder))}"

    def start(self, config: Config, spec: ModelSpec) -> None:
        """Makes the folder that of a new run; nothing of an earlier one stays."""
        self.clear()
        record = {"format": FORMAT, "config": config.to_dict(), "model": vars(spec)}
        write_json(self.folder / "run.json", record)

    def clear(self) -> None:
        """Removes the run's files, and no others."""
        names = ("result.json", "checkpoint.json", "model.safetensors", "run.json")
        for name in names:
            (self.folder / name).unlink(missing_ok=True)
        self._remove_checkpoints(keep=None)

    def read(self) -> tuple[Config, ModelSpec]:
        """Settings and model of the run."""
        if not self.folder.is_dir():
            raise UsageError(f"no such run folder: {self.folder}")
        record = self._json("run.json")
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise CheckpointError(
                f"{self.folder / 'run.json'} is not of format {FORMAT}; "
                "it was written by another version of lgcn"
            )
        try:
            model = dict(record["model"])
            if model.get("label_names") is not None:
                model["label_names"] = tuple(model["label_names"])
            return Config.create(**record["config"]), ModelSpec(**model)
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
        record = self._json("checkpoint.json")
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
        result = self._json("result.json")
        if not isinstance(result, dict) or "test_score" not in result:
            raise CheckpointError(f"{self.folder / 'result.json'} is damaged")
        return result

    def load_model(self) -> tuple[LGCN, Config, ModelSpec]:
        """The trained model, in evaluation mode."""
        config, spec = self.read()
        if not self.finished:
            raise CheckpointError(
                f"training in {self.folder} has not finished; go on with: {self.resume_command}"
            )
        model = spec.build(config)
        path = self.folder / "model.safetensors"
        load_weights(model, _load(path), path)
        return model.eval(), config, spec

    def _json(self, name: str) -> Any:
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
    with atomic(path) as temporary:
        save_file({key: value.contiguous().cpu() for key, value in tensors.items()}, temporary)


def _load(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing") from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error


def load_weights(model: Module, weights: dict[str, Tensor], path: Path) -> None:
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise CheckpointError(
            f"the weights in {path} do not fit the run's settings: {error}"
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
