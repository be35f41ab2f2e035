"""Training: settings, the loop, evaluation, and run folders."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.training.evaluation import evaluate
    from lgcn.training.loop import Result, train
    from lgcn.training.model_spec import ModelSpec
    from lgcn.training.run_folder import Run
    from lgcn.training.settings import Settings
    from lgcn.training.state import State

__all__ = ["ModelSpec", "Result", "Run", "Settings", "State", "evaluate", "train"]

# Imported when first used: settings and run folders are checked before torch is imported.
_HOME = {
    "ModelSpec": "lgcn.training.model_spec",
    "Result": "lgcn.training.loop",
    "Run": "lgcn.training.run_folder",
    "Settings": "lgcn.training.settings",
    "State": "lgcn.training.state",
    "evaluate": "lgcn.training.evaluation",
    "train": "lgcn.training.loop",
}


__getattr__ = lazy_names(__name__, _HOME)
