"""Numbers of a graph by which settings are chosen: degrees, feature lengths, labels, agreement."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from lgcn.graph.graph import Graph
from lgcn.utils.row_blocks import row_blocks_within

SAMPLED_ROWS = 1_000_000
SAMPLED_FEATURES = 10_000
ENTRIES_AT_ONCE = 1 << 22
TARGET_CLASSES = 10  # a regression counts as so many classes


def suggest_k(graph: Graph) -> int:
    """A k for the degrees of a graph.

    The smallest power of two that holds the neighbours and the node itself of three nodes in four,
    from 8 to 32: on the graphs of `benchmarks/own_defaults.py`, k = 8 and 16 were as good as 64,
    and the cost of a layer grows with k. If the splits are separate graphs, those of training
    count.

    Args:
        graph: The graph to be trained on.
    """
    rowptr = graph.rowptr
    if graph.inductive:
        assert graph.train_mask is not None
        degree = rowptr.diff()[graph.train_mask]
    else:  # of a large graph, rows at equal distances: its arrays may be files
        rows = torch.arange(0, graph.num_nodes, max(1, graph.num_nodes // SAMPLED_ROWS))
        degree = rowptr[rows.to(rowptr.device) + 1] - rowptr[rows.to(rowptr.device)]
    if not len(degree):
        return 8
    wanted = float(np.percentile(degree.cpu().numpy(), 75)) + 1
    return next((k for k in (8, 16) if k >= wanted), 32)


def feature_length(graph: Graph) -> float:
    """The root mean square length of the nodes' feature vectors; 1 if there are none.

    If the splits are separate graphs, those of training count. Of a large graph, nodes at equal
    distances are measured.

    Args:
        graph: The graph to be trained on.
    """
    if graph.x is None:
        return 1.0
    if graph.inductive:
        assert graph.train_mask is not None
        rows = graph.train_mask.nonzero().squeeze(1)
        rows = rows[:: max(1, len(rows) // SAMPLED_FEATURES)]
    else:
        rows = torch.arange(0, graph.num_nodes, max(1, graph.num_nodes // SAMPLED_FEATURES))
    x = graph.features(rows.to(graph.rowptr.device))
    values = (x.values() if x.layout == torch.sparse_csr else x).double()
    length = math.sqrt(float(values.square().sum()) / max(1, x.size(0)))
    if length in (0, math.inf) and values.numel():
        # Squares of very small or large numbers leave the range of numbers; their shares do not.
        largest = float(values.abs().max())
        if 0 < largest < math.inf:
            shares = float((values / largest).square().sum())
            length = largest * math.sqrt(shares / x.size(0))
    # Of float32, whose largest number one over a smaller length would exceed.
    return max(length, torch.finfo(torch.float32).tiny) if length else 1.0


def labels_per_class(graph: Graph) -> float:
    """Training nodes per class on average; 0 if there are none.

    A regression counts as ten classes, one per tenth of the targets.

    Args:
        graph: The graph to be trained on.
    """
    if graph.y is None or graph.train_mask is None:
        return 0.0
    nodes = graph.train_mask.nonzero().squeeze(1)
    if graph.task == "regression":
        return len(nodes) / TARGET_CLASSES
    if graph.num_classes == 0:
        return 0.0
    if graph.y.dim() == 1:
        return len(nodes) / graph.num_classes
    some = nodes[:: max(1, len(nodes) // SAMPLED_FEATURES)]  # of a large graph
    labels = graph.y[some.to(graph.y.device)].sum() / max(1, len(some))
    return float(labels) * len(nodes) / graph.num_classes


class Agreement(NamedTuple):
    """How often neighbours are of one class.

    Args:
        entries: Entries of the adjacency that this is known of.
        alike: Share of them that join nodes of one class; for a regression, the correlation of
            the targets at both ends.
        by_chance: What random edges between the same nodes would give.
    """

    entries: int
    alike: float
    by_chance: float


def neighbour_agreement(graph: Graph) -> Agreement | None:
    """How often training nodes that are neighbours are of one class.

    None if nodes can have several labels, or if there are no edges between training nodes whose
    class is known.

    Args:
        graph: The graph to be trained on.
    """
    mask, y = graph.train_mask, graph.y
    if mask is None or y is None or y.dim() != 1:
        return None
    if graph.task == "regression":
        return _correlation(graph)
    entries = alike = 0
    counts = torch.zeros(0, dtype=torch.long, device=y.device)
    for one, other in _between_training_nodes(graph):
        entries += len(one)
        alike += int((one == other).sum())
        found = torch.bincount(one, minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    if not entries:
        return None
    by_chance = (counts.double() / entries).square().sum()
    return Agreement(entries, alike / entries, float(by_chance))


def _between_training_nodes(graph: Graph) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The labels at both ends of the entries between training nodes, a block of rows at a time."""
    mask, y, rowptr = graph.train_mask, graph.y, graph.rowptr
    assert mask is not None
    assert y is not None
    nodes = mask.nonzero().squeeze(1)
    starts = rowptr[nodes]
    degrees = rowptr[nodes + 1] - starts
    before = torch.cat([degrees.new_zeros(1, dtype=torch.long), degrees.cumsum(0)])
    for begin, end in row_blocks_within(ENTRIES_AT_ONCE, len(nodes), 1, before, 1):
        first, degree = starts[begin:end], degrees[begin:end]
        row = nodes[begin:end].repeat_interleave(degree)
        place = torch.arange(len(row), device=row.device)
        place += (first - degree.cumsum(0) + degree).repeat_interleave(degree)
        col = graph.col[place].long()
        between = mask[col] & (col != row)
        one, other = y[row[between]], y[col[between]]
        known = ~(one.isnan() | other.isnan()) if y.is_floating_point() else (one | other) >= 0
        yield (one, other) if bool(known.all()) else (one[known], other[known])


def _correlation(graph: Graph) -> Agreement | None:
    """Pearson's correlation of the targets of neighbours; 0 if one side is constant."""
    entries, sums = 0, torch.zeros(2, dtype=torch.float64)
    for one, other in _between_training_nodes(graph):
        entries += len(one)
        sums += torch.stack([one.double().sum(), other.double().sum()]).cpu()
    if not entries:
        return None
    means = sums / entries
    product, lengths = 0.0, []
    for one, other in _between_training_nodes(graph):
        ends = one.double() - means[0], other.double() - means[1]
        product += float(ends[0] @ ends[1])
        lengths.append([float(end.norm()) for end in ends])
    length = math.prod(math.hypot(*side) for side in zip(*lengths, strict=True))
    return Agreement(entries, product / length if length > 0 else 0.0, 0.0)
