"""The baseline of the fair comparison of Errica et al. (2020) that never sees an edge."""

from typing import Literal, get_args

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS

Variant = Literal["fingerprint", "multiset"]
VARIANTS: tuple[str, ...] = get_args(Variant)


class StructureBlindSettings(ModelSettings):
    """See `lgcn.paper.baselines.structure_blind.network.StructureBlind`."""

    hidden_channels: Int = Field(128, ge=1, description="width of all layers")
    num_layers: int = Field(
        1,
        ge=1,
        le=MAX_PARTS,
        description="layers before the sum over the nodes, with variant=multiset",
    )
    dropout: Rate = Field(0.0, description="dropout rate of the classifier's hidden features")
    variant: Variant = Field(
        "multiset", description="what is summed over the nodes: features, or layers' outputs"
    )


register_model(
    "structure_blind",
    f"{__name__}.network:StructureBlind",
    StructureBlindSettings,
    preset="structure_blind",
    for_graphs=True,
)
register_system(
    "structure_blind", System("structure-blind baseline", {"preset": "structure_blind"})
)
