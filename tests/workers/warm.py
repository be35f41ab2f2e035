"""A training in the fork server of the tests, so that its forks find the kernels compiled."""

import tempfile
import warnings
from pathlib import Path

import numba
import torch

from lgcn.partition import open_partition
from lgcn.training import Settings, train

from .data import SETTINGS, parts_of, small_graph

# One thread: a fork keeps no others.
torch.set_num_threads(1)
numba.set_num_threads(1)

with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
    warnings.simplefilter("ignore")
    parts = open_partition(parts_of(small_graph(), Path(folder)).path)
    train(parts, Settings.create(dataset="partition", **{**SETTINGS, "max_epochs": 1}))
