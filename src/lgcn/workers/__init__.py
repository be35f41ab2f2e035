"""Processes that work together: who they are, what they tell each other, and how long they wait."""

from lgcn.workers.group import Workers, connected, is_restart

__all__ = ["Workers", "connected", "is_restart"]
