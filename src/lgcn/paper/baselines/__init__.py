"""The systems that the LGCN is compared with, one package each.

A package registers its system when it is imported: the settings of its network, and its row in the
tables (:mod:`lgcn.paper.systems`). It does not import torch; its ``network`` or ``training`` module
does, when the system is trained. Importing :mod:`lgcn.paper` imports all packages in this folder,
so that a new one needs no entry elsewhere.
"""

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        import_module(f"{__name__}.{_module.name}")
