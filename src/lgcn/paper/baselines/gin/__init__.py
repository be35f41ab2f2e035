"""GIN (Xu et al., 2019), as the fair comparison of Errica et al. (2020) runs it."""

from typing import Literal, get_args

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS

Readout = Literal["sum", "mean"]
READOUTS: tuple[str, ...] = get_args(Readout)


class GINSettings(ModelSettings):
    """See `lgcn.paper.baselines.gin.network.GIN`."""

    hidden_channels: Int = Field(64, ge=1, description="width of all layers")
    num_layers: int = Field(4, ge=1, le=MAX_PARTS, description="number of layers GINConv")
    dropout: Rate = Field(0.5, description="dropout rate of each layer's scores")
    train_eps: bool = Field(True, description="learn the weight of a node among its neighbours")
    readout: Readout = Field("sum", description="from nodes to the graph")


register_model("gin", f"{__name__}.network:GIN", GINSettings, preset="gin", for_graphs=True)
register_system("gin", System("GIN", {"preset": "gin"}, cost=4))
