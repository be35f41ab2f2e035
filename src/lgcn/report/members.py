"""What a trained model is made of: one network, or the members of an ensemble with weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lgcn.errors import LGCNError, one_line
from lgcn.report.names import shown_name
from lgcn.training.portfolio.ensemble import Ensemble
from lgcn.training.settings import Settings
from lgcn.utils.visible_text import visible

if TYPE_CHECKING:
    from lgcn.inference.trained_run import TrainedRun

Members = list[tuple[str, float]]  # names and shares, the largest first


def members(run: TrainedRun) -> Members:
    """The members that a model averages, with their shares; none if it is no ensemble."""
    model = run.model()
    return shares(model.parts) if isinstance(model, Ensemble) else []


def shares(parts: Sequence[Any]) -> Members:
    """The names of the parts of an ensemble, and their shares of it."""
    total = sum(part.weight for part in parts)
    found = [(shown_name(part.name), part.weight / total) for part in parts]
    return sorted(found, key=lambda one: -one[1])


def listed(found: Members) -> str:
    """Members in a sentence: `boosting (91 %) and lgcn (9 %)`."""
    texts = [f"{name} ({_share(share)})" for name, share in found]
    return " and ".join([*([", ".join(texts[:-1])] if texts[1:] else []), texts[-1]])


def unexplained(run: TrainedRun) -> str | None:
    """Which members of an ensemble the explanations leave out, in a sentence; `None` if none."""
    from lgcn.explain.worlds import NETWORKS

    model = run.model()
    if not isinstance(model, Ensemble):
        return None
    fixed = {shown_name(part.name) for part in model.parts if not isinstance(part.model, NETWORKS)}
    left = [one for one in shares(model.parts) if one[0] in fixed]
    if not left:
        return None
    names = " and ".join(f"{name}, {_share(share)} of the ensemble," for name, share in left)
    return (
        f"{names} {'is' if len(left) == 1 else 'are'} not explained: the chart is about the rest "
        "of the ensemble alone."
    )


def used_settings(run: TrainedRun) -> tuple[str | None, Settings]:
    """Of a portfolio, what its model is, in a sentence, and the settings that belong to it.

    They are those of the member with the most weight: the portfolio's own say nothing about it.

    Args:
        run: The run. If it is no portfolio, there is no sentence, and the settings are its own.
    """
    try:
        model = run.model()
    except LGCNError as error:
        return f"could not be read: {visible(one_line(error))}.", run.settings
    if not isinstance(model, Ensemble):
        return None, run.settings
    found = shares(model.parts)
    first = max(model.parts, key=lambda part: part.weight)
    settings = run.settings if first.settings is None else first.settings
    if len(found) == 1:
        return f"chose the model {found[0][0]}; below are its settings.", settings
    return (
        f"is an ensemble of {listed(found)}; below are the settings of {found[0][0]}.",
        settings,
    )


def _share(share: float) -> str:
    if 0 < share < 0.01:
        return "less than 1 %"
    return f"{100 * share:.0f} %"


def tried(result: Mapping[str, Any]) -> int:
    """How many members a portfolio tried."""
    board = result.get("leaderboard")
    return len(board) if isinstance(board, list) else 0
