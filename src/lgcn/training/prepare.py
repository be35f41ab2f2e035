"""Prepares a training that writes a run folder: checks settings, folder and data.

torch is imported after these checks, so that a mistake is reported at once.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lgcn.datasets.graph_source import GraphSource
from lgcn.errors import DataError, Interrupted, TrainingInterrupted, UsageError
from lgcn.training.edge_advice import check_tables
from lgcn.training.run_folder import Run
from lgcn.training.settings import Settings, merge_settings
from lgcn.utils.progress import OnEpoch, OnStart

if TYPE_CHECKING:
    from lgcn.workers import Workers

MODEL_OF_GRAPHS = "graph_lgcn"  # where whole graphs are predicted and no model is named


def read_settings(
    file: str | Path | None = None, assignments: Sequence[str] = (), **given: Any
) -> dict[str, Any]:
    """Settings from a file, from ``key=value`` strings, and by name. Later ones override earlier.

    Args:
        file: A TOML file. (default: none)
        assignments: Strings such as ``"k=16"``. (default: none)
        **given: Further settings; ``None`` leaves a setting as it is.
    """
    settings = merge_settings(assignments, {} if file is None else Settings.from_toml(file))
    return settings | {key: value for key, value in given.items() if value is not None}


@dataclass(frozen=True)
class PreparedTraining:
    """A training whose settings, folder and data are checked. See `prepare_training`."""

    settings: Settings
    run: Run
    source: GraphSource
    resume: bool
    overwrite: bool

    def train(
        self,
        on_epoch: OnEpoch | None = None,
        on_start: OnStart | None = None,
        on_member: Callable[[Any], None] | None = None,
        workers: Workers | None = None,
        before_load: Callable[[], object] | None = None,
    ) -> dict[str, Any]:
        """Loads the graph, trains, and returns the record. The record of a finished run is read.

        Args:
            on_epoch, on_start: See `lgcn.training.train`. (default: none)
            on_member: See `lgcn.training.portfolio.train_portfolio`. (default: none)
            workers: The processes that share the training, see `lgcn.training.train`; all of them
                call this. (default: one)
            before_load: Called if there is a training to do. (default: none)
        """
        if self.resume and self._finished(workers):
            return self._result(workers)
        if before_load is not None:
            before_load()
        graph = self.source.load()
        one_graph = not self.source.is_partition and not self.source.is_graph_set
        if self.source.is_own and one_graph:
            from lgcn.datasets.report_warnings import training_warnings
            from lgcn.training.checks import check_trainable

            check_trainable(graph, self.settings)  # an error comes alone
            chosen = self.settings
            count_alike = chosen.optimisation.class_weight != "none" or (
                chosen.evaluation.metric not in ("auto", "accuracy", "micro_f1", "log_loss")
            )
            for text in training_warnings(graph, classes_count_alike=count_alike):
                warnings.warn(text, stacklevel=2)
        from lgcn.training.loop import train
        from lgcn.training.portfolio import train_portfolio
        from lgcn.training.portfolio.choice import wants_several

        common: dict[str, Any] = {"out": self.run.folder, "on_epoch": on_epoch}
        common |= {"resume": self.resume, "overwrite": self.overwrite}
        try:
            if not one_graph or (workers is not None and workers.size > 1):
                _check_alone(self.settings)
                found = train(graph, self.settings, **common, on_start=on_start, workers=workers)
                return found.record
            if wants_several(self.settings, graph, self.run if self.resume else None):
                return train_portfolio(graph, self.settings, **common, on_member=on_member).record
            return train(graph, self.settings, **common, on_start=on_start).record
        except KeyboardInterrupt:
            raise self.interrupted() from None

    def _finished(self, workers: Workers | None) -> bool:
        """Whether the run has ended, as rank 0 sees it, which writes it."""
        return (
            self.run.finished
            if workers is None
            else bool(workers.share(self.run.finished, "the state of the run"))
        )

    def _result(self, workers: Workers | None) -> dict[str, Any]:
        """The record of the finished run."""
        if workers is not None and not workers.is_first:
            return dict(workers.share(None, "the record of the run"))
        self.run.tidy()
        result = self.run.result()
        return result if workers is None else dict(workers.share(result, "the record of the run"))

    def interrupted(self) -> Interrupted:
        """The error that says what is kept after an interrupt within an epoch."""
        if not self.run.holds_work:
            return Interrupted("stopped before the first checkpoint; nothing is kept")
        if self.run.finished and not self.resume:  # the run that was to be replaced
            return Interrupted(f"stopped; the run in {self.run.folder} is unchanged")
        return TrainingInterrupted(
            f"stopped at once; resume from the last checkpoint with: {self.run.resume_command}"
        )


def prepare_training(
    settings: Mapping[str, Any],
    *,
    source: GraphSource | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    root: str | Path | None = None,
) -> PreparedTraining:
    """Checks the settings, the folder and the data of a training.

    Args:
        settings: The settings by name, see `read_settings`.
        source: Where the graph comes from. (default: the data set that the settings name)
        out: The run folder. (default: ``runs/NAME-seedN``, the first that is free)
        resume: Resume the run in ``out``, with the same settings. (default: ``False``)
        overwrite: Replace the run in ``out``. (default: ``False``)
        root: Folder of the data files. (default: ``$LGCN_DATA``, then the cache folder)
    """
    given = dict(settings)
    if source is not None:
        given |= _of_source(source)
        if source.is_graph_set and not resume:
            given.setdefault("model", MODEL_OF_GRAPHS)
    if resume:
        if out is None:
            raise UsageError("resume=True needs out=, the folder of the run to resume")
        run = Run(out)
        chosen = resumed_settings(run, given)
    else:
        chosen = Settings.create(**given)
        run = Run(new_folder(chosen) if out is None else out)
        if run.holds_work and not overwrite:
            raise UsageError(
                f"{run.folder} already holds a run; choose another out=, resume it with "
                "resume=True, or replace it with overwrite=True"
            )
    found = GraphSource(chosen.dataset, chosen.dataset_options, root)
    prepared = PreparedTraining(chosen, run, found, resume, overwrite)
    if not (resume and run.finished):
        check_tables(chosen)
        _check(prepared)
    return prepared


def prepare_in_group(
    settings: Mapping[str, Any],
    workers: Workers,
    *,
    source: GraphSource | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    root: str | Path | None = None,
) -> PreparedTraining:
    """`prepare_training` for several processes, of which the first alone looks at the run folder.

    After a restart of the group, the run resumes from its last checkpoint.

    Args:
        settings, source, out, resume, overwrite, root: See `prepare_training`. The data may lie
            elsewhere for each process.
        workers: The processes; all of them call this.
    """
    from lgcn.workers import is_restart, together

    if out is None:
        raise UsageError(
            "training on several workers needs out=, the folder of the run, so that they can "
            "resume it after a restart"
        )
    shared = None
    with together(workers, "preparing the training"):
        if workers.is_first:
            run = Run(out)
            given = dict(settings) | ({} if source is None else _of_source(source))
            if is_restart() and run.started and not (overwrite and run.finished):
                # An attempt that was refused since the folder holds another run is restarted, too.
                resume = resume or _has_settings(run, given)
            prepared = prepare_training(
                {} if resume else settings,
                source=None if resume else source,
                out=out,
                resume=resume,
                overwrite=overwrite,
                root=root,
            )
            shared = {"resume": resume, "settings": prepared.settings.flat()}
    shared = workers.share(shared, "the settings of rank 0")
    chosen = Settings.create(**shared["settings"]) if shared["resume"] else None
    if chosen is None:
        given = dict(settings) | ({} if source is None else _of_source(source))
        chosen = Settings.create(**given)
    if source is None:
        source = GraphSource(chosen.dataset, chosen.dataset_options, root)
    with together(workers, "finding the data"):
        check_tables(chosen)
        source.check()
    return PreparedTraining(chosen, Run(out), source, shared["resume"], overwrite)


def _has_settings(run: Run, given: Mapping[str, Any]) -> bool:
    """Whether a run has the given settings, as far as they do not depend on the graph."""
    before, now = run.read()[0].flat(), Settings.create(**given)
    values = {name: value for name, value in now.flat().items() if name in now.given}
    open_ones = (None, "auto")  # the graph chooses
    return all(
        before.get(name) == value
        for name, value in values.items()
        if value not in open_ones and name != "sampler"
    )


def _check_alone(settings: Settings) -> None:
    """Raises UsageError if the settings ask for several trainings one after the other."""
    for name in ("time_limit", "max_trials"):
        if getattr(settings, name) is not None:
            raise UsageError(
                f"{name} tries several networks, which needs one process and one graph in one "
                f"piece: drop {name}, several workers, the parts, or the set of graphs"
            )


def resumed_settings(run: Run, given: Mapping[str, Any]) -> Settings:
    """The settings of a run to resume; raises UsageError if the given ones differ."""
    settings, _ = run.read()
    before, after = settings.flat(), settings.replace(**given).flat()
    changed = [key for key in given if after[key] != before[key]]
    if changed:
        raise UsageError(
            f"resume=True keeps the settings of the run: drop {', '.join(changed)}, or start a new "
            "run with another out="
        )
    return settings


def new_folder(settings: Settings, parent: str | Path = "runs") -> Path:
    """The folder for a new run: ``PARENT/NAME-seedN``, with a number at the end if that exists."""
    name = GraphSource(settings.dataset, settings.dataset_options).title
    base = Path(parent) / f"{name}-seed{settings.seed}"
    folder, number = base, 2
    while folder.exists():
        folder = base.with_name(f"{base.name}-{number}")
        number += 1
    return folder


def _of_source(source: GraphSource) -> dict[str, Any]:
    """The settings that name the graph."""
    labelled = {"tables": "nodes", "graph_tables": "graphs"}.get(source.dataset)
    if labelled in source.options and "label_column" not in source.options:
        raise UsageError(f"label_column= is missing: the column of {labelled}= that has the labels")
    options = {"dataset_options": dict(source.options)} if source.options else {}
    return {"dataset": source.dataset, **options}


def _check(prepared: PreparedTraining) -> None:
    try:
        prepared.source.check()
    except (DataError, UsageError) as error:
        old_path = prepared.source.missing_path
        if prepared.resume and old_path is not None:
            error.args = (f"{error}. To resume the run, put it back at {old_path}",)
        raise
