"""The best model for the time you have: several trainings, and an average of the best.

`members` lists what is tried, `variations` what follows once all of that is done, `trainer` trains
one after the other, `selection` chooses the ensemble on validation nodes, `ensemble` is the model
that comes out, and `ensemble_file` what a run folder keeps of it.
"""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.training.portfolio.ensemble import Ensemble
    from lgcn.training.portfolio.entries import Entry
    from lgcn.training.portfolio.trainer import (
        PortfolioResult,
        train_as_asked,
        train_portfolio,
    )

__all__ = ["Ensemble", "Entry", "PortfolioResult", "train_as_asked", "train_portfolio"]

_HOME = {
    "Ensemble": "lgcn.training.portfolio.ensemble",
    "Entry": "lgcn.training.portfolio.entries",
    "PortfolioResult": "lgcn.training.portfolio.trainer",
    "train_as_asked": "lgcn.training.portfolio.trainer",
    "train_portfolio": "lgcn.training.portfolio.trainer",
}
__getattr__ = lazy_names(__name__, _HOME)
