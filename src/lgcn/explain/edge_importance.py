"""Which edges to keep if only a few may stay: a ranking, where contributions are amounts."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lgcn.explain.contributions import log_odds
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.parts import Part
from lgcn.explain.secant import Derivatives
from lgcn.explain.worlds import Worlds, embed
from lgcn.ops.reference import row_of_entry

# What all messages are multiplied by in the worlds whose gradients are averaged; the first is the
# graph as it is.
LEVELS = (1.0, 0.6, 0.2)
# Of the thorough ranking: the edges that are tried, and the share of them that a round removes.
CANDIDATES, REMOVED = 16, 1 / 8
# How much it counts that the prediction is lost without the edges, beside that it stays with them
# alone, and up to which distance of the probabilities.
NEEDED, ENOUGH = 0.3, 3.0


class MaskedEdges:
    """Computes a node's scores with messages multiplied by masks; LGCLs select anew each time.

    Args:
        part: The network.
        field: The neighbourhood of the node.
        node: The node.
    """

    def __init__(self, part: Part, field: Neighbourhood, node: int) -> None:
        self.part, self.field, self.statistics = part, field, part.statistics(node)
        with torch.no_grad():
            self.embedded, _ = embed(part.model, field.graph.features())

    def scores(self, masks: Tensor) -> Tensor:
        """The scores of the node, [masks, edges] to [masks, outputs]."""
        worlds = Worlds(self.field, Derivatives(), masks, self.statistics, reselect=True)
        embedded = self.embedded.expand(len(masks), -1, -1)
        return worlds.scores(self.part.model, embedded)[:, 0]

    def importance(self, task: str, choose: Callable[[Tensor], int]) -> Tensor:
        """How much the score depends on each edge, and how near the edge is.

        It is the mean size of the score's gradient on the way from all messages to none, which is
        large as well if an edge helps at first and harms later; times the flow through the edge of
        a random walk from the node. Gradients alone overrate edges that are far away: their
        messages count only as long as those on the way to the node are there.

        Args:
            task: `"classification"`, `"multilabel"` or `"regression"`.
            choose: Gets the scores [outputs]; gives the number of the output to explain.
        """
        levels = self.embedded.new_tensor(LEVELS)
        mask = levels[:, None].repeat(1, self.field.graph.num_edges).requires_grad_()
        scores = self.scores(mask)
        explained = log_odds(scores, Derivatives(), task, choose(scores[0].detach()))
        (slope,) = torch.autograd.grad(explained.sum(), mask, allow_unused=True)
        size = torch.zeros_like(mask[0]) if slope is None else slope.abs().mean(0)
        return size * walk_flow(self.field).to(size)

    def thorough_importance(self, importance: Tensor) -> Tensor:
        """Ranks the strongest edges by trying them, and the others by their importance.

        From the strongest edges, those are removed again and again without which the probabilities
        of the kept edges stay nearest to those of all edges, and those of the other edges stay
        furthest away. What is removed last ranks first.

        Args:
            importance: The importance of the edges, [edges].
        """
        if not len(importance):
            return importance
        ranked = importance / importance.max().clamp_min(1e-30)
        left = ranked.argsort(descending=True, stable=True)[:CANDIDATES]
        removed: list[Tensor] = []
        with torch.no_grad():
            full = self.scores(torch.ones_like(ranked)[None]).log_softmax(1)
            while len(left):
                kept = torch.zeros_like(ranked).repeat(len(left), 1)
                kept[:, left] = 1
                kept[torch.arange(len(left)), left] = 0
                found = self.scores(torch.cat([kept, 1 - kept])).log_softmax(1)
                distance = (full.exp() * (full - found)).sum(1).clamp(max=ENOUGH)
                with_them, without_them = torch.split(distance, len(left))
                order = (with_them - NEEDED * without_them).argsort(stable=True)
                count = max(1, int(REMOVED * len(left)))
                removed.append(left[order[:count]])
                left = left[order[count:]]
        for place, edge in enumerate(torch.cat(removed).tolist()):
            ranked[edge] = 2 + place
        return ranked


def walk_flow(field: Neighbourhood) -> Tensor:
    """How often a random walk from the root, as long as the network sees, takes each edge.

    The walk goes against the edges, from a node to one that sends it messages; [edges].
    """
    graph = field.graph
    row, col = row_of_entry(graph.rowptr), graph.col
    chance = 1 / graph.rowptr.diff().clamp(min=1)
    here = torch.zeros(graph.num_nodes)
    here[0] = 1
    total = torch.zeros(graph.num_edges)
    for _ in range(field.hops):
        flow = (here * chance)[row]
        total += flow
        here = torch.zeros_like(here).index_add_(0, col, flow)
    return total
