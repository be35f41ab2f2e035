"""The systems that LGCN is compared with and that train in ways of their own.

Each is a function of a graph and a seed that gives the record of a run, as
:func:`lgcn.training.train` does for the networks in :mod:`lgcn.nn.baselines`.
"""
