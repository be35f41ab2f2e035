"""GCN (Kipf and Welling, 2017)."""

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings
from lgcn.training.models import register_model


class GCNSettings(ModelSettings):
    """See `lgcn.paper.baselines.gcn.network.GCN`."""

    hidden_channels: Int = Field(16, ge=1, description="width of the hidden layers")


register_model("gcn", f"{__name__}.network:GCN", GCNSettings, preset="gcn")
register_system("gcn", System("GCN", {"preset": "gcn"}))
