"""GCNII (Chen et al., 2020)."""

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS


class GCNIISettings(ModelSettings):
    """See `lgcn.paper.baselines.gcnii.network.GCNII`."""

    hidden_channels: Int = Field(64, ge=1, description="width of all layers")
    num_layers: int = Field(
        9, ge=1, le=MAX_PARTS, description="number of layers between the linear maps"
    )
    alpha: Rate = Field(0.5, description="share of the first layer in each layer")
    theta: float = Field(1.0, ge=0, description="strength of the layers' linear maps")
    dropout: Rate = Field(0.2, description="dropout rate of each layer's input")


register_model("gcnii", f"{__name__}.network:GCNII", GCNIISettings, preset="gcnii")
register_system("gcnii", System("GCNII", {"preset": "gcnii"}, cost=10))
