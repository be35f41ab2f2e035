"""PATCHY-SAN (Niepert et al., 2016)."""

from collections.abc import Sequence
from typing import Literal, get_args

from pydantic import Field

from lgcn.paper.systems import System, register_system
from lgcn.training.groups import Int, ModelSettings, Rate
from lgcn.training.models import register_model
from lgcn.utils.limits import MAX_PARTS

Labelling = Literal["betweenness", "degree", "wl"]
LABELLINGS: tuple[str, ...] = get_args(Labelling)
# Fields per graph: the average number of nodes, `average_nodes` of all graphs of a set.
WIDTHS = {
    "COLLAB": 74,
    "DD": 284,
    "ENZYMES": 33,
    "IMDB-BINARY": 20,
    "IMDB-MULTI": 13,
    "MUTAG": 18,
    "NCI1": 30,
    "PROTEINS": 39,
    "REDDIT-BINARY": 430,
}


def average_nodes(sizes: Sequence[int]) -> int:
    """The average number of nodes per graph, rounded, which the paper takes for ``width``.

    Args:
        sizes: Nodes of each graph.
    """
    if not sizes:
        raise ValueError("sizes must have the size of at least one graph, got none")
    return max(1, round(sum(sizes) / len(sizes)))


class PatchySanSettings(ModelSettings):
    """See `lgcn.paper.baselines.patchy_san.network.PatchySan`."""

    hidden_channels: Int = Field(128, ge=1, description="width of the classifier's hidden layer")
    num_layers: int = Field(
        2, ge=1, le=MAX_PARTS, description="number of 1-D convolutions, with that of the fields"
    )
    dropout: Rate = Field(0.5, description="dropout rate of the classifier's hidden features")
    width: Int = Field(30, ge=1, description="receptive fields per graph")
    stride: Int = Field(1, ge=1, description="every how many nodes there is a receptive field")
    field: Int = Field(10, ge=1, description="nodes per receptive field")
    labelling: Labelling = Field("wl", description="what nodes are ranked by")


register_model(
    "patchy_san",
    f"{__name__}.network:PatchySan",
    PatchySanSettings,
    preset="patchy_san",
    for_graphs=True,
)
register_system(
    "patchy_san",
    System(
        "PATCHY-SAN",
        {"preset": "patchy_san"},
        on={name: {"width": width} for name, width in WIDTHS.items()},
        cost=2,
    ),
)
