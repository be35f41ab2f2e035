"""A small change of a node's own features that changes its prediction.

Few columns change, by what can occur: a number moves, a category becomes another one, a word or an
item appears or is left out. If no such change is found, or if the features came as numbers without
a table, all features move at once, as in ["DeepFool"](https://arxiv.org/abs/1511.04599): along the
gradient to where the prediction changes, then back to just behind that point.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lgcn.explain.counterfactual import Trial

FURTHEST = 2.0  # standard deviations from the mean, up to which numbers move
COLUMNS = 10  # columns that are tried, those with the steepest slopes first
CHANGED = 3  # columns that may change
CHOICES = 12  # categories, words or items of a column that are tried
HALVINGS = 12
DEEPFOOL_STEPS = 30
OVERSHOOT = 0.02  # as a share of a step, to land behind the boundary and not on it
LISTED = 10  # columns of a change of all features
WORLDS = 32  # changes that are computed at a time


class _Column(NamedTuple):
    described: dict[str, Any]
    here: slice  # where its features are


class _Move(NamedTuple):
    """One column changed: which, how it is told, and the node's features then."""

    column: _Column
    entry: dict[str, Any]
    row: Tensor


def find_feature_change(trial: Trial) -> dict[str, Any]:
    """The change as plain values; `changes` is `None`, with a `reason`, if none is found."""
    given = trial.explainer.given_features
    if given == 0:
        return {"changes": None, "reason": "all features come from the edges"}
    own = trial.own_features(trial.shares[0])[0, :given].detach()
    return _few_columns(trial, own) or _all_features(trial, own)


def _few_columns(trial: Trial, own: Tensor) -> dict[str, Any] | None:
    """Changes one column after the other, each time that which helps most, until it is enough."""
    columns = _steepest_columns(trial, own)
    made: list[_Move] = []
    row = own
    while columns and len(made) < CHANGED:
        moves = [move for column in columns for move in _moves(trial, column, own, row)]
        if not moves:
            return None
        scores = _scores(trial, torch.stack([move.row for move in moves]))
        enough = [place for place, one in enumerate(scores) if trial.changed(one)]
        if enough:
            best = min(enough, key=lambda place: float((moves[place].row - row).norm()))
        else:
            best = int(trial.margin(scores).argmin())
        made.append(moves[best])
        row = moves[best].row
        if enough:
            return _told(trial, own, made)
        columns = [column for column in columns if column is not moves[best].column]
    return None


def _told(trial: Trial, own: Tensor, made: list[_Move]) -> dict[str, Any]:
    """The change for the report, with the last number moved no further than needed."""
    column, entry, row = made[-1]
    if column.described["kind"] in ("number", "date"):
        place = column.here.start
        near, far = float(own[place]), float(row[place])
        for _ in range(HALVINGS):
            middle = (near + far) / 2
            row = row.clone()
            row[place] = middle
            flips = trial.changed(_scores(trial, row[None])[0])
            near, far = (near, middle) if flips else (middle, far)
        row[place] = far
        entry = _number_entry(column.described, float(own[place]), far)
    changes = [*(move.entry for move in made[:-1]), entry]
    outcome = trial.outcome(_scores(trial, row[None])[0])
    distance = float((row - own).norm())
    return {"changes": changes, "columns": len(changes), "distance": distance, **outcome}


def _steepest_columns(trial: Trial, own: Tensor) -> list[_Column]:
    row = own.clone().requires_grad_()
    (slope,) = torch.autograd.grad(trial.margin(trial.with_features(row[None]))[0], row)
    found = list(_columns(trial))
    found.sort(key=lambda column: -float(slope[column.here].abs().max()))
    return found[:COLUMNS]


def _columns(trial: Trial) -> Iterator[_Column]:
    """The user's columns, and where their features are."""
    place = 0
    for described in trial.explainer.described_columns:
        here = slice(place, place + described["width"])
        place = here.stop
        yield _Column(described, here)


def _moves(trial: Trial, column: _Column, own: Tensor, row: Tensor) -> Iterator[_Move]:
    """The changes of a column that are tried."""
    described, here = column
    kind = described["kind"]
    if kind in ("number", "date"):
        before = float(own[here.start])
        for after in (-FURTHEST, -1.0, 0.0, 1.0, FURTHEST):
            changed = row.clone()
            changed[here.start] = after
            yield _Move(column, _number_entry(described, before, after), changed)
    elif kind == "category":
        names = described["categories"]
        present = own[here].nonzero().flatten().tolist()
        for other in [place for place in range(len(names)) if place not in present][:CHOICES]:
            changed = row.clone()
            changed[here] = 0
            changed[here.start + other] = 1
            told = {"from": names[present[0]] if present else None, "to": names[other]}
            yield _Move(column, {"column": described["name"], **told}, changed)
    elif kind in ("text", "list", "long"):
        names = described["words"] if kind == "text" else described["items"]
        present = own[here].nonzero().flatten().tolist()
        for place in present[:CHOICES]:
            changed = row.clone()
            changed[here.start + place] = 0
            yield _Move(column, _word_entry(described, names[place], removed=True), changed)
        if kind == "list":  # the value of a new word depends on the others, that of an item is 1
            for place in [p for p in range(len(names)) if p not in present][:CHOICES]:
                changed = row.clone()
                changed[here.start + place] = 1
                yield _Move(column, _word_entry(described, names[place], removed=False), changed)


def _scores(trial: Trial, rows: Tensor) -> Tensor:
    with torch.no_grad():
        return torch.cat([trial.with_features(block) for block in torch.split(rows, WORLDS)])


def _all_features(trial: Trial, own: Tensor) -> dict[str, Any]:
    row = own.clone()
    for _ in range(DEEPFOOL_STEPS):
        row = row.detach().requires_grad_()
        scores = trial.with_features(row[None])
        if trial.changed(scores[0].detach()):
            break
        margin = trial.margin(scores)[0]
        (slope,) = torch.autograd.grad(margin, row)
        length = float(slope.square().sum())
        if length < 1e-12:
            return {"changes": None, "reason": "its own features hardly affect the prediction"}
        row = row.detach() - (1 + OVERSHOOT) * (margin.detach() / length).to(slope) * slope
    else:
        return {
            "changes": None,
            "reason": f"no change was found in {DEEPFOOL_STEPS} steps along the gradient",
        }
    change, near, far = row.detach() - own, 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        flips = trial.changed(_scores(trial, (own + middle * change)[None])[0])
        near, far = (near, middle) if flips else (middle, far)
    change = far * change
    order = change.abs().argsort(descending=True, stable=True)[:LISTED].tolist()
    names = trial.explainer.parts[0].columns.features
    numbers = {
        column.here.start: column.described
        for column in _columns(trial)
        if column.described["kind"] == "number"
    }
    entries: list[dict[str, Any]] = []
    for place in order:
        before, after = float(own[place]), float(own[place] + change[place])
        if place in numbers:
            entries.append(_number_entry(numbers[place], before, after))
        elif before != after:
            entries.append({"column": names[place], "from": before, "to": after, "unit": "feature"})
    return {
        "changes": entries,
        "columns": int((change != 0).sum()),
        "distance": float(change.norm()),
        **trial.outcome(_scores(trial, (own + change)[None])[0]),
    }


def _number_entry(described: dict[str, Any], before: float, after: float) -> dict[str, Any]:
    """A number in the user's unit; a date in standard deviations from the mean."""
    found: dict[str, Any] = {"column": described["name"]}
    if described["kind"] == "date":
        return {**found, "from": before, "to": after, "unit": "standard deviations"}
    mean, deviation = described["mean"][0], described["deviation"][0]
    return {**found, "from": mean + before * deviation, "to": mean + after * deviation}


def _word_entry(described: dict[str, Any], word: str, *, removed: bool) -> dict[str, Any]:
    before, after = (word, None) if removed else (None, word)
    return {"column": described["name"], "from": before, "to": after}
