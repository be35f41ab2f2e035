"""The training loop with its settings, scores and checkpoints."""

from lgcn.training.checkpoint import ModelSpec, Run
from lgcn.training.config import Config
from lgcn.training.evaluation import evaluate
from lgcn.training.loop import Result, train
from lgcn.training.state import State

__all__ = ["Config", "ModelSpec", "Result", "Run", "State", "evaluate", "train"]
