"""Runs the networks on a neighbourhood in several worlds at once, see `lgcn.explain.secant`.

It computes what `forward` computes, in evaluation mode, with three differences: the rows of a layer
that no later layer needs are not computed; every message between nodes can be masked; and what the
LGCLs select is decided in world 0 and holds in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Identity, LayerNorm, Module

from lgcn.errors import UsageError
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.secant import Derivatives, Differences, leaky_relu
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.grid_cnn import Activation, GridCNN, GridConv, SharedKernel, grid_convolution
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.lgcn import LGCN
from lgcn.nn.neighbour_layers import Attention, NeighbourLayer, NeighbourMean
from lgcn.nn.residual import ResidualLGCN
from lgcn.nn.rows import AdjacencyOptions
from lgcn.ops import k_largest, spmm
from lgcn.ops.k_largest import k_largest_grid
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import trust

# Mean and variance over all nodes of the graph, of batch norms without running statistics.
Statistics = dict[Module, tuple[Tensor, Tensor]]
NETWORKS = (LGCN, ResidualLGCN)
# Messages of all worlds from which on the kernels of `lgcn.ops` are faster than plain torch, which
# starts faster. They need ordinary gradients.
FUSED_FROM = 5000


@dataclass(frozen=True)
class Chosen:
    """What an LGCL selected.

    Args:
        layer: The LGCL.
        node: The node of each value, [rows, k, features], as a local number; -1 for a zero that
            was filled in.
        value: The values, [rows, k, features].
    """

    layer: LGConv
    node: Tensor
    value: Tensor


class _Entries(NamedTuple):
    """Some rows of an adjacency, entry by entry."""

    rowptr: Tensor
    row: Tensor
    col: Tensor
    weight: Tensor | None
    edge: Tensor  # the number of the edge, -1 for a self-loop, whose message is never masked


class Worlds:
    """Computes a network on a neighbourhood.

    Args:
        field: The neighbourhood, as wide as the network sees.
        differences: Which worlds are compared.
        mask: What messages are multiplied by, [worlds, edges]. (default: all one)
        statistics: Of batch norms that have no running statistics. (default: there are none)
        reselect: Whether LGCLs select in each world anew. (default: `False`, as in world 0)

    Attributes:
        chosen: What the LGCLs selected in world 0, in their order; nothing with fused kernels.
        grids: The grids of the LGCLs, [worlds, rows, positions, features], likewise.
    """

    def __init__(
        self,
        field: Neighbourhood,
        differences: Differences,
        mask: Tensor | None = None,
        statistics: Statistics | None = None,
        reselect: bool = False,
    ) -> None:
        self.field = field
        self.differences = differences
        self.mask = mask
        self.statistics = statistics or {}
        self.reselect = reselect
        self.fused = (
            reselect
            and isinstance(differences, Derivatives)
            and mask is not None
            and mask.numel() >= FUSED_FROM
        )
        self.chosen: list[Chosen] = []
        self.grids: list[Tensor] = []
        self._depth = field.hops
        self._cache: dict[Any, _Entries] = {}

    def scores(self, model: Module, embedded: Tensor) -> Tensor:
        """The scores of the roots, [worlds, roots, classes].

        Args:
            model: The network.
            embedded: What the linear map of its first layer makes of the features,
                [worlds, nodes, width], see `embed`.
        """
        self._depth, self.chosen, self.grids = self.field.hops, [], []
        if isinstance(model, LGCN):
            return self._lgcn(model, embedded)
        if isinstance(model, ResidualLGCN):
            return self._residual(model, embedded)
        raise UsageError(f"a {type(model).__name__} cannot be explained")

    def _lgcn(self, model: LGCN, h: Tensor) -> Tensor:
        h = self._activate(model.activation, self._aggregate(model.embedding, h))
        for lgcl, norm in model.lgcls():
            if isinstance(lgcl, LGConv):
                new = self._lgcl(lgcl, h)
            else:
                new = self._aggregate(lgcl, lgcl.transform(h))
            new = self._activate(model.activation, self._norm(norm, new))
            h = torch.cat([h[:, : new.size(1)], new], dim=2)
        classifier = model.classifier
        if isinstance(classifier, Diffusion):
            # The linear map comes first: the result is the same, and there are fewer classes.
            total = h = h @ classifier.weight / (classifier.hops + 1)
            for _ in range(classifier.hops):
                summed = self._sum(classifier.adjacency_options, total)
                total = h[:, : summed.size(1)] + summed
            return total + classifier.bias
        return self._aggregate(classifier, classifier.transform(h))

    def _residual(self, model: ResidualLGCN, h: Tensor) -> Tensor:
        h = self.differences.secant(F.relu, h)
        layers: Any = model.layers
        for layer in layers:
            conv, linear = layer.conv, layer.linear
            if conv is None:
                out = linear(h)
            else:
                out = self._lgcl(conv, h) if isinstance(conv, LGConv) else self._mix(conv, h)
                if linear is not None:
                    out = out + linear(h[:, : out.size(1)])
            h = self.differences.secant(F.relu, self._norm(layer.norm, out))
        return model.classifier.transform(h)

    def _activate(self, function: Any, h: Tensor) -> Tensor:
        return h if function is None else self.differences.secant(function, h)

    def _aggregate(self, layer: GCNLayer, h: Tensor) -> Tensor:
        return h if layer.aggregate == "none" else self._sum(layer.adjacency_options, h)

    def _sum(self, options: AdjacencyOptions, h: Tensor) -> Tensor:
        entries = self._step(options)
        if self.fused:
            rowptr, col, value = self._one_below_the_other(entries, h)
            return spmm(rowptr, col, value, h.flatten(0, 1)).view(len(h), -1, h.size(2))
        return _add_up(entries, self._messages(entries, h))

    def _lgcl(self, layer: LGConv, h: Tensor) -> Tensor:
        entries = self._step(layer.adjacency_options)
        if self.fused:
            return self._fused_lgcl(layer, entries, h)
        messages = self._messages(entries, h)
        worlds, _, width = h.shape
        rows = entries.rowptr.numel() - 1
        deciding = messages.detach() if self.reselect else messages[:1].detach()
        values, entry = _largest_messages(layer, entries.rowptr, deciding)
        taken = entry >= 0
        place = entry.long().clamp(min=0)
        near = entries.col[place[0]] if entries.col.numel() else place[0]
        self.chosen.append(Chosen(layer, torch.where(taken[0], near.long(), -1), values[0]))
        if entries.col.numel():
            index = place.view(len(place), -1, width).expand(worlds, -1, -1)
            selected = messages.gather(1, index).view(worlds, rows, layer.k, width)
            selected = torch.where(taken, selected, 0)
        else:
            selected = h.new_zeros(worlds, rows, layer.k, width)
        parts = [h[:, :rows, None], selected]
        if layer.mean or layer.sum:
            mean = _add_up(entries, messages)
            if layer.mean and layer.rank == "raw":
                mean = mean / _row_weights(entries, h.dtype)
            parts.append(mean[:, :, None])
        grid = torch.cat(parts, dim=2)
        self.grids.append(grid)
        return _convolve(layer, grid, self.differences)

    def _fused_lgcl(self, layer: LGConv, entries: _Entries, h: Tensor) -> Tensor:
        rowptr, col, value = self._one_below_the_other(entries, h)
        rows = entries.rowptr.numel() - 1
        own, flat, last = h[:, :rows].flatten(0, 1), h.flatten(0, 1), None
        if layer.mean or layer.sum:
            last = spmm(rowptr, col, value, flat)
            if layer.mean and layer.rank == "raw":
                last = last / _row_weights(entries, h.dtype).repeat(len(h), 1)
        grid = k_largest_grid(
            flat, own, rowptr, col, layer.k, edge_weight=value, zeros=layer.zeros, last=last
        )
        return _convolve(layer, grid.view(len(h), rows, *grid.shape[1:]), self.differences)

    def _one_below_the_other(self, entries: _Entries, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The entries of all worlds as one adjacency, with masked weights."""
        worlds, nodes, _ = h.shape
        rowptr, col = _stacked(entries.rowptr, worlds), entries.col
        col = (col + torch.arange(worlds)[:, None] * nodes).flatten()
        trust(rowptr, col, worlds * nodes)
        mask = self._edge_mask(entries, h)
        assert mask is not None
        value = mask.squeeze(2)
        if entries.weight is not None:
            value = value * entries.weight.to(h.dtype)
        return rowptr, col, value.flatten()

    def _mix(self, layer: Any, h: Tensor) -> Tensor:
        if not isinstance(layer, NeighbourLayer):
            raise UsageError(f"a {type(layer).__name__} cannot be explained")
        mapped = h @ layer.weight
        if isinstance(layer, Attention):
            return self._attention(layer, mapped)
        entries = self._step(layer.adjacency_options)
        total = _add_up(entries, self._messages(entries, mapped))
        if isinstance(layer, NeighbourMean):
            total = total / _row_weights(entries, h.dtype)
        return total

    def _attention(self, layer: Attention, h: Tensor) -> Tensor:
        entries = self._step(layer.adjacency_options)
        rows, worlds = entries.rowptr.numel() - 1, h.size(0)
        heads = h.view(worlds, -1, layer.heads, h.size(2) // layer.heads)
        source, target = (heads * layer.source).sum(3), (heads * layer.target).sum(3)
        score = self.differences.secant(leaky_relu, source[:, entries.col] + target[:, entries.row])
        # A constant per row that is the same in all worlds changes nothing.
        index = entries.row[:, None].expand(-1, layer.heads)
        largest = score.new_zeros(rows, layer.heads).scatter_reduce_(
            0, index, score.detach().amax(0), "amax", include_self=False
        )
        share = self.differences.secant(torch.exp, score - largest[entries.row])
        mask = self._edge_mask(entries, h)
        if mask is not None:
            share = self.differences.product(mask, share)
        total = _add_up(entries, share)
        messages = self.differences.product(share[..., None], heads[:, entries.col])
        summed = _add_up(entries, messages.flatten(2)).view(worlds, rows, layer.heads, -1)
        return self.differences.product(
            summed, self.differences.secant(torch.reciprocal, total)[..., None]
        ).flatten(2)

    def _norm(self, norm: Any, h: Tensor) -> Tensor:
        if isinstance(norm, Identity):
            return h
        if isinstance(norm, LayerNorm):
            assert norm.weight is not None
            return self.differences.layer_norm(h, norm.weight, norm.bias, norm.eps)
        assert isinstance(norm, BatchNorm)
        mean, variance = norm.running_mean, norm.running_var
        if mean is None or variance is None:
            mean, variance = self.statistics[norm]
        flat = F.batch_norm(h.flatten(0, 1), mean, variance, norm.weight, norm.bias, eps=norm.eps)
        return flat.view(h.shape)

    def _step(self, options: AdjacencyOptions) -> _Entries:
        """The rows that the next layer computes: those within one hop less."""
        self._depth -= 1
        rows = self.field.reach[self._depth]
        key = (rows, *options.values())
        if key not in self._cache:
            rowptr, row, col, weight, edge = self._all_entries(options)
            last = int(rowptr[rows])
            weight = None if weight is None else weight[:last]
            parts = rowptr[: rows + 1], row[:last], col[:last], weight, edge[:last]
            self._cache[key] = _Entries(*parts)
        return self._cache[key]

    def _all_entries(self, options: AdjacencyOptions) -> _Entries:
        key = (None, *options.values())
        if key not in self._cache:
            graph = self.field.graph
            rowptr, col, weight = graph.adjacency(**options)
            row = row_of_entry(rowptr)
            if col.numel() == graph.num_edges:
                edge = torch.arange(graph.num_edges)
            else:  # added self-loops stand in front of their rows
                added = rowptr.diff() > graph.rowptr.diff()
                is_edge = torch.ones(col.numel(), dtype=torch.bool)
                is_edge[rowptr[:-1][added].long()] = False
                edge = is_edge.cumsum(0) - 1
            self._cache[key] = _Entries(rowptr, row, col, weight, torch.where(row == col, -1, edge))
        return self._cache[key]

    def _messages(self, entries: _Entries, h: Tensor) -> Tensor:
        """What each entry sends, [worlds, entries, width]."""
        messages = h.index_select(1, entries.col)
        if entries.weight is not None:
            messages = messages * entries.weight.to(h.dtype)[:, None]
        mask = self._edge_mask(entries, h)
        return messages if mask is None else self.differences.product(mask, messages)

    def _edge_mask(self, entries: _Entries, h: Tensor) -> Tensor | None:
        """The mask of each entry, [worlds, entries, 1]."""
        if self.mask is None:
            return None
        one = self.mask.new_ones(len(self.mask), 1)
        # The last value is that of self-loops, whose edge is -1.
        place = torch.where(entries.edge < 0, self.mask.size(1), entries.edge)
        return torch.cat([self.mask, one], dim=1).index_select(1, place)[:, :, None]


def embed(model: Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the linear map of the first layer makes of features, and of features that are zero."""
    layer: Any = model.first_layer
    made: Tensor = layer.transform(x)
    return made, layer.bias.expand_as(made)


def _largest_messages(layer: LGConv, rowptr: Tensor, messages: Tensor) -> tuple[Tensor, Tensor]:
    """What an LGCL selects in each world, and the entries, -1 for a zero that was filled in.

    Messages instead of nodes are selected: these are numbered, also if two edges are alike. The
    worlds stand one below the other in one adjacency.

    Args:
        layer: The LGCL.
        rowptr: The offsets of the entries.
        messages: [worlds, entries, width]
    """
    worlds, count, width = messages.shape
    first = torch.arange(worlds)[:, None] * count
    offsets = _stacked(rowptr, worlds)
    number = torch.arange(worlds * count)
    with torch.no_grad():
        values, entry = k_largest(
            messages.reshape(-1, width), offsets, number, layer.k, zeros=layer.zeros
        )
    shape = (worlds, rowptr.numel() - 1, layer.k, width)
    entry = entry.view(shape)
    return values.view(shape), torch.where(entry < 0, -1, entry - first[:, :, None, None])


def _stacked(rowptr: Tensor, worlds: int) -> Tensor:
    """The offsets of the same rows in each world, one world below the other."""
    first = torch.arange(worlds)[:, None] * rowptr[-1]
    return torch.cat([(rowptr[:-1] + first).flatten(), first[-1] + rowptr[-1]])


def _add_up(entries: _Entries, messages: Tensor) -> Tensor:
    worlds, _, width = messages.shape
    out = messages.new_zeros(worlds, entries.rowptr.numel() - 1, width)
    return out.index_add(1, entries.row, messages)


def _row_weights(entries: _Entries, dtype: torch.dtype) -> Tensor:
    """The sum of the weights in each row, 1 if it is zero; [rows, 1]."""
    if entries.weight is None:
        total = entries.rowptr.diff().to(dtype)
    else:
        total = torch.zeros(entries.rowptr.numel() - 1, dtype=dtype).index_add(
            0, entries.row, entries.weight.to(dtype)
        )
    return torch.where(total == 0, 1, total)[:, None]


def _convolve(layer: LGConv, grid: Tensor, differences: Differences) -> Tensor:
    """`layer.convolve`, [worlds, rows, positions, features] to [worlds, rows, features]."""
    worlds, rows = grid.shape[:2]
    if not isinstance(layer.cnn, GridCNN):
        if not isinstance(layer.cnn, SharedKernel):
            raise UsageError(f"an LGCL with a {type(layer.cnn).__name__} cannot be explained")
        return layer.convolve(grid.flatten(0, 1)).view(worlds, rows, -1)
    out = grid.flatten(0, 1).transpose(1, 2)
    for module in layer.cnn:
        if isinstance(module, GridConv):  # weights need no gradient
            bias = None if module.bias is None else module.bias.detach()
            out = grid_convolution(out, module.weight.detach(), bias)
        elif isinstance(module, Activation) and module.function is not None:
            shape = (worlds, rows, *out.shape[1:])
            out = differences.secant(module.function, out.reshape(shape)).flatten(0, 1)
    return out.view(worlds, rows, -1)
