"""Reads and writes the ensemble of a run folder."""

from __future__ import annotations

from collections.abc import Sequence

from lgcn.errors import START_AGAIN, CheckpointError
from lgcn.training.model_spec import ModelSpec
from lgcn.training.portfolio.ensemble import Ensemble, Part
from lgcn.training.portfolio.entries import EnsembleFile, Entry
from lgcn.training.run_folder import ENSEMBLE, Run


def load_ensemble(run: Run, spec: ModelSpec) -> Ensemble:
    """The ensemble, in evaluation mode; raises CheckpointError if a file is missing or damaged.

    Args:
        run: The run folder of a finished portfolio.
        spec: What ``run.json`` says that it predicts.
    """
    parts = []
    for entry in EnsembleFile.read(run).entries:
        if entry.weight > 0:
            member = run.member(entry.name)
            if not member.finished:
                raise CheckpointError(f"{member.folder} is missing or incomplete. {START_AGAIN}")
            if member.is_portfolio:
                raise CheckpointError(f"{member.folder} must be a single model. {START_AGAIN}")
            model, settings, own = member.load_model()
            if not same_outputs(own, spec):
                raise CheckpointError(
                    f"{member.folder} predicts other classes than {run.folder}. {START_AGAIN}"
                )
            weight, temperature = float(entry.weight), member.temperature()
            record = member.result()
            parts.append(Part(entry.name, model, own, weight, temperature, settings, record))
    if not parts:
        raise CheckpointError(
            f"{run.folder / ENSEMBLE} is damaged: no member has a weight. {START_AGAIN}"
        )
    parts.sort(key=lambda part: -part.weight)  # the order in which it was made
    return Ensemble(parts).eval()


def same_outputs(one: ModelSpec, other: ModelSpec) -> bool:
    """Whether two models predict the same, whatever features they take."""
    names = ("num_classes", "task", "label_names", "target_mean", "target_scale")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def save_ensemble(run: Run, ensemble: Ensemble, entries: Sequence[Entry], seconds: float) -> None:
    """Writes the members of an ensemble and `ensemble.json` to a run folder that was started.

    Args:
        run: The folder.
        ensemble: The ensemble, of which every part has settings.
        entries: The leaderboard. Members that are no part of the ensemble are only named.
        seconds: Time of the training.
    """
    for part in ensemble.parts:
        assert part.settings is not None
        member = run.member(part.name)
        member.folder.mkdir(parents=True, exist_ok=True)
        member.start(part.settings, part.spec)
        member.finish(part.model.state_dict(), part.record)
    EnsembleFile("ensemble", {}, tuple(entries), seconds).write(run)
