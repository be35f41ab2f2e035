"""The paper's tables and figure, run and rendered: what ``lgcn reproduce`` does.

Data flow: :mod:`plans` says which :mod:`jobs` a table needs, :mod:`runner` runs those that have no
record yet, :mod:`tables` makes tables of the records, and :mod:`render` and :mod:`charts` write
them as files.
"""
