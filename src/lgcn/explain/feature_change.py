"""The smallest change of a node's own features that changes its prediction.

A change of a single column comes first: people can read it. If none is enough, all features move at
once, as in ["DeepFool"](https://arxiv.org/abs/1511.04599): along the gradient to where the
prediction changes, then back to just behind that point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from lgcn.explain.counterfactual import Trial

REACH = 4.0  # standard deviations by which a number may move
COLUMNS = 10  # columns that are tried alone, those with the steepest slopes first
HALVINGS = 12
DEEPFOOL_STEPS = 30
OVERSHOOT = 0.02  # as a share of a step, to land behind the boundary and not on it
LISTED = 10  # columns of a change of all features
WORLDS = 32  # changes that are computed at a time


def find_feature_change(trial: Trial) -> dict[str, Any]:
    """The change as plain values; `changes` is `None`, with a `reason`, if none is found."""
    given = trial.explainer.given_features
    if given == 0:
        return {"changes": None, "reason": "all features come from the edges"}
    own = trial.own_features(trial.shares[0])[0, :given].detach()
    found = _one_column(trial, own)
    if found is None:
        found = _all_features(trial, own)
    return found


def _one_column(trial: Trial, own: Tensor) -> dict[str, Any] | None:
    """The smallest change of one column: a number that moves, or another category."""
    best: tuple[float, dict[str, Any], Tensor] | None = None
    for column, here in _steepest_columns(trial, own):
        if column["kind"] in ("number", "date"):
            change = _moved_number(trial, own, here.start)
            if change is None:
                continue
            size, row = change
            described = _number_text(column, float(own[here.start]), float(row[here.start]))
        elif column["kind"] == "category":
            other = _other_category(trial, own, here)
            if other is None:
                continue
            size, row, chosen = other
            before = own[here].nonzero().flatten().tolist()
            names = column["categories"]
            described = {"from": names[before[0]] if before else None, "to": names[chosen]}
        else:
            continue
        if best is None or size < best[0]:
            best = size, {"column": column["name"], **described}, row
    if best is None:
        return None
    size, entry, row = best
    with torch.no_grad():
        outcome = trial.outcome(trial.with_features(row[None])[0])
    return {"changes": [entry], "columns": 1, "distance": size, **outcome}


def _steepest_columns(trial: Trial, own: Tensor) -> list[tuple[dict[str, Any], slice]]:
    """The columns whose features have the largest slopes, and where these features are."""
    row = own.clone().requires_grad_()
    (slope,) = torch.autograd.grad(trial.margin(trial.with_features(row[None]))[0], row)
    found = _columns(trial)
    found.sort(key=lambda one: -float(slope[one[1]].abs().max()))
    return found[:COLUMNS]


def _columns(trial: Trial) -> list[tuple[dict[str, Any], slice]]:
    """The user's columns, and where their features are."""
    found, place = [], 0
    for column in trial.explainer.described_columns:
        here = slice(place, place + column["width"])
        place = here.stop
        found.append((column, here))
    return found


def _moved_number(trial: Trial, own: Tensor, place: int) -> tuple[float, Tensor] | None:
    """How far one feature must move, and the features then."""
    moves = REACH * torch.tensor([0.5, -0.5, 1.0, -1.0])  # the nearer ones first
    rows = own.repeat(len(moves), 1)
    rows[:, place] += moves.to(own)
    flips = _flips(trial, rows)
    if not flips:
        return None
    near, far = 0.0, float(moves[flips[0]])
    for _ in range(HALVINGS):
        middle = (near + far) / 2
        row = own.clone()
        row[place] += middle
        near, far = (near, middle) if _flips(trial, row[None]) else (middle, far)
    row = own.clone()
    row[place] += far
    return abs(far), row


def _other_category(trial: Trial, own: Tensor, here: slice) -> tuple[float, Tensor, int] | None:
    width = here.stop - here.start
    present = own[here].nonzero().flatten().tolist()
    others = [number for number in range(width) if number not in present]
    if not others:
        return None
    rows = own.repeat(len(others), 1)
    rows[:, here] = 0
    rows[torch.arange(len(others)), here.start + torch.tensor(others)] = 1
    flips = _flips(trial, rows)
    if not flips:
        return None
    return float((rows[flips[0]] - own).norm()), rows[flips[0]], others[flips[0]]


def _flips(trial: Trial, rows: Tensor) -> list[int]:
    """Which of these features change the prediction."""
    found = []
    with torch.no_grad():
        for start in range(0, len(rows), WORLDS):
            scores = trial.with_features(rows[start : start + WORLDS])
            found += [start + i for i, one in enumerate(scores) if trial.changed(one)]
    return found


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
        near, far = (
            (near, middle) if _flips(trial, (own + middle * change)[None]) else (middle, far)
        )
    change = far * change
    with torch.no_grad():
        scores = trial.with_features((own + change)[None])
    order = change.abs().argsort(descending=True, stable=True)[:LISTED].tolist()
    names = trial.explainer.parts[0].columns.features
    numbers = {here.start: column for column, here in _columns(trial) if column["kind"] == "number"}
    entries: list[dict[str, Any]] = []
    for place in order:
        before, after = float(own[place]), float(own[place] + change[place])
        described: dict[str, Any] = {"from": before, "to": after, "unit": "feature"}
        if place in numbers:
            described = _number_text(numbers[place], before, after)
        if before != after:
            entries.append({"column": names[place], **described})
    return {
        "changes": entries,
        "columns": int((change != 0).sum()),
        "distance": float(change.norm()),
        **trial.outcome(scores[0]),
    }


def _number_text(column: dict[str, Any], before: float, after: float) -> dict[str, Any]:
    """A number in the user's unit; of dates, in standard deviations from the mean."""
    if column["kind"] == "date":
        return {"from": before, "to": after, "unit": "standard deviations"}
    mean, deviation = column["mean"][0], column["deviation"][0]
    return {"from": mean + before * deviation, "to": mean + after * deviation}
