"""GAT (Velickovic et al., 2018)."""

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model


class GATSettings(ModelSettings):
    """See `lgcn.paper.baselines.gat.network.GAT`."""

    hidden_channels: Int = Field(8, ge=1, description="width of each attention head")
    heads: Int = Field(8, ge=1, description="attention heads of all layers but the last")
    out_heads: Int = Field(1, ge=1, description="attention heads of the last layer")
    dropout: Rate = Field(0.6, description="dropout rate of each layer's input")
    adj_dropout: Rate = Field(0.6, description="dropout rate of the attention coefficients")


register_model("gat", f"{__name__}.network:GAT", GATSettings, preset="gat")
register_system("gat", System("GAT", {"preset": "gat"}, cost=8))
