"""Reports of trained models, and comparisons of them: HTML files that need no network."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.report.write import write_report

__all__ = ["write_report"]

_HOME = {"write_report": "lgcn.report.write"}
__getattr__ = lazy_names(__name__, _HOME)
