"""MLP, which ignores the edges."""

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings
from lgcn.training.models import register_model


class MLPSettings(ModelSettings):
    """See `lgcn.paper.baselines.mlp.network.MLP`."""

    hidden_channels: Int = Field(16, ge=1, description="width of the hidden layers")


register_model("mlp", f"{__name__}.network:MLP", MLPSettings, preset="mlp")
register_system("mlp", System("MLP", {"preset": "mlp"}))
