"""Which edges to keep if only a few may stay: a ranking, where contributions are amounts."""

from __future__ import annotations

import torch
from torch import Tensor

from lgcn.explain.contributions import Share
from lgcn.explain.secant import Differences
from lgcn.explain.worlds import Worlds, embed

CANDIDATES, STEPS = 12, 6
# How much it counts that the prediction is lost without the edges, beside that it stays with them
# alone, and up to which distance of the probabilities.
NEEDED, ENOUGH = 0.3, 3.0


def thorough_importance(share: Share, node: int) -> Tensor:
    """Finds the first few edges by trying them, and ranks the others by their importance.

    Edge by edge, that one is added which brings the probabilities of the kept edges nearest to
    those of all edges, and takes those of the other edges furthest away.

    Args:
        share: The contributions of a network.
        node: The node.
    """
    importance = share.importance / share.importance.max().clamp_min(1e-30)
    order = importance.argsort(descending=True, stable=True)[:CANDIDATES].tolist()
    chosen: list[int] = []
    with torch.no_grad():
        full = _log_probabilities(share, node, torch.ones(1, len(importance)))
        for _ in range(min(STEPS, len(order))):
            kept = torch.zeros(len(order), len(importance))
            kept[:, chosen] = 1
            kept[torch.arange(len(order)), torch.tensor(order)] = 1
            found = _log_probabilities(share, node, torch.cat([kept, 1 - kept]))
            distance = (full.exp() * (full - found)).sum(1)
            with_them, without_them = torch.split(distance, len(order))
            loss = with_them - NEEDED * without_them.clamp(max=ENOUGH)
            chosen.append(order.pop(int(loss.argmin())))
    ranked = importance.clone()
    for place, edge in enumerate(chosen):
        ranked[edge] = 1 + len(chosen) - place
    return ranked


def _log_probabilities(share: Share, node: int, masks: Tensor) -> Tensor:
    """Those of the node, with messages multiplied by masks and selections made anew."""
    model = share.part.model
    made, _ = embed(model, share.field.graph.features())
    ordinary = Differences(torch.arange(len(masks)))
    statistics = share.part.statistics(node)
    worlds = Worlds(share.field, ordinary, masks.to(made), statistics, reselect=True)
    return worlds.scores(model, made.expand(len(masks), -1, -1))[:, 0].log_softmax(1)
