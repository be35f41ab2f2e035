"""The paper's comparison: the systems, presets and experiments behind its tables and figure.

Importing this package registers its models and presets with :mod:`lgcn.training`; nothing else in
``lgcn`` imports it but the command line's ``__main__``.

What ``lgcn reproduce`` does: :mod:`plans` says which :mod:`jobs` a table needs, :mod:`runner` runs
those that have no record yet, :mod:`tables` makes tables of the records, and :mod:`render` and
:mod:`charts` write them as files.
"""

from lgcn.paper import baselines as baselines
from lgcn.training.presets import register_presets

register_presets("lgcn.paper.presets")
