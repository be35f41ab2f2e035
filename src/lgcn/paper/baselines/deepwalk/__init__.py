"""DeepWalk (Perozzi et al., 2014)."""

from lgcn.paper.systems import System, register_system

register_system(
    "deepwalk",
    System(
        "DeepWalk",
        on={"pubmed": {"walks_per_node": 20}},
        function=f"{__name__}.training:train_deepwalk",
        needs="gensim",
        cost=30,
        quick={"max_epochs": 1, "length": 10, "dimensions": 8},
    ),
)
