"""Names of a package that are imported when they are first used.

torch and PyG take seconds to import. `lgcn --help`, and the report of a mistake, should not.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, home: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package.

    Args:
        package: The package's own name.
        home: The module of every name.
    """

    def getattr_(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(home[name]), name)

    return getattr_
