"""Predictions without a model, to judge scores of several labels per node by."""

from lgcn.paper.systems import System, register_system

for _name, _title, _function in (
    ("zeros", "all zeros", "predict_nothing"),
    ("lookup", "look-up of the gene", "look_up_genes"),
):
    _place = f"{__name__}.predictions:{_function}"
    register_system(_name, System(_title, function=_place, random=False, cost=0.1, quick={}))
