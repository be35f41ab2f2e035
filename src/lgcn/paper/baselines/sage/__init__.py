"""GraphSAGE (Hamilton et al., 2017)."""

from typing import Literal, get_args

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model

Aggregator = Literal["gcn", "mean", "pool", "lstm"]
AGGREGATORS: tuple[str, ...] = get_args(Aggregator)


class SAGESettings(ModelSettings):
    """See `lgcn.paper.baselines.sage.network.GraphSAGE`."""

    hidden_channels: Int = Field(256, ge=1, description="width of the layers")
    dropout: Rate = Field(0.0, description="dropout rate of each layer's input")
    aggregator: Aggregator = Field("mean", description="how a layer combines the neighbours")


register_model("sage", f"{__name__}.network:GraphSAGE", SAGESettings, preset="sage")
for _name, _cost in (("GCN", 1), ("mean", 1), ("pool", 10), ("LSTM", 20)):
    _settings = {"preset": "sage", "aggregator": _name.lower()}
    register_system(f"sage-{_name.lower()}", System(f"GraphSAGE-{_name}", _settings, cost=_cost))
