"""Chebyshev filters (Defferrard et al., 2016), as the GCN paper compares with them."""

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS


class ChebyshevSettings(ModelSettings):
    """See `lgcn.paper.baselines.chebyshev.network.ChebNet`."""

    hidden_channels: Int = Field(16, ge=1, description="width of the hidden layers")
    order: int = Field(2, ge=0, le=MAX_PARTS, description="highest degree of the polynomials")


register_model("chebyshev", f"{__name__}.network:ChebNet", ChebyshevSettings, preset="chebyshev")
register_system("chebyshev", System("Chebyshev", {"preset": "chebyshev"}, cost=2))
