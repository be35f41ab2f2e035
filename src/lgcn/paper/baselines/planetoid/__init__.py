"""Planetoid-T (Yang et al., 2016)."""

from lgcn.paper.systems import System, register_system

register_system(
    "planetoid", System("Planetoid", function=f"{__name__}.training:train_planetoid", cost=30)
)
