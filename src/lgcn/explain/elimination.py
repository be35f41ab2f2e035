"""Which few edges a prediction needs: what remains if the others are taken away one after another.

Contributions add up to the score, but removing the edges that add least, all at once, may change a
prediction: edges work together. Here edges are removed in rounds, and after each round the network
says which of the rest it can do without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.explain.contributions import Share
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.secant import Differences
from lgcn.explain.worlds import Worlds, embed

if TYPE_CHECKING:
    from lgcn.explain.explainer import NodeExplainer

CANDIDATES = 32  # edges of the largest contributions, which are tried
REMOVED = 8  # of the edges that are left, every so manieth is removed in a round; at least one


def important_edges(explainer: NodeExplainer, node: int) -> tuple[Neighbourhood, Tensor]:
    """Ranks the edges of a node's neighbourhood by how much the prediction needs them.

    The edges with the largest contributions are kept and the others removed; then, round after
    round, those go whose removal leaves the class probabilities nearest to what they were. What
    goes last is most important. Messages are removed; degrees stay those of the whole graph.

    Args:
        explainer: Of one network, not of an ensemble.
        node: The node number.

    Returns:
        The neighbourhood, and the importance of each entry of its adjacency: from 1 on for edges
        that were tried, below 1 for the others, by the size of their contribution.
    """
    if len(explainer.parts) != 1 or explainer.spec.task != "classification":
        raise UsageError("important edges are those of one network that predicts classes")
    (share,) = explainer.contributions(node).shares
    size = share.by_edge.abs().float()
    importance = 0.99 * size / size.max().clamp(min=1e-30)
    left = size.argsort(descending=True, stable=True)[:CANDIDATES]
    with torch.no_grad():
        embedded, _ = embed(share.part.model, share.field.graph.features())
        full = _chances(share, embedded, node, torch.ones(1, len(size)))
        rank = 1
        while len(left) > 1:
            masks = torch.zeros(len(left), len(size))
            masks[:, left] = 1
            masks[torch.arange(len(left)), left] = 0
            chances = _chances(share, embedded, node, masks)
            harm = (full * (full / chances).log()).sum(1)
            gone = harm.argsort(stable=True)[: max(1, len(left) // REMOVED)]
            importance[left[gone]] = torch.arange(rank, rank + len(gone)).float()
            rank += len(gone)
            rest = torch.ones(len(left), dtype=torch.bool)
            rest[gone] = False
            left = left[rest]
        importance[left] = float(rank)
    return share.field, importance


def _chances(share: Share, embedded: Tensor, node: int, masks: Tensor) -> Tensor:
    """The class probabilities of the node with masked edges, [masks, classes]."""
    ordinary = Differences(torch.arange(len(masks)))  # no world is compared with another
    statistics = share.part.statistics(node)
    worlds = Worlds(share.field, ordinary, masks.to(embedded), statistics, reselect=True)
    scores = worlds.scores(share.part.model, embedded.expand(len(masks), -1, -1))[:, 0]
    return scores.double().softmax(1).clamp(min=1e-12)
