"""A training for a real torchrun: ``-m tests.workers.killed DATA OUT`` loses rank 1 once."""

import sys

from .data import Data
from .trainings import Conditions, Fault, train

if __name__ == "__main__":
    _, data, out = sys.argv
    train(Data(data), out, Conditions((Fault("kill", rank=1, what="gradients", number=8),)))
