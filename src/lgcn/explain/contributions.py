"""What each node, edge and feature adds to a score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numba
import torch
from torch import Tensor

from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.parts import Fixed, Part
from lgcn.explain.secant import Differences
from lgcn.explain.worlds import Chosen, Worlds, embed
from lgcn.graph.csr import take_rows
from lgcn.ops.structure import csr_parts
from lgcn.training.portfolio.ensemble import TINY

# World 0 is what is. In world 1 all features are zero. In the others, messages between nodes are
# multiplied by factors from below 1 down to 0; each is compared with the one before.
NO_FEATURES, NO_EDGES = 1, -1
SMALL = 50_000  # edges of a neighbourhood
FACTORS = (0.75, 0.5, 0.25, 0.0)
REFERENCE = (0, 0, 0, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class Share:
    """What one network of a model adds to a score, through its neighbourhood.

    Args:
        part: The network.
        field: The neighbourhood.
        chosen: What its LGCLs selected.
        places: What each place of the LGCLs' grids adds, own values first,
            [roots, positions, features].
        read: What the read-outs selected.
        read_places: What each place of their grids adds, [1, k, features].
        by_node: What the features of each node add, [nodes].
        by_edge: What each entry of the adjacency adds, [entries].
        slope: By which the features' linear map was multiplied, [nodes, width].
    """

    part: Part
    field: Neighbourhood
    chosen: list[Chosen]
    places: list[Tensor]
    read: list[Chosen]
    read_places: list[Tensor]
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
    temperature: float,
    choose: Any,
) -> Contributions:
    """Computes the contributions to an output of one node, or of one whole graph.

    Args:
        parts: The networks.
        fixed: The models whose predictions stay as they are.
        node: The node; the graph if the networks are of whole graphs.
        task: `"classification"`, `"multilabel"` or `"regression"`.
        averaged: Whether the outputs are those of an ensemble.
        temperature: The softmax temperature of the outputs.
        choose: Gets the scores of world 0, [outputs]; gives the number of the output to explain,
            and of one to compare it with, or `None`.
    """
    fields = [part.field(node) for part in parts]
    with threads_for(fields):
        return _contributions(
            parts,
            fields,
            fixed,
            node,
            task,
            averaged=averaged,
            temperature=temperature,
            choose=choose,
        )


@contextmanager
def threads_for(fields: Sequence[Neighbourhood]) -> Iterator[None]:
    """One thread for small neighbourhoods: more would take longer to wake than it lasts."""
    if max(field.graph.num_edges for field in fields) >= SMALL:
        yield
        return
    before, kernels = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(1)
    numba.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        numba.set_num_threads(kernels)


def _contributions(
    parts: Sequence[Part],
    fields: Sequence[Neighbourhood],
    fixed: Sequence[Fixed],
    node: int,
    task: str,
    *,
    averaged: bool,
    temperature: float,
    choose: Any,
) -> Contributions:
    differences = Differences(torch.tensor(REFERENCE))
    runs = [_run(*one, differences) for one in zip(parts, fields, strict=True)]
    outputs = [scores for scores, *_ in runs]
    scores = joined_scores(
        outputs,
        parts,
        fixed,
        node,
        differences,
        task=task,
        averaged=averaged,
        temperature=temperature,
    )
    explained = log_odds(scores, differences, task, *choose(scores[0].detach()))
    leaves = [leaf for _, _, z, mask, grids in runs for leaf in (z, mask, *grids)]
    slopes = iter(torch.autograd.grad(explained[1:].sum(), leaves, allow_unused=True))
    found = []
    for part, (_, worlds, z, mask, grids) in zip(parts, runs, strict=True):
        of_z, of_mask = (_or_zero(next(slopes), leaf) for leaf in (z, mask))
        slope = of_z[NO_FEATURES]
        change = (z[0] - z[NO_FEATURES]).detach()
        roots = worlds.field.reach[0]
        places = []
        for grid in grids:
            of_grid = _or_zero(next(slopes), grid)[NO_FEATURES, :roots]
            places.append(of_grid * (grid[0, :roots] - grid[NO_FEATURES, :roots]).detach())
        found.append(
            Share(
                part,
                worlds.field,
                worlds.chosen,
                places[: len(worlds.grids)],
                worlds.read,
                places[len(worlds.grids) :],
                (slope * change).sum(1),
                of_mask[2:].mean(0),  # each factor is as far from the next
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
    weight: Tensor = model.first_layer.linear_map()[0].detach()
    if rows is not None:
        x, slope = take_rows(x, rows), slope[rows]
    if x.layout == torch.sparse_csr:
        rowptr, col, values = csr_parts(x)
        row = torch.arange(len(slope)).repeat_interleave(rowptr.diff().long())
        added = values.to(slope) * (slope[row] * weight[col.long()]).sum(1)
        return slope.new_zeros(len(weight)).index_add_(0, col.long(), added)
    if len(x) == 1:
        return x[0].to(slope) * (weight @ slope[0])
    # Summing over the nodes first makes a matrix of the weight's size.
    return ((x.to(slope).t() @ slope) * weight).sum(1)


def _run(
    part: Part, field: Neighbourhood, differences: Differences
) -> tuple[Tensor, Worlds, Tensor, Tensor, list[Tensor]]:
    with torch.no_grad():
        made, empty = embed(part.model, field.graph.features())
    z = torch.stack([made, empty] + [made] * len(FACTORS)).requires_grad_()
    factors = torch.tensor([1.0, 1.0, *FACTORS], dtype=z.dtype)
    mask = factors[:, None].repeat(1, field.graph.num_edges).requires_grad_()
    worlds = Worlds(field, differences, mask, part.statistics(int(field.nodes[0])))
    scores = worlds.scores(part.model, z)[:, 0]
    return scores, worlds, z, mask, [*worlds.grids, *worlds.read_grids]


def log_odds(
    scores: Tensor, differences: Differences, task: str, target: int, against: int | None = None
) -> Tensor:
    """The log odds of a class against all others, or one other; the score if there is no other."""
    if against is not None:
        return scores[:, target] - scores[:, against]
    if task != "classification" or scores.size(1) == 1:
        return scores[:, target]
    others = [number for number in range(scores.size(1)) if number != target]
    return scores[:, target] - differences.log_sum_exp(scores[:, others]).squeeze(1)


def joined_scores(
    outputs: Sequence[Tensor],
    parts: Sequence[Part],
    fixed: Sequence[Fixed],
    node: int,
    differences: Differences,
    *,
    task: str,
    averaged: bool,
    temperature: float,
) -> Tensor:
    """The scores that the predictions are made of, at their temperature.

    Args:
        outputs: Those of each network, [worlds, outputs].
        parts, fixed, node, task, averaged, temperature: See `contributions`.
        differences: Which worlds are compared.
    """
    if averaged:
        kept = [(one.weight, one.predictions[node]) for one in fixed]
        shares = [(part.weight, part.temperature) for part in parts]
        scores = _average(outputs, shares, kept, task, differences)
    else:
        scores = outputs[0].double()
    if task == "regression":
        return scores
    return scores / temperature


def _average(
    outputs: Sequence[Tensor],
    shares: Sequence[tuple[float, float]],
    fixed: Sequence[tuple[float, Tensor]],
    task: str,
    differences: Differences,
) -> Tensor:
    """The scores of an ensemble, see `lgcn.training.portfolio.ensemble.Ensemble`."""
    total = outputs[0].new_zeros(outputs[0].shape, dtype=torch.double)
    for scores, (weight, temperature) in zip(outputs, shares, strict=True):
        scores = scores.double()
        if task == "classification":
            scores = differences.softmax(scores / temperature)
        elif task == "multilabel":
            scores = differences.secant(torch.sigmoid, scores / temperature)
        total = total + weight * scores
    for weight, predictions in fixed:
        total = total + weight * predictions.to(total)
    if task == "regression":
        return total
    return differences.secant(_logit if task == "multilabel" else _log, total)


def _log(p: Tensor) -> Tensor:
    return p.clamp_min(TINY).log()


def _logit(p: Tensor) -> Tensor:
    return torch.logit(p, eps=TINY)


def _or_zero(slope: Tensor | None, leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if slope is None else slope
