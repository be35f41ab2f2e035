"""The training loop with its settings, scores and checkpoints."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lgcn.training.evaluation import evaluate
    from lgcn.training.loop import Result, train
    from lgcn.training.run_folder import ModelSpec, Run
    from lgcn.training.settings import Settings
    from lgcn.training.state import State

__all__ = ["ModelSpec", "Result", "Run", "Settings", "State", "evaluate", "train"]

# Imported when first used: settings and run folders are checked before torch is imported.
_HOME = {
    "ModelSpec": "lgcn.training.run_folder",
    "Result": "lgcn.training.loop",
    "Run": "lgcn.training.run_folder",
    "Settings": "lgcn.training.settings",
    "State": "lgcn.training.state",
    "evaluate": "lgcn.training.evaluation",
    "train": "lgcn.training.loop",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lgcn.training' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
