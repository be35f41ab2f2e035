"""What each node, edge and feature adds to a score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lgcn.explain.neighbourhood import Neighbourhood, neighbourhood, num_hops
from lgcn.explain.parts import Fixed, Part
from lgcn.explain.secant import secant, softmax
from lgcn.explain.worlds import Chosen, Worlds, embed
from lgcn.ops.structure import csr_parts
from lgcn.training.portfolio.ensemble import TINY

# World 0 is what is. In world 1 all features are zero, in world 2 no messages are sent.
NO_FEATURES, NO_EDGES, WORLDS = 1, 2, 3


@dataclass(frozen=True, eq=False)
class Share:
    """What one network of a model adds to a score, through its neighbourhood.

    Args:
        part: The network.
        field: The neighbourhood.
        chosen: What its LGCLs selected for the root.
        places: What each place of the LGCLs' grids adds, own values first, [positions, features].
        by_node: What the features of each node add, [nodes].
        by_edge: What each entry of the adjacency adds, [entries].
        slope: By which the features' linear map was multiplied, [nodes, width].
    """

    part: Part
    field: Neighbourhood
    chosen: list[Chosen]
    places: list[Tensor]
    by_node: Tensor
    by_edge: Tensor
    slope: Tensor

    def by_feature(self, rows: Tensor | None = None) -> Tensor:
        """What each feature adds, over all nodes or over some, [features]."""
        return feature_contributions(self.part.model, self.field.graph.features(), self.slope, rows)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What adds up to a score.

    Args:
        scores: Of all outputs in all worlds, [worlds, outputs].
        explained: The explained number in each world, [worlds].
        shares: One per network.
    """

    scores: Tensor
    explained: Tensor
    shares: list[Share]


def contributions(
    parts: Sequence[Part],
    fixed: Sequence[Fixed],
    node: int,
    *,
    task: str,
    averaged: bool,
    choose: Any,
) -> Contributions:
    """Computes the contributions to an output of one node.

    Args:
        parts: The networks.
        fixed: The models whose predictions stay as they are.
        node: The node.
        task: `"classification"`, `"multilabel"` or `"regression"`.
        averaged: Whether the outputs are those of an ensemble.
        choose: Gets the scores of world 0, [outputs]; gives the factors of the outputs in what is
            explained, [outputs].
    """
    runs = [_run(part, node) for part in parts]
    outputs = [scores for scores, *_ in runs]
    if averaged:
        kept = [(one.weight, one.predictions[node]) for one in fixed]
        shares = [(part.weight, part.temperature) for part in parts]
        scores = _average(outputs, shares, kept, task)
    else:
        scores = outputs[0]
    factors = choose(scores[0].detach())
    explained = scores @ factors.to(scores)
    leaves = [leaf for _, _, z, mask, grids in runs for leaf in (z, mask, *grids)]
    slopes = iter(torch.autograd.grad(explained[1:].sum(), leaves, allow_unused=True))
    found = []
    for part, (_, worlds, z, mask, grids) in zip(parts, runs, strict=True):
        of_z, of_mask = (_or_zero(next(slopes), leaf) for leaf in (z, mask))
        slope = of_z[NO_FEATURES]
        change = (z[0] - z[NO_FEATURES]).detach()
        places = []
        for grid in grids:
            of_grid = _or_zero(next(slopes), grid)[NO_FEATURES, 0]
            places.append(of_grid * (grid[0, 0] - grid[NO_FEATURES, 0]).detach())
        found.append(
            Share(
                part,
                worlds.field,
                worlds.chosen,
                places,
                (slope * change).sum(1),
                of_mask[NO_EDGES],
                slope,
            )
        )
    return Contributions(scores.detach(), explained.detach(), found)


def feature_contributions(
    model: Any, x: Tensor, slope: Tensor, rows: Tensor | None = None
) -> Tensor:
    """What each feature adds, [features].

    Args:
        model: The network.
        x: The features of the nodes.
        slope: See `Share`.
        rows: The nodes to add up. (default: all)
    """
    layer = model.first_layer
    weight: Tensor = (layer.weight * layer.scale).detach()
    if x.layout == torch.sparse_csr:
        rowptr, col, values = csr_parts(x)
        row = torch.arange(len(slope)).repeat_interleave(rowptr.diff().long())
        if rows is not None:
            kept = torch.zeros(len(slope), dtype=torch.bool).index_fill_(0, rows, True)[row]
            row, col, values = row[kept], col[kept], values[kept]
        added = values.to(slope) * (slope[row] * weight[col.long()]).sum(1)
        return slope.new_zeros(len(weight)).index_add_(0, col.long(), added)
    if rows is not None:
        x, slope = x[rows], slope[rows]
    # Summing over the nodes first makes a matrix of the weight's size.
    return ((x.to(slope).t() @ slope) * weight).sum(1)


def _run(part: Part, node: int) -> tuple[Tensor, Worlds, Tensor, Tensor, list[Tensor]]:
    field = neighbourhood(part.graph, torch.tensor([node]), num_hops(part.model))
    with torch.no_grad():
        made, empty = embed(part.model, field.graph.features())
    z = torch.stack([made, empty, made]).requires_grad_()
    mask = z.new_ones(WORLDS, field.graph.num_edges).index_fill_(0, torch.tensor([NO_EDGES]), 0)
    worlds = Worlds(field, mask.requires_grad_(), part.statistics(node))
    scores = worlds.scores(part.model, z)[:, 0]
    return scores, worlds, z, mask, worlds.grids


def _average(
    outputs: Sequence[Tensor],
    shares: Sequence[tuple[float, float]],
    fixed: Sequence[tuple[float, Tensor]],
    task: str,
) -> Tensor:
    """The scores of an ensemble, see `lgcn.training.portfolio.ensemble.Ensemble`."""
    total = outputs[0].new_zeros(outputs[0].shape, dtype=torch.double)
    for scores, (weight, temperature) in zip(outputs, shares, strict=True):
        scores = scores.double()
        if task == "classification":
            scores = softmax(scores / temperature)
        elif task == "multilabel":
            scores = secant(torch.sigmoid, scores / temperature)
        total = total + weight * scores
    for weight, predictions in fixed:
        total = total + weight * predictions.to(total)
    if task == "regression":
        return total
    return secant(_logit if task == "multilabel" else _log, total)


def _log(p: Tensor) -> Tensor:
    return p.clamp_min(TINY).log()


def _logit(p: Tensor) -> Tensor:
    return torch.logit(p, eps=TINY)


def _or_zero(slope: Tensor | None, leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if slope is None else slope
