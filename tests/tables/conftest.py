"""The same empty data folders as the tests of data sets."""

from ..datasets.conftest import cache

__all__ = ["cache"]
