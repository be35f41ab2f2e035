"""Processes that work together: who they are, what they tell each other, and how long they wait."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.workers.group import Workers, connected
    from lgcn.workers.in_step import together
    from lgcn.workers.launcher import is_restart, launched

__all__ = ["Workers", "connected", "is_restart", "launched", "together"]

# torch is imported with what needs it: whether there are several processes is known without.
__getattr__ = lazy_names(
    __name__,
    {
        **dict.fromkeys(("Workers", "connected"), "lgcn.workers.group"),
        **dict.fromkeys(("is_restart", "launched"), "lgcn.workers.launcher"),
        "together": "lgcn.workers.in_step",
    },
)
