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

Whoever writes to the folder holds a lock on it (:meth:`Run.locked`), which ends with the process,
also after a kill. It is a lock on the folder itself (``flock``) and leaves no file. Readers take
none: they notice that the run was replaced while they read it, and say so.

A run folder may come from a stranger. Nothing in it is run, names no other file to be written, or
switches a check off; its settings pass the list in :mod:`lgcn.datasets.stored_options`.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets.stored_options import check_options
from lgcn.errors import (
    START_AGAIN,
    CheckpointError,
    DataError,
    LGCNError,
    UsageError,
    WriteError,
    one_line,
)
from lgcn.training.groups import LGCNSettings
from lgcn.training.models import UnknownModel
from lgcn.training.settings import Settings, flat_names
from lgcn.utils.files import (
    cannot_write,
    is_at,
    lock,
    open_plain,
    read_json,
    remove_stale,
    write_json,
)
from lgcn.utils.limits import MAX_CLASSES
from lgcn.utils.memory import check_memory
from lgcn.utils.stored_json import strings

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from lgcn.graph import Graph
    from lgcn.tables.encoder import FeatureEncoder

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
# Settings that run.json of version 0.1.0 has for every model, whether the model takes them or not.
OF_OTHER_MODELS = ("order", "heads", "out_heads", "alpha", "theta", "aggregator")
# PyG generates code for a class of layers with the first of them, and two threads at it get half.
_building = threading.Lock()
# What a result must have, for whoever shows it.
RESULT: dict[str, Any] = {
    "dataset": str,
    "seed": int,
    "metric": str,
    "val_score": (int, float),
    "test_score": (int, float, type(None)),
    "test_score_released_rule": (int, float, type(None)),
    "best_epoch": int,
    "epochs": int,
    "seconds": (int, float),
    "parameters": int,
    "out": (str, type(None)),
}
CHECKPOINT = re.compile("checkpoint-[0-9]+[.]safetensors")
TRAINED = 4  # times that training holds the weights: themselves, gradients and two moments


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
        if spec.num_classes > MAX_CLASSES:
            raise ValueError(f"num_classes must be at most {MAX_CLASSES}, got {spec.num_classes}")
        if not isinstance(spec.multi_label, bool):
            raise ValueError("multi_label must be true or false")
        if spec.label_names is None:
            return spec
        try:
            names = strings(spec.label_names, "label_names")
        except DataError as error:
            raise ValueError(str(error)) from error
        if len(names) != spec.num_classes:
            raise ValueError(f"label_names must have {spec.num_classes} names, got {len(names)}")
        return replace(spec, label_names=tuple(names))

    def build(self, settings: Settings) -> Module:
        """A model with new weights."""
        with _building:
            return settings.build_model(self.num_features, self.num_classes)

    def build_without_memory(self, settings: Settings) -> Module:
        """A model whose weights have shapes alone; raises ValueError where that cannot be."""
        import torch

        try:
            with torch.device("meta"):
                return self.build(settings)
        except (RuntimeError, OverflowError, TypeError) as error:  # a shape of no usual integers
            raise ValueError(f"cannot build a model of these sizes: {one_line(error)}") from error

    def check_memory(self, settings: Settings) -> None:
        """Raises UsageError where no training of the model can fit in memory, or be read again."""
        if self.num_classes > MAX_CLASSES:
            raise UsageError(
                f"there can be at most {MAX_CLASSES} classes, got {self.num_classes}: are the "
                "labels numbers or ids?"
            )
        try:
            model = self.build_without_memory(settings)
        except ValueError as error:
            raise UsageError(str(error)) from error
        what = (
            f"training a model of {self.num_features} features, {self.num_classes} classes, "
            f"hidden_channels={settings.model.hidden_channels}"
        )
        if isinstance(settings.model, LGCNSettings):
            what += f" and k={settings.model.k}"
        check_memory(TRAINED * _num_bytes(model), what)

    def check(self, graph: Graph) -> None:
        """Raises UsageError where the graph does not fit."""
        if graph.num_features != self.num_features:
            raise UsageError(
                f"the model wants {self.num_features} features per node, "
                f"{graph.name} has {graph.num_features}"
            )
        if graph.y is not None and graph.multi_label != self.multi_label:
            kinds = {True: "several labels per node", False: "one class per node"}
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
        self._read: tuple[int, ...] | None = None  # which run.json was read

    @contextmanager
    def locked(self, *, make: bool = True) -> Iterator[None]:
        """Keeps all others from writing to the folder meanwhile.

        Args:
            make: Make the folder where there is none; it goes again if nothing is written to it.
                (default: ``True``)
        """
        if sys.platform == "win32":  # which does not open folders
            yield
            return
        made = not self.folder.exists()
        if made and not make:
            raise self._missing()
        handle = self._lock()
        try:
            remove_stale(self.folder)
            yield
        finally:
            if made:
                with suppress(OSError):  # it is not empty: something was written
                    self.folder.rmdir()
            os.close(handle)

    def _missing(self) -> UsageError:
        return UsageError(f"no such run folder: {self.folder}")

    def _lock(self) -> int:
        while True:
            try:
                if not self.folder.exists():
                    self.folder.mkdir(parents=True, exist_ok=True)
                handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
            except OSError as error:
                raise cannot_write(self.folder, error) from error
            held = lock(handle)
            if held is None:
                warnings.warn(
                    f"{self.folder} is on a file system without locks: make sure that no other "
                    "process writes to the same run",
                    stacklevel=4,
                )
            if held is not False and is_at(handle, self.folder.resolve()):
                return handle
            os.close(handle)
            if held is False:
                raise UsageError(
                    f"another process is writing to the run in {self.folder}. Wait until it has "
                    "ended, or choose another --out"
                )

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

    def start(
        self, settings: Settings, spec: ModelSpec, encoder: FeatureEncoder | None = None
    ) -> None:
        """Makes the folder that of a new run; nothing of an earlier one stays."""
        self.clear()
        if encoder is not None:
            self.write_json("features.json", encoder.to_dict())
        record = {"format": FORMAT, "settings": settings.to_dict(), "model": vars(spec)}
        self.write_json("run.json", record)

    def other_files(self) -> bool:
        """Whether the folder holds anything that is not a run's."""
        names = (path.name for path in self.folder.iterdir())
        return not all(name in FILES or CHECKPOINT.fullmatch(name) for name in names)

    def clear(self) -> None:
        """Removes the run's files, and no others."""
        try:
            for name in FILES:
                (self.folder / name).unlink(missing_ok=True)
            self._remove_checkpoints(keep=None)
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def read(self) -> tuple[Settings, ModelSpec]:
        """Settings and model of the run."""
        if not self.folder.is_dir():
            raise self._missing()
        before = self._version()
        record = self.read_json("run.json")
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise CheckpointError(
                f"{self.folder / 'run.json'} is not of format {FORMAT}; "
                "it was written by another version of lgcn"
            )
        try:
            settings, spec = _stored_settings(record), ModelSpec.from_dict(record["model"])
            if isinstance(settings.model, LGCNSettings) and settings.model.k is None:
                raise ValueError("k must be a whole number")
            check_options(settings.dataset, settings.dataset_options)
        except UnknownModel as error:
            raise CheckpointError(f"{self.folder / 'run.json'}: {error}") from error
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{self.folder / 'run.json'} is damaged: {one_line(error)}. {START_AGAIN}"
            ) from error
        self._read = before
        return settings, spec

    def save_checkpoint(self, epoch: int, tensors: dict[str, Tensor], state: Any) -> None:
        from lgcn.training.tensor_files import save_tensors

        name = f"checkpoint-{epoch}.safetensors"
        with self.resumable():
            save_tensors(self.folder / name, tensors)
            digest = _sha256(self.folder / name)
            record = {"epoch": epoch, "tensors": name, "sha256": digest, "state": state}
            self.write_json("checkpoint.json", record)
        self._remove_checkpoints(keep=name)

    def load_checkpoint(self) -> tuple[int, dict[str, Tensor], Any] | None:
        """(epoch, tensors, state) of the last checkpoint, or None where there is none yet."""
        listing = self.folder / "checkpoint.json"
        if not listing.exists():
            return None
        record = self.read_json("checkpoint.json")
        try:
            epoch, name, digest, state = (
                record[key] for key in ("epoch", "tensors", "sha256", "state")
            )
        except (KeyError, TypeError) as error:
            raise CheckpointError(f"{listing} is damaged. {START_AGAIN}") from error
        # No path from a file leads elsewhere.
        if type(epoch) is not int or name != f"checkpoint-{epoch}.safetensors":
            raise CheckpointError(
                f"{listing} names {name!r:.80}, not checkpoint-N.safetensors. {START_AGAIN}"
            )
        path = self.folder / name
        try:
            sound = _sha256(path) == digest
        except (OSError, ValueError):
            sound = False
        if not sound:
            raise CheckpointError(
                f"{path} is missing or does not match its checksum. {START_AGAIN}"
            )
        from lgcn.training.tensor_files import load_tensors

        return epoch, load_tensors(path), state

    def finish(self, weights: dict[str, Tensor], result: dict[str, Any]) -> None:
        from lgcn.training.tensor_files import save_tensors

        save_tensors(self.folder / "model.safetensors", weights)
        self.write_json("result.json", result)
        self._drop_checkpoints()

    def tidy(self) -> None:
        """Removes checkpoints left by a finished run that was killed before it could do so."""
        with suppress(LGCNError), self.locked(make=False):
            if self.finished:
                self._drop_checkpoints()

    def _drop_checkpoints(self) -> None:
        with suppress(OSError):  # the result is complete without it
            (self.folder / "checkpoint.json").unlink(missing_ok=True)
            self._remove_checkpoints(keep=None)

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """Adds to an error in writing how to resume the training."""
        try:
            yield
        except WriteError as error:
            raise WriteError(
                f"{error}. What was saved before is still there; resume with: {self.resume_command}"
            ) from error

    def result(self) -> dict[str, Any]:
        result = self.read_json("result.json")
        path = self.folder / "result.json"
        if not isinstance(result, dict):
            raise CheckpointError(f"{path} is damaged: it must hold an object. {START_AGAIN}")
        for key, kinds in RESULT.items():
            if key not in result or not isinstance(result[key], kinds):
                raise CheckpointError(
                    f"{path} is damaged: {key} is missing or wrong. {START_AGAIN}"
                )
        return result

    def temperature(self) -> float:
        """Softmax temperature; 1 for runs that recorded none."""
        from lgcn.training.calibration import HIGHEST, LOWEST

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
        from lgcn.tables.encoder import FeatureEncoder  # imports pyarrow

        try:
            return FeatureEncoder.from_dict(self.read_json("features.json"))
        except DataError as error:
            raise CheckpointError(f"{self.folder / 'features.json'} is damaged: {error}") from error

    def read_finished(self) -> tuple[Settings, ModelSpec]:
        """Settings and model of a run whose training has ended."""
        record = self.read()
        if not self.finished:
            raise CheckpointError(
                f"training in {self.folder} has not finished; resume with: {self.resume_command}"
            )
        return record

    def load_model(self) -> tuple[Module, Settings, ModelSpec]:
        """The trained model, in evaluation mode."""
        settings, spec = self.read_finished()
        from lgcn.training.tensor_files import load_tensors

        path = self.folder / "model.safetensors"
        weights = load_tensors(path)
        # The sizes in run.json are believed, and memory asked for, only once the weights have them.
        try:
            if settings.model.num_layers > len(weights):
                raise ValueError(f"they have less than {settings.model.num_layers} layers")
            model = spec.build_without_memory(settings)
        except ValueError as error:
            raise CheckpointError(
                f"the weights in {path} do not fit the run's settings: {one_line(error)}"
            ) from error
        load_weights(model, weights, path, assign=True)
        self._check_unchanged()
        return model.float().eval(), settings, spec

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run, not yet checked."""
        try:
            content = read_json(self.folder / name, CheckpointError)
        except FileNotFoundError as error:
            raise CheckpointError(f"{self.folder} is not a run folder: no {name}") from error
        except CheckpointError as error:
            raise CheckpointError(f"{error}. {START_AGAIN}") from error
        self._check_unchanged()
        return content

    def write_json(self, name: str, value: Any) -> None:
        # A link in a folder from elsewhere could point to any file of the user.
        write_json(self.folder / name, value, follow=False)

    def _version(self) -> tuple[int, ...] | None:
        """Changes whenever the folder becomes that of another run: each has a run.json of its own.

        The file is never changed in place.
        """
        try:
            status = (self.folder / "run.json").stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _check_unchanged(self) -> None:
        if self._read is not None and self._read != self._version():
            self._read = None  # the next try reads all of the new one
            raise CheckpointError(
                f"the run in {self.folder} was replaced while it was read. Try again"
            )

    def _remove_checkpoints(self, keep: str | None) -> None:
        for path in self.folder.glob("checkpoint-*.safetensors"):
            if CHECKPOINT.fullmatch(path.name) and path.name != keep:
                path.unlink(missing_ok=True)


def load_weights(
    model: Module, weights: dict[str, Tensor], path: Path, *, assign: bool = False
) -> None:
    try:
        own = model.state_dict()
        for name, value in weights.items():
            if name in own and value.is_floating_point() != own[name].is_floating_point():
                raise ValueError(f"{name} must hold {own[name].dtype}, got {value.dtype}")
        model.load_state_dict(weights, assign=assign)
    except (RuntimeError, ValueError) as error:
        raise CheckpointError(
            f"the weights in {path} do not fit the run's settings: {one_line(error)}. {START_AGAIN}"
        ) from error


def _num_bytes(model: Module) -> int:
    return sum(p.numel() * p.element_size() for p in model.parameters())


def _sha256(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stored_settings(record: Mapping[str, Any]) -> Settings:
    """The settings in run.json, checked."""
    if "settings" in record:
        return Settings.create(**record["settings"])
    # Version 0.1.0 wrote all settings side by side, those of all models among them.
    flat = dict(record["config"])
    flat["preset"] = flat.pop("recipe", None)
    own = {*flat_names(flat.get("model", "lgcn")), *Settings.model_fields}
    others = (*flat_names("lgcn"), *OF_OTHER_MODELS)
    kept = {name: flat[name] for name in flat if name in own or name not in others}
    return Settings.create(**kept)
