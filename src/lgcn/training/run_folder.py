"""Run folders: their files, written atomically and checked when read.

============================  ============================================================
``run.json``                  settings, and what the model was built for
``features.json``             how the columns of tables become features, if there are any
``edge_features.json``        the same for features of edges
``checkpoint.json``           where training stands; names the file of tensors below
``checkpoint-N.safetensors``  weights, best weights and optimiser state after epoch N
``model.safetensors``         the best weights, once training has finished
``result.json``               the scores, and the history of all epochs
``metrics.json``              how good the model is in detail, and the baselines
``split.npz``                 which nodes were training, validation and test nodes
``estimator.json``            what `lgcn.LGCNClassifier` adds when it is saved
``ensemble.json``             leaderboard and weights of a portfolio (`lgcn.training.portfolio`)
``members/NAME/``             its members, each a run folder
``report.html``               what `lgcn report` wrote about the run
============================  ============================================================

``checkpoint.json`` is written last and names its tensors with their checksum. So a run that is
killed at any moment has one consistent checkpoint: the new one or the previous one.

Writers hold a lock on the folder (`lgcn.training.folder_lock`). Readers need no lock: they
notice if the run is replaced while they read it, and raise an error.

A run folder may come from an untrusted source. No code in it is executed. It cannot make the
program write to other files or skip checks: its settings must pass
`lgcn.datasets.registry.check_options`.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets.registry import check_options
from lgcn.errors import (
    START_AGAIN,
    CheckpointError,
    DataError,
    LGCNError,
    UsageError,
    WriteError,
    one_line,
)
from lgcn.training import folder_lock
from lgcn.training.groups import LGCNSettings
from lgcn.training.model_spec import ModelSpec, load_weights
from lgcn.training.models import UnknownModel
from lgcn.training.settings import Settings, flat_names, groups_of
from lgcn.utils.files import cannot_write, open_plain, read_json, write_json

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from lgcn.tables.encoder import FeatureEncoder
    from lgcn.training.split_file import Split

FORMAT = 1
ENSEMBLE, MEMBERS = "ensemble.json", "members"
# All files of a run except the tensors of checkpoints.
FILES = (
    "result.json",
    "checkpoint.json",
    "model.safetensors",
    "run.json",
    "features.json",
    "edge_features.json",
    "estimator.json",
    ENSEMBLE,
    "metrics.json",
    "split.npz",
    "report.html",
)
# The keys that a result needs to be printed, and their types.
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


class Run:
    """A run folder.

    Args:
        folder: Its path. The constructor reads and writes nothing.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._read: tuple[int, ...] | None = None  # which run.json was read

    @contextmanager
    def locked(self, *, make: bool = True) -> Iterator[None]:
        """Keeps all other processes from writing to the folder while the block runs.

        Args:
            make: Create the folder if it is missing. It is removed again if nothing is written to
                it. (default: ``True``)
        """
        if not make and not self.folder.exists():
            raise self._missing()
        with folder_lock.locked(self.folder):
            yield

    def _missing(self) -> UsageError:
        return UsageError(f"no such run folder: {self.folder}")

    @property
    def started(self) -> bool:
        return (self.folder / "run.json").exists()

    @property
    def holds_work(self) -> bool:
        """Whether the folder has a checkpoint or a trained model, which must not get lost."""
        names = ("checkpoint.json", "model.safetensors", "result.json", ENSEMBLE)
        return any((self.folder / name).exists() for name in names)

    @property
    def is_portfolio(self) -> bool:
        """Whether the run has several members."""
        return (self.folder / ENSEMBLE).exists()

    def member(self, name: str) -> Run:
        """The run folder of a member of a portfolio."""
        return Run(self.folder / MEMBERS / name)

    @property
    def has_encoder(self) -> bool:
        """Whether the features come from columns of tables."""
        return (self.folder / "features.json").exists()

    @property
    def finished(self) -> bool:
        return (self.folder / "result.json").exists()

    @property
    def resume_command(self) -> str:
        return f"lgcn train --resume --out {shlex.quote(str(self.folder))}"

    def start(
        self,
        settings: Settings,
        spec: ModelSpec,
        encoder: FeatureEncoder | None = None,
        split: Split | None = None,
        edge_encoder: FeatureEncoder | None = None,
    ) -> None:
        """Starts a new run in the folder. The files of an earlier run are removed."""
        self.clear()
        if split is not None:
            from lgcn.training.split_file import write_split

            write_split(self.folder / "split.npz", split)
        if encoder is not None:
            self.write_json("features.json", encoder.to_dict())
        if edge_encoder is not None:
            self.write_json("edge_features.json", edge_encoder.to_dict())
        self.write_settings(settings, spec)

    def write_settings(self, settings: Settings, spec: ModelSpec) -> None:
        """Writes ``run.json``."""
        record = {"format": FORMAT, "settings": settings.to_dict(), "model": asdict(spec)}
        self.write_json("run.json", record)

    @contextmanager
    def begin(
        self,
        settings: Settings,
        spec: ModelSpec,
        encoder: FeatureEncoder | None,
        split: Split | None = None,
        edge_encoder: FeatureEncoder | None = None,
        *,
        overwrite: bool,
    ) -> Iterator[None]:
        """Starts a new run, and trains it while the block runs.

        A run that fails before its first checkpoint leaves nothing behind. It stays if a write
        failed: the message of that error says how to resume it.
        """
        if self.holds_work and not overwrite:  # may have appeared since the caller looked
            raise UsageError(f"{self.folder} already holds a run; choose another --out")
        try:
            self.start(settings, spec, encoder, split, edge_encoder)
            yield
        except WriteError:
            raise
        except BaseException:
            if not self.holds_work:
                self.clear()
            raise

    def other_files(self) -> bool:
        """Whether the folder holds files that do not belong to a run."""
        names = (path.name for path in self.folder.iterdir())
        known = (*FILES, MEMBERS)
        return not all(name in known or CHECKPOINT.fullmatch(name) for name in names)

    def clear(self) -> None:
        """Removes the files of the run, and no others."""
        try:
            for name in FILES:
                (self.folder / name).unlink(missing_ok=True)
            self._remove_checkpoints(keep=None)
            self.clear_members()
        except OSError as error:
            raise cannot_write(self.folder, error) from error

    def clear_members(self) -> None:
        """Removes the files of the members of a portfolio, and no others."""
        folder = self.folder / MEMBERS
        if not folder.is_dir() or folder.is_symlink():
            return
        for one in folder.iterdir():
            if one.is_dir() and not one.is_symlink():
                Run(one).clear()
                with suppress(OSError):  # other files are in it
                    one.rmdir()
        with suppress(OSError):
            folder.rmdir()

    def read(self) -> tuple[Settings, ModelSpec]:
        """The settings of the run, and what its model was built for."""
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
        """Writes a checkpoint, then removes the one before."""
        from lgcn.training.tensor_files import save_tensors

        name = f"checkpoint-{epoch}.safetensors"
        with self.resumable():
            save_tensors(self.folder / name, tensors)
            digest = _sha256(self.folder / name)
            record = {"epoch": epoch, "tensors": name, "sha256": digest, "state": state}
            self.write_json("checkpoint.json", record)
        self._remove_checkpoints(keep=name)

    def load_checkpoint(self) -> tuple[int, dict[str, Tensor], Any] | None:
        """Epoch, tensors and state of the last checkpoint; ``None`` if there is none yet."""
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
        # The name must not lead out of the folder.
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

    def finish(
        self,
        weights: dict[str, Tensor],
        result: dict[str, Any],
        metrics: dict[str, Any] | None = None,
    ) -> None:
        """Writes the best weights, the metrics and the result, then removes the checkpoints."""
        from lgcn.training.tensor_files import save_tensors

        save_tensors(self.folder / "model.safetensors", weights)
        if metrics is not None:
            self.write_json("metrics.json", metrics)
        self.write_json("result.json", result)
        self._drop_checkpoints()

    def tidy(self) -> None:
        """Removes checkpoints that a finished run still has because it was killed."""
        with suppress(LGCNError), self.locked(make=False):
            if self.finished:
                self._drop_checkpoints()

    def _drop_checkpoints(self) -> None:
        with suppress(OSError):  # the result is complete without it
            (self.folder / "checkpoint.json").unlink(missing_ok=True)
            self._remove_checkpoints(keep=None)

    @contextmanager
    def resumable(self) -> Iterator[None]:
        """Adds the command that resumes the training to errors of writing."""
        try:
            yield
        except WriteError as error:
            raise WriteError(
                f"{error}. What was saved before is still there; resume with: {self.resume_command}"
            ) from error

    def result(self) -> dict[str, Any]:
        """The content of ``result.json``, checked."""
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

    def metrics(self) -> dict[str, Any] | None:
        """The content of ``metrics.json``, checked; ``None`` if the run has none."""
        path = self.folder / "metrics.json"
        if not path.exists():
            return None
        from lgcn.training.metrics_file import check_metrics

        try:
            return check_metrics(self.read_json("metrics.json"))
        except ValueError as error:
            raise CheckpointError(f"{path} is damaged: {one_line(error)}. {START_AGAIN}") from error

    def split(self, num_nodes: int) -> Split | None:
        """Which nodes were in which split, see `lgcn.training.split_file.read_split`."""
        from lgcn.training.split_file import read_split

        found = read_split(self.folder / "split.npz", num_nodes)
        self._check_unchanged()
        return found

    def temperature(self) -> float:
        """The softmax temperature; 1 if the run has none."""
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

    def threshold(self) -> float | None:
        """The decision threshold of two classes; ``None`` if the run has none."""
        value = self.result().get("threshold")
        if value is None or (_is_number(value) and 0 <= value <= 1):
            return value
        raise CheckpointError(
            f"{self.folder / 'result.json'} is damaged: threshold must be a number from 0 to 1"
        )

    def interval(self) -> tuple[float, float | None]:
        """The level of the interval around predictions, and half its width if it is known."""
        stored = self.result().get("interval")
        if isinstance(stored, dict) and set(stored) == {"level", "half_width"}:
            level, half = stored["level"], stored["half_width"]
            known = half is None or (_is_number(half) and 0 <= half < float("inf"))
            if _is_number(level) and 0 < level < 1 and known:
                return float(level), None if half is None else float(half)
        raise CheckpointError(
            f"{self.folder / 'result.json'} is damaged: interval must have a level from 0 to 1 and "
            "a half_width of at least 0"
        )

    def encoder(self) -> FeatureEncoder | None:
        """How the columns of tables become features; ``None`` if the features did not come so."""
        return self._encoder("features.json")

    def edge_encoder(self) -> FeatureEncoder | None:
        """How columns of an edge table become features of edges; ``None`` if none do."""
        return self._encoder("edge_features.json")

    def _encoder(self, name: str) -> FeatureEncoder | None:
        if not (self.folder / name).exists():
            return None
        from lgcn.tables.encoder import FeatureEncoder  # imports pyarrow

        try:
            return FeatureEncoder.from_dict(self.read_json(name))
        except DataError as error:
            raise CheckpointError(f"{self.folder / name} is damaged: {error}") from error

    def read_finished(self) -> tuple[Settings, ModelSpec]:
        """Like `read`; raises CheckpointError if the training has not finished."""
        record = self.read()
        if not self.finished:
            raise CheckpointError(
                f"training in {self.folder} has not finished; resume with: {self.resume_command}"
            )
        return record

    def load_model(self) -> tuple[Module, Settings, ModelSpec]:
        """The trained model, in evaluation mode."""
        settings, spec = self.read_finished()
        if self.is_portfolio:
            from lgcn.training.portfolio.stored import load_ensemble

            return load_ensemble(self, spec), settings, spec
        from lgcn.training.tensor_files import load_tensors

        path = self.folder / "model.safetensors"
        weights = load_tensors(path)
        # Memory is allocated only after the weights confirmed the sizes in run.json.
        try:
            if settings.model.num_layers > len(weights):
                raise ValueError(f"they have less than {settings.model.num_layers} layers")
            model = spec.build_without_memory(settings)
        except ValueError as error:
            raise CheckpointError(
                f"the weights in {path} do not fit the run's settings: {one_line(error)}"
            ) from error
        load_weights(model, weights, path, assign=True)
        check: Any = getattr(model, "check", None)  # of weights that are not mere numbers
        if check is not None:
            try:
                check()
            except ValueError as error:
                raise CheckpointError(f"{path} is damaged: {error}. {START_AGAIN}") from error
        self._check_unchanged()
        return model.float().eval(), settings, spec

    def read_json(self, name: str) -> Any:
        """The content of a JSON file of the run, unchecked."""
        try:
            content = read_json(self.folder / name, CheckpointError)
        except FileNotFoundError as error:
            raise CheckpointError(f"{self.folder} is not a run folder: no {name}") from error
        except CheckpointError as error:
            raise CheckpointError(f"{error}. {START_AGAIN}") from error
        self._check_unchanged()
        return content

    def write_json(self, name: str, value: Any) -> None:
        # A link in an untrusted folder could point to any file of the user.
        write_json(self.folder / name, value, follow=False)

    def _version(self) -> tuple[int, ...] | None:
        """Identifies the run: each has its own run.json, which is never changed in place."""
        try:
            status = (self.folder / "run.json").stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _check_unchanged(self) -> None:
        if self._read is not None and self._read != self._version():
            self._read = None  # the next call reads the new run
            raise CheckpointError(
                f"the run in {self.folder} was replaced while it was read. Try again"
            )

    def _remove_checkpoints(self, keep: str | None) -> None:
        for path in self.folder.glob("checkpoint-*.safetensors"):
            if CHECKPOINT.fullmatch(path.name) and path.name != keep:
                path.unlink(missing_ok=True)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _sha256(path: Path) -> str:
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _stored_settings(record: Mapping[str, Any]) -> Settings:
    """The settings in run.json, checked."""
    if "settings" in record:
        return Settings.create(**_with_defaults(record["settings"]))
    # Files of earlier versions have flat settings, also those of models that were not used.
    flat = dict(record["config"])
    flat["preset"] = flat.pop("recipe", None)
    own = {*flat_names(flat.get("model", "lgcn")), *Settings.model_fields}
    return Settings.create(**{name: flat[name] for name in flat if name in own})


def _with_defaults(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Stored settings, with the defaults of those that came after the run.

    New settings change nothing by their defaults. A preset may give them other values now, or build
    another network.
    """
    filled = dict(stored)
    for group, cls in groups_of(stored["model"]["name"]).items():
        if group in stored:
            fields = cls.model_fields.items()
            usual = {name: field.default for name, field in fields if not field.is_required()}
            filled[group] = {**usual, **stored[group]}
    return filled
