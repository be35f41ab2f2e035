"""Processes that work together: who they are, what they tell each other, and how long they wait."""

from lgcn.workers.group import Workers, connected
from lgcn.workers.together import together

__all__ = ["Workers", "connected", "together"]
