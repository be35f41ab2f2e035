"""Trains the members of a portfolio one after the other, and averages the best."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from lgcn.errors import (
    Interrupted,
    LGCNError,
    TrainingInterrupted,
    UsageError,
    WriteError,
    one_line,
)
from lgcn.graph import Graph
from lgcn.nn.whole_graph import predict
from lgcn.sampling import GraphLoader
from lgcn.training.checks import check_several, check_trainable
from lgcn.training.loop import Result, train
from lgcn.training.portfolio.candidates import Candidate, HeldOut
from lgcn.training.portfolio.choice import label_members, wants_several
from lgcn.training.portfolio.ensemble import Average, Ensemble
from lgcn.training.portfolio.entries import EnsembleFile, Entry
from lgcn.training.portfolio.members import members
from lgcn.training.portfolio.selection import select
from lgcn.training.portfolio.variations import vary
from lgcn.training.record import final_scoring, run_record
from lgcn.training.run_folder import ENSEMBLE, Run
from lgcn.training.run_metrics import run_metrics
from lgcn.training.settings import Settings
from lgcn.training.split_file import check_split, split_of
from lgcn.training.state import Rates, State
from lgcn.utils.durations import format_duration, parse_duration
from lgcn.utils.memory import release_memory
from lgcn.utils.progress import OnEpoch, OnStart

OnMember = Callable[[Entry], None]

# Share of the time left that one member may take, so that several are tried on a large graph.
SHARE = 0.35
# Share of the time limit, at least so many seconds, kept for choosing the ensemble.
RESERVED, LEAST_RESERVED = 0.02, 0.5
MIN_SECONDS = 1.0  # no member is started with less time left
MAX_FAILURES = 5  # variations that may fail in a row
MAX_VARIATIONS = 60  # more of them would fit the validation nodes of a small graph by chance
# What makes a member fail without ending the others.
FAILURES = (LGCNError, RuntimeError, ValueError, ArithmeticError, MemoryError)


@dataclass(frozen=True)
class PortfolioResult(Result):
    """A finished portfolio: the ensemble as `model`, the record of the run, and the leaderboard."""

    leaderboard: tuple[Entry, ...] = ()

    @property
    def ensemble(self) -> Ensemble:
        """The model; its `parts` are the members with their weights and temperatures."""
        assert isinstance(self.model, Ensemble)
        return self.model

    def predict(self, graph: Graph) -> Tensor:
        """The scores of every node of a graph, as those of a single model.

        Args:
            graph: The graph, as the user gives it.
        """
        return predict(self.model, graph)


def train_as_asked(
    graph: Graph,
    settings: Settings,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    on_epoch: OnEpoch | None = None,
    on_start: OnStart | None = None,
    on_member: OnMember | None = None,
) -> Result:
    """Trains what the settings ask for: a portfolio, the best of a few settings, or one model.

    Args:
        graph, settings, out, resume, overwrite, on_epoch: See `lgcn.training.train`.
        on_start: Called before the first epoch of a single training, see `lgcn.training.train`.
            (default: none)
        on_member: Called after every member of a portfolio with its row of the leaderboard.
            (default: none)
    """
    common: dict[str, Any] = {"out": out, "resume": resume, "overwrite": overwrite}
    if wants_several(settings, graph, Run(out) if resume and out is not None else None):
        return train_portfolio(graph, settings, **common, on_epoch=on_epoch, on_member=on_member)
    return train(graph, settings, **common, on_epoch=on_epoch, on_start=on_start)


def train_portfolio(
    graph: Graph,
    settings: Settings,
    *,
    time_limit: str | float | None = None,
    max_trials: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = True,
    on_epoch: OnEpoch | None = None,
    on_member: OnMember | None = None,
) -> Result:
    """Trains several models within a time limit and averages the best, by the validation score.

    Without a time limit and a number of trials, it trains the settings of
    `lgcn.training.portfolio.choice` and keeps the best, as a single model.

    Args:
        graph: The graph, as for `lgcn.training.train`.
        settings: The settings. Those that were given hold for all members.
        time_limit: The time, such as ``"10m"``. (default: that of the settings)
        max_trials: Trainings at most. (default: that of the settings)
        out: Folder for the run. (default: nothing is written)
        resume: Resume the run in ``out``: finished members are kept. (default: ``False``)
        overwrite: Replace a run that is in ``out``, unless ``resume``. (default: ``True``)
        on_epoch: Called after every epoch of every member. (default: none)
        on_member: Called after every member with its row of the leaderboard. (default: none)
    """
    limits = {"time_limit": time_limit, "max_trials": max_trials}
    given = {name: value for name, value in limits.items() if value is not None}
    if given:
        settings = settings.replace(**given)
    run = None if out is None else Run(out)
    if run is None:
        return _Portfolio(graph, settings, None, on_epoch, on_member).train()
    with run.locked(make=not resume):
        if resume:
            before = EnsembleFile.read(run)
            settings = _settings_of(run, before)
            check_split(run.folder, graph, run.split(graph.num_nodes))
            return _Portfolio(graph, settings, run, on_epoch, on_member, before).train()
        if run.holds_work and not overwrite:
            raise UsageError(f"{run.folder} already holds a run; choose another --out")
        return _Portfolio(graph, settings, run, on_epoch, on_member).train()


def _settings_of(run: Run, stored: EnsembleFile) -> Settings:
    """The settings of an interrupted portfolio as the user gave them."""
    checked, _ = run.read()
    own = {"dataset": checked.dataset, "dataset_options": checked.dataset_options}
    return Settings.create(**{**stored.given, **own})


class _Portfolio:
    """One portfolio while it trains."""

    def __init__(
        self,
        graph: Graph,
        settings: Settings,
        run: Run | None,
        on_epoch: OnEpoch | None,
        on_member: OnMember | None,
        before: EnsembleFile | None = None,
    ) -> None:
        check_trainable(graph, settings)
        check_several(graph, settings)
        self.graph = graph
        self.settings = settings
        self.run = run
        self.on_epoch = on_epoch
        self.on_member = on_member
        self.before = before
        self.held_out = HeldOut(graph, settings)
        limited = settings.time_limit is not None or settings.max_trials is not None
        self.kind = "ensemble" if limited else "choice"
        self.started = time.monotonic() - (0.0 if before is None else before.seconds)
        limit = settings.time_limit
        self.limit = None if limit is None else parse_duration(limit)
        self.entries: list[Entry] = []
        self.candidates: list[Candidate] = []
        self.told: set[str] = set()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def left(self) -> float | None:
        """Seconds left for training; ``None`` without a limit."""
        if self.limit is None:
            return None
        return self.limit - max(LEAST_RESERVED, RESERVED * self.limit) - self.seconds

    def train(self) -> Result:
        try:
            self._begin()
            for entry, own in self._planned():
                self._add(entry, own)
            if not self.candidates:
                raise self._all_failed()
            self._check_time()
            return self._choose() if self.kind == "choice" else self._average()
        except BaseException as error:
            raise self._ended(error) from error

    def _begin(self) -> None:
        if self.run is None or self.before is not None:
            return
        resolved = self.settings.resolve(self.graph)
        split = split_of(self.graph)
        self.run.start(resolved, self.held_out.spec, self.graph.encoder, split)
        self._write()

    def _write(self, entries: Sequence[Entry] | None = None) -> None:
        if self.run is not None:
            flat = self.settings.flat()
            given = {name: flat[name] for name in sorted(self.settings.given)}
            rows = tuple(self.entries if entries is None else entries)
            EnsembleFile(self.kind, given, rows, self.seconds).write(self.run)

    def _planned(self) -> Iterator[tuple[Entry, Settings]]:
        """What is trained next, until the time or the number of trials is up."""
        if self.kind == "choice":
            for name, own in label_members(self.settings, self.graph):
                yield Entry(name, name, own.model.name), own.replace(baselines=False)
            return
        for member, own in members(self.settings, self.graph):
            if self._is_up():
                return
            own = own.replace(baselines=False)  # the portfolio computes them once
            yield Entry(member.name, member.family, own.model.name), own
        number = failures = 0
        while not self._is_up() and failures < MAX_FAILURES and number < MAX_VARIATIONS:
            settings = {one.entry.name: one.settings for one in self.candidates}
            found = vary(
                number,
                self.entries,
                settings,
                self.settings,
                greater_is_better=self.held_out.greater_is_better,
            )
            if found is None:
                return
            done = len(self.candidates)
            yield found
            number += 1
            failures = 0 if len(self.candidates) > done else failures + 1

    def _is_up(self) -> bool:
        left, trials = self.left, self.settings.max_trials
        if trials is not None and len(self.entries) >= trials:
            return True
        return bool(self.entries) and left is not None and left < MIN_SECONDS

    def _add(self, entry: Entry, own: Settings) -> None:
        """Trains a member, or reads it if it was trained before."""
        known = {} if self.before is None else {one.name: one for one in self.before.entries}
        stored = known.get(entry.name)
        if stored is not None and stored.error is not None:
            self.entries.append(stored)
            return
        began = time.monotonic()
        try:
            with self._once(entry.name):
                result = self._result(entry, own)
            scores = self.held_out.scores(result.model, result.spec)
            entry = replace(
                entry, val_score=result.record["val_score"], epochs=result.record["epochs"]
            )
        except (Interrupted, WriteError):
            raise
        except FAILURES as error:
            entry = replace(entry, error=f"{one_line(error)}"[:500])
            release_memory()
        else:
            model, spec, record = result.model.cpu(), result.spec, result.record
            history = result.history
            self.candidates.append(Candidate(entry, own, model, spec, record, scores, history))
        seconds = time.monotonic() - began if stored is None else stored.seconds
        entry = replace(entry, seconds=round(seconds, 3))
        if entry.error is None:
            self.candidates[-1] = replace(self.candidates[-1], entry=entry)
        self.entries.append(entry)
        self._write()
        if self.on_member is not None:
            self.on_member(entry)

    def _result(self, entry: Entry, own: Settings) -> Result:
        folder = None if self.run is None else self.run.member(entry.name)
        if folder is not None and folder.finished and self.before is not None:
            model, _, spec = folder.load_model()
            record = folder.result()
            return Result(model, record, spec, history=record.pop("history", []))
        left = self.left
        deadline = None if left is None else time.monotonic() + SHARE * max(left, 0.0)
        resumed = folder is not None and self.before is not None and folder.started
        return train(
            self.graph,
            own,
            out=None if folder is None else folder.folder,
            resume=resumed,
            on_epoch=self.on_epoch,
            deadline=deadline,
        )

    @contextmanager
    def _once(self, name: str) -> Iterator[None]:
        """Shows each warning of the members once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
        # How good a single member is, is not what the user asked for.
        metrics = None if self.run is None else self.run.member(name).metrics()
        hidden = [] if metrics is None else metrics["warnings"]
        for warning in caught:
            if str(warning.message) not in {*self.told, *hidden}:
                self.told.add(str(warning.message))
                warnings.warn(warning.message, stacklevel=4)

    def _average(self) -> Result:
        predictions = [self.held_out.validation(one) for one in self.candidates]
        weights = select(predictions, self.held_out.y, self.held_out.judge, self.settings.seed)
        chosen = [(one, w) for one, w in zip(self.candidates, weights, strict=True) if w > 0]
        chosen.sort(key=lambda pair: -pair[1])
        ensemble = Ensemble([one.part(weight, self.graph) for one, weight in chosen]).eval()
        average = Average(self.held_out.task)
        for one, weight in chosen:
            average.add(one.scores, weight, one.temperature)
        shares = {one.entry.name: weight for one, weight in chosen}
        board = tuple(replace(entry, weight=shares.get(entry.name, 0.0)) for entry in self.entries)
        record = self._record(ensemble, average.scores(), board)
        if self.run is not None:
            with self.run.resumable():
                self._write(board)
                self.run.write_json("metrics.json", self._metrics(record, average.scores()))
                self.run.write_json("result.json", {**record, "history": []})
        return PortfolioResult(ensemble, record, self.held_out.spec, board)

    def _record(self, ensemble: Ensemble, scores: Tensor, board: Sequence[Entry]) -> dict[str, Any]:
        state = State(
            epoch=sum(entry.epochs for entry in board),
            best_epoch=max(board, key=lambda entry: entry.weight).epochs,
            seconds=self.seconds,
        )
        small = self.held_out.graph
        record = run_record(
            ensemble,
            small,
            self.settings,
            GraphLoader(small),
            state,
            Rates(),
            [(small, scores)],
            self.held_out.scoring,
        )
        return {
            **record,
            "model": "ensemble",
            "nodes_per_batch": [],
            "leaderboard": leaderboard(board, self.held_out.greater_is_better),
            "out": None if self.run is None else str(self.run.folder),
        }

    def _metrics(self, record: dict[str, Any], scores: Tensor) -> dict[str, Any]:
        """How good the chosen model is in detail, beside the baselines."""
        final = final_scoring(record, self.held_out.scoring)
        return run_metrics(self.graph, self.settings, [(self.held_out.graph, scores)], *final)

    def _choose(self) -> Result:
        """Keeps the best of the default settings, as an ordinary run."""
        sign = 1 if self.held_out.greater_is_better else -1
        # Of equal scores, the first: what the rule of thumb says.
        best = max(self.candidates, key=lambda one: sign * one.record["val_score"])
        record = {**best.record, "out": None if self.run is None else str(self.run.folder)}
        record["labels"] = best.entry.name
        record["labels_by_validation"] = {
            one.entry.name: one.entry.val_score for one in self.candidates
        }
        if self.run is not None:
            metrics = self._metrics(record, best.scores)
            baselines = self.settings.evaluation.baselines
            member = self.run.member(best.entry.name)
            _promote(self.run, member, {**record, "history": best.history}, metrics, baselines)
        return Result(best.model, record, best.spec, history=best.history)

    def _check_time(self) -> None:
        """Raises UsageError if the time was up before the second epoch of the only member."""
        if len(self.candidates) > 1 or self.limit is None or self.seconds < self.limit:
            return
        only = self.candidates[0]
        if only.record["epochs"] <= 1 < only.settings.optimisation.max_epochs:
            self.candidates.clear()  # one epoch is not worth keeping
            raise UsageError(
                f"time_limit={self.settings.time_limit} is shorter than one epoch on "
                f"{self.graph.name}, which took {format_duration(only.entry.seconds)} with all "
                "preparations: give more time, or omit it for one ordinary training"
            )

    def _all_failed(self) -> LGCNError:
        reasons = list(dict.fromkeys(str(entry.error) for entry in self.entries))
        more = f" (and {len(reasons) - 1} other reasons)" if len(reasons) > 1 else ""
        return UsageError(
            f"all {len(self.entries)} members of the portfolio failed: {reasons[0]}{more}"
            if reasons
            else "no member of the portfolio fits the given settings: give fewer of them"
        )

    def _ended(self, error: BaseException) -> BaseException:
        """What is raised for an error: it says what is kept. Nothing stays if there is nothing."""
        if self.run is None:
            return error
        if not isinstance(error, WriteError | Interrupted | KeyboardInterrupt):
            if not self.candidates:
                self.run.clear()
            return error
        if isinstance(error, WriteError):
            return error
        kept = len(self.candidates)
        self._write()
        return TrainingInterrupted(
            f"stopped after {format_duration(self.seconds)}; {kept} finished "
            f"member{'' if kept == 1 else 's'} kept. Resume with: {self.run.resume_command}"
        )


def leaderboard(entries: Sequence[Entry], greater_is_better: bool = True) -> list[dict[str, Any]]:
    """The rows of the leaderboard, best first, as JSON can hold them."""
    sign = 1 if greater_is_better else -1

    def key(entry: Entry) -> float:
        return float("inf") if entry.val_score is None else -sign * entry.val_score

    return [vars(entry).copy() for entry in sorted(entries, key=key)]


def _promote(
    run: Run, member: Run, result: dict[str, Any], metrics: dict[str, Any], baselines: bool
) -> None:
    """Makes the folder of a portfolio that of one of its members."""
    settings, spec = member.read()
    with run.resumable():
        (member.folder / "model.safetensors").replace(run.folder / "model.safetensors")
        run.write_settings(settings.replace(baselines=baselines), spec)
        run.write_json("metrics.json", metrics)
        run.write_json("result.json", result)
        (run.folder / ENSEMBLE).unlink(missing_ok=True)
        run.clear_members()
