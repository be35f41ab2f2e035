"""Processes that work together: who they are, what they tell each other, and how long they wait."""

from lgcn.workers.connect import connected
from lgcn.workers.group import WorkerError, Workers

__all__ = ["WorkerError", "Workers", "connected"]
