"""The baselines that the LGCN is compared with, one folder each.

``gat/__init__.py`` has the settings of GAT and its row in the tables (`lgcn.paper.systems`),
``gat/network.py`` its network. Settings are read without torch, which takes seconds to import, so
that a wrong one is reported at once. Networks import torch.

Importing `lgcn.paper` imports all folders here. To add a baseline, add a folder and its preset
in ``lgcn/paper/presets``.
"""

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    if _module.ispkg:
        import_module(f"{__name__}.{_module.name}")
