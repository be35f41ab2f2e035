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

# What all messages are multiplied by in the worlds whose gradients are averaged; the first is the
# graph as it is.
LEVELS = (1.0, 0.875, 0.625, 0.375, 0.125)
# Of the thorough ranking: the edges that are tried, and the share of them that a round removes.
CANDIDATES, REMOVED = 32, 1 / 8


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
        """The mean size of the score's gradient by each edge, on the way to no messages.

        Unlike a contribution, it is large as well if an edge helps at first and harms later.

        Args:
            task: `"classification"`, `"multilabel"` or `"regression"`.
            choose: Gets the scores [outputs]; gives the number of the output to explain.
        """
        levels = self.embedded.new_tensor(LEVELS)
        mask = levels[:, None].repeat(1, self.field.graph.num_edges).requires_grad_()
        scores = self.scores(mask)
        explained = log_odds(scores, Derivatives(), task, choose(scores[0].detach()))
        (slope,) = torch.autograd.grad(explained.sum(), mask, allow_unused=True)
        return torch.zeros_like(mask[0]) if slope is None else slope.abs().mean(0)

    def thorough_importance(self, importance: Tensor) -> Tensor:
        """Ranks the strongest edges by trying them, and the others by their importance.

        From the strongest edges, those are removed again and again that matter least: without
        them, the probabilities stay nearest to those of all edges. What goes last ranks first.

        Args:
            importance: The importance of the edges, [edges].
        """
        ranked = importance / importance.max().clamp_min(1e-30)
        left = ranked.argsort(descending=True, stable=True)[:CANDIDATES]
        with torch.no_grad():
            full = self.scores(torch.ones_like(importance)[None]).log_softmax(1)
            rank = 1.0
            while len(left) > 1:
                kept = torch.zeros(len(left), len(importance)).to(importance)
                kept[:, left] = 1
                kept[torch.arange(len(left)), left] = 0
                found = self.scores(kept).log_softmax(1)
                loss = (full.exp() * (full - found)).sum(1)
                order = loss.argsort(stable=True)
                gone = max(1, int(len(left) * REMOVED))
                for place in order[:gone].tolist():
                    rank += 1
                    ranked[left[place]] = rank
                left = left[order[gone:].sort().values]
            ranked[left] = rank + 1
        return ranked
