"""The leaderboard of a portfolio, and ``ensemble.json``, which keeps it in the run folder.

A run folder of a portfolio has ``members/NAME/``, each a run folder, and ``ensemble.json`` with the
leaderboard, the weights and the settings that were given, from which a run is resumed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lgcn.errors import START_AGAIN, CheckpointError
from lgcn.training.run_folder import ENSEMBLE, Run

FORMAT = 1
NAME = re.compile("[a-z][a-z0-9-]{0,59}")
MAX_ENTRIES = 10_000


@dataclass(frozen=True)
class Entry:
    """A row of the leaderboard.

    Args:
        name: The member; its folder is ``members/NAME``.
        family: What its network is made of.
        model: The model's name in the settings.
        val_score: The metric on the validation nodes. (default: none, it failed)
        seconds: How long it took. (default: 0)
        epochs: Epochs that were trained, or trees. (default: 0)
        weight: Its share of the ensemble. (default: 0)
        error: Why it failed. (default: it did not)
        changes: What the search changed. (default: nothing)
    """

    name: str
    family: str
    model: str
    val_score: float | None = None
    seconds: float = 0.0
    epochs: int = 0
    weight: float = 0.0
    error: str | None = None
    changes: dict[str, Any] = field(default_factory=dict)


_KINDS: dict[str, Any] = {
    "name": str,
    "family": str,
    "model": str,
    "val_score": (int, float, type(None)),
    "seconds": (int, float),
    "epochs": int,
    "weight": (int, float),
    "error": (str, type(None)),
    "changes": dict,
}


@dataclass(frozen=True)
class EnsembleFile:
    """The content of ``ensemble.json``.

    Args:
        kind: ``"ensemble"``, or ``"choice"`` for the choice between few and many labels.
        given: The settings that the user gave, by flat name.
        entries: The leaderboard, in the order of training.
        seconds: Time spent so far.
    """

    kind: str
    given: dict[str, Any]
    entries: tuple[Entry, ...] = ()
    seconds: float = 0.0

    def write(self, run: Run) -> None:
        run.write_json(ENSEMBLE, {"format": FORMAT, **asdict(self)})

    @classmethod
    def read(cls, run: Run) -> EnsembleFile:
        """What a run folder holds, checked; raises CheckpointError."""
        stored = run.read_json(ENSEMBLE)
        try:
            return cls._checked(stored)
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(
                f"{run.folder / ENSEMBLE} is damaged: {error}. {START_AGAIN}"
            ) from error

    @classmethod
    def _checked(cls, stored: Any) -> EnsembleFile:
        if not isinstance(stored, Mapping) or stored.get("format") != FORMAT:
            raise ValueError(f"it must be of format {FORMAT}")
        kind, given, seconds = stored["kind"], stored["given"], stored["seconds"]
        if kind not in ("ensemble", "choice") or not isinstance(given, dict):
            raise ValueError("kind or given is wrong")
        if not _is_number(seconds) or seconds < 0:
            raise ValueError("seconds must be a number")
        rows = stored["entries"]
        if not isinstance(rows, list) or len(rows) > MAX_ENTRIES:
            raise ValueError("entries must be a list")
        entries = tuple(_entry(row) for row in rows)
        if len({entry.name for entry in entries}) < len(entries):
            raise ValueError("two entries have one name")
        return cls(kind, given, entries, float(seconds))


def _entry(row: Any) -> Entry:
    if not isinstance(row, dict) or set(row) != set(_KINDS):
        raise ValueError(f"an entry must have {', '.join(_KINDS)}")
    for key, kinds in _KINDS.items():
        if not isinstance(row[key], kinds) or isinstance(row[key], bool):
            raise ValueError(f"{key} of an entry is wrong")
        if isinstance(row[key], float) and not math.isfinite(row[key]):
            raise ValueError(f"{key} of an entry must be finite")
    entry = Entry(**row)
    if not NAME.fullmatch(entry.name):  # it becomes a path
        raise ValueError(f"{entry.name!r:.80} is no name of a member")
    if not 0 <= entry.weight <= 1:
        raise ValueError("weight of an entry must be from 0 to 1")
    return entry


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
