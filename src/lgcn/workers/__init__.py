"""Processes that work together: who they are, what they tell each other, and how long they wait."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.workers.connect import connected
    from lgcn.workers.group import WorkerError, Workers
    from lgcn.workers.in_step import together
    from lgcn.workers.launcher import is_restart, launched

__all__ = ["WorkerError", "Workers", "connected", "is_restart", "launched", "together"]

# torch is imported with what needs it: whether there are several processes is known without.
__getattr__ = lazy_names(
    __name__,
    {
        "connected": "lgcn.workers.connect",
        **dict.fromkeys(("WorkerError", "Workers"), "lgcn.workers.group"),
        **dict.fromkeys(("is_restart", "launched"), "lgcn.workers.launcher"),
        "together": "lgcn.workers.in_step",
    },
)
