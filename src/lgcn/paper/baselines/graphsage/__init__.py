"""GraphSAGE for whole graphs, as in the fair comparison of Errica et al. (2020).

The model ``sage`` beside it predicts nodes.
"""

from typing import Literal, get_args

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS

Aggregator = Literal["mean", "max", "sum"]
AGGREGATORS: tuple[str, ...] = get_args(Aggregator)


class GraphSAGESettings(ModelSettings):
    """See `lgcn.paper.baselines.graphsage.network.GraphSAGE`."""

    hidden_channels: Int = Field(64, ge=1, description="width of all layers")
    num_layers: int = Field(3, ge=1, le=MAX_PARTS, description="number of layers SAGEConv")
    dropout: Rate = Field(0.0, description="dropout rate of the classifier's hidden features")
    aggregator: Aggregator = Field("max", description="how a layer combines the neighbours")


register_model(
    "graphsage",
    f"{__name__}.network:GraphSAGE",
    GraphSAGESettings,
    preset="graphsage",
    for_graphs=True,
)
register_system("graphsage", System("GraphSAGE with read-out", {"preset": "graphsage"}, cost=4))
