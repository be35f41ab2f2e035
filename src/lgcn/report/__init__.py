"""Reports of trained models, and comparisons of them: HTML files that need no network."""

from typing import TYPE_CHECKING

from lgcn.utils.lazy import lazy_names

if TYPE_CHECKING:
    from lgcn.report.write import write_comparison, write_report

__all__ = ["write_comparison", "write_report"]

# Imported when first used: torch and the charts take seconds.
_HOME = dict.fromkeys(__all__, "lgcn.report.write")
__getattr__ = lazy_names(__name__, _HOME)
