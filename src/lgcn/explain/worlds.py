"""Runs the networks on a neighbourhood in several worlds at once, see `lgcn.explain.secant`.

It computes what `forward` computes, in evaluation mode, with three differences: the rows of a layer
that no later layer needs are not computed; every message between nodes can be masked; and what the
LGCLs select is decided in world 0 and holds in all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Identity, LayerNorm, Module

from lgcn.errors import UsageError
from lgcn.explain.messages import (
    Entries,
    add_up,
    convolve,
    largest_messages,
    row_weights,
    stacked,
    taken_from,
)
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.explain.pooled import kept, merged
from lgcn.explain.secant import Derivatives, Differences, leaky_relu
from lgcn.nn.batch_norm import BatchNorm
from lgcn.nn.diffusion import Diffusion
from lgcn.nn.gcn_layer import GCNLayer
from lgcn.nn.graph_lgcn import GraphLGCN
from lgcn.nn.lg_conv import LGConv
from lgcn.nn.lgcn import LGCN
from lgcn.nn.mapped_lg_conv import MappedLGConv
from lgcn.nn.neighbour_layers import Attention, NeighbourLayer, NeighbourMax, NeighbourMean
from lgcn.nn.pooling import ClusterPooling, SAGPooling, TopKPooling
from lgcn.nn.propagated_embedding import PropagatedEmbedding
from lgcn.nn.readout import JoinedReadout, SimpleReadout, SortPooling
from lgcn.nn.residual import ResidualLGCN
from lgcn.nn.rows import AdjacencyOptions
from lgcn.ops import spmm
from lgcn.ops.k_largest import Zeros, k_largest_grid
from lgcn.ops.reference import row_of_entry
from lgcn.ops.structure import trust

# Mean and variance over all nodes of the graph, of batch norms without running statistics.
Statistics = dict[Module, tuple[Tensor, Tensor]]
NETWORKS = (LGCN, ResidualLGCN)
GRAPH_NETWORKS = (GraphLGCN,)  # those of whole graphs
# Messages of all worlds from which on the kernels of `lgcn.ops` are faster than plain torch, which
# starts faster. They need ordinary gradients.
FUSED_FROM = 5000


@dataclass(frozen=True)
class Chosen:
    """What an LGCL or a read-out selected.

    Args:
        layer: The LGCL or the read-out.
        node: The node of each value, [rows, k, features], as a local number; -1 for a zero that
            was filled in.
        value: The values, [rows, k, features].
        nodes: The numbers in the whole graph of the nodes that there are at this level. A pair that
            pooling merged has that of its first node.
        level: Of a read-out what it reads: 0 for the embedding, else the number of the LGCL.
            (default: 0)
    """

    layer: Any
    node: Tensor
    value: Tensor
    nodes: Tensor
    level: int = 0


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
        read, read_grids: The same of the read-outs that select, without own values in the grids.
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
        self.read: list[Chosen] = []
        self.read_grids: list[Tensor] = []
        self._start()

    def scores(self, model: Module, embedded: Tensor) -> Tensor:
        """The scores of the roots, [worlds, roots, classes]; those of a whole graph are one row.

        Args:
            model: The network.
            embedded: What the linear map of its first layer makes of the features,
                [worlds, nodes, width], see `embed`.
        """
        self._start()
        if isinstance(model, GraphLGCN):
            return self._graph_lgcn(model, embedded)
        if isinstance(model, LGCN):
            return self._lgcn(model, embedded)
        if isinstance(model, ResidualLGCN):
            return self._residual(model, embedded)
        raise UsageError(f"a {type(model).__name__} cannot be explained")

    def _start(self) -> None:
        self.chosen, self.grids, self.read, self.read_grids = [], [], [], []
        field = self.field
        self._depth, self._reach = field.hops, field.reach
        # Pooling replaces these.
        self._graph, self._nodes, self._masks = field.graph, field.nodes, self.mask
        self._cache: dict[Any, Entries] = {}

    def _lgcn(self, model: LGCN, h: Tensor) -> Tensor:
        embedding = model.embedding
        if isinstance(embedding, PropagatedEmbedding):
            h = self._diffuse(embedding, h) + embedding.constant()
            h = self._activate(model.activation, h)
            h = h if embedding.norm is None else self._norm(embedding.norm, h)
        else:
            h = self._activate(model.activation, self._aggregate(embedding, h))
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
            return self._diffuse(classifier, h @ classifier.weight) + classifier.bias
        return self._aggregate(classifier, classifier.transform(h))

    def _diffuse(self, layer: Diffusion, h: Tensor) -> Tensor:
        total = h = h / (layer.hops + 1)
        for _ in range(layer.hops):
            summed = self._sum(layer.adjacency_options, total)
            total = h[:, : summed.size(1)] + summed
        return total

    def _residual(self, model: ResidualLGCN, h: Tensor) -> Tensor:
        h = self.differences.secant(F.relu, h)
        layers: Any = model.layers
        for layer in layers:
            conv, linear = layer.conv, layer.linear
            if conv is None:
                out = linear(h)
            else:
                out = self._mix(conv, h)
                if linear is not None:
                    out = out + linear(h[:, : out.size(1)])
            h = self.differences.secant(F.relu, self._norm(layer.norm, out))
        return model.classifier.transform(h)

    def _graph_lgcn(self, model: GraphLGCN, h: Tensor) -> Tensor:
        parts: Any = model
        function = model.activation.function
        h = new = self._activate(function, self._norm(model.norms[0], h))
        seen = [self._read_out(parts.readouts[0], new, 0)]
        for number, lgcl in enumerate(parts.layers, 1):
            if number > 1:
                h = self._pool(parts.pools[number - 2], h)
            new = self._activate(function, self._norm(model.norms[number], self._lgcl(lgcl, h)))
            seen.append(self._read_out(parts.readouts[number], new, number))
            h = torch.cat([h, new], dim=2)
        classifier = model.classifier
        hidden = classifier.hidden(self._norm(classifier.norms[0], torch.cat(seen, dim=2)))
        hidden = self._activate(function, self._norm(classifier.norms[1], hidden))
        scores: Tensor = classifier.out(hidden)
        return scores

    def _read_out(self, joined: JoinedReadout, h: Tensor, level: int) -> Tensor:
        """All read-outs of one level side by side, [worlds, 1, features]."""
        found = []
        for name, readout in zip(joined.names, joined.readouts, strict=True):
            if name == "sum":
                found.append(h.sum(1, keepdim=True))
            elif name == "mean":
                found.append(h.mean(1, keepdim=True))
            else:
                found.append(self._ranked_read_out(readout, joined.activation, h, level))
        return torch.cat(found, dim=2)

    def _ranked_read_out(self, readout: Any, function: Any, h: Tensor, level: int) -> Tensor:
        """A read-out that selects nodes: the maximum, the k largest values, or the first nodes."""
        offsets = torch.tensor([0, h.size(1)])
        if isinstance(readout, SortPooling):  # one feature decides for all
            _, place = self._largest(readout.k, "pad", offsets, h[:, :, -1:])
            place = place.expand(-1, -1, -1, h.size(2))
        elif isinstance(readout, SimpleReadout):
            _, place = self._largest(1, "pad", offsets, h)
        else:
            _, place = self._largest(readout.k, readout.zeros, offsets, h)
        grid = taken_from(h, place)
        self.read.append(Chosen(readout, place[0].long(), grid[0].detach(), self._nodes, level))
        self.read_grids.append(grid)
        if isinstance(readout, SimpleReadout):
            return grid[:, :, 0]
        return self._activate(function, convolve(readout.cnn, grid, self.differences))

    def _largest(
        self, k: int, zeros: Zeros, rowptr: Tensor, messages: Tensor
    ) -> tuple[Tensor, Tensor]:
        """`largest_messages` of all worlds, or of world 0, which decides for all."""
        deciding = messages if self.reselect else messages[:1]
        return largest_messages(k, zeros, rowptr, deciding.detach())

    def _pool(self, pool: Module, h: Tensor) -> Tensor:
        """What a pooling makes of the features. World 0 decides which nodes it keeps."""
        if isinstance(pool, Identity):
            return h
        if isinstance(pool, ClusterPooling):
            found = merged(pool, self._graph, h, self._masks, self._largest)
        elif isinstance(pool, TopKPooling | SAGPooling):
            if isinstance(pool, TopKPooling):
                score = h @ (pool.weight / pool.weight.norm())
            else:
                score = self._aggregate(pool.score, pool.score.transform(h)).squeeze(2)
            found = kept(pool, self._graph, h, score, self._masks, self.differences)
        else:
            raise UsageError(
                f"a {type(pool).__name__} cannot be explained; "
                "pooling=none, topk, sag and cluster can"
            )
        self._graph, self._masks, self._cache = found.graph, found.mask, {}
        self._nodes = self._nodes[found.nodes]
        self._reach = (found.h.size(1),) * len(self._reach)
        return found.h

    def _activate(self, function: Any, h: Tensor) -> Tensor:
        return h if function is None else self.differences.secant(function, h)

    def _aggregate(self, layer: GCNLayer, h: Tensor) -> Tensor:
        return h if layer.aggregate == "none" else self._sum(layer.adjacency_options, h)

    def _sum(self, options: AdjacencyOptions, h: Tensor) -> Tensor:
        entries = self._step(options)
        if self.fused:
            rowptr, col, value = self._one_below_the_other(entries, h)
            return spmm(rowptr, col, value, h.flatten(0, 1)).view(len(h), -1, h.size(2))
        return add_up(entries, self._messages(entries, h))

    def _lgcl(self, layer: LGConv, h: Tensor) -> Tensor:
        entries = self._step(layer.adjacency_options)
        if self.fused:
            return self._fused_lgcl(layer, entries, h)
        messages = self._messages(entries, h)
        rows = entries.rowptr.numel() - 1
        values, entry = self._largest(layer.k, layer.zeros, entries.rowptr, messages)
        place = entry[0].long()
        near = entries.col[place.clamp(min=0)].long() if entries.col.numel() else place
        self.chosen.append(Chosen(layer, torch.where(place < 0, -1, near), values[0], self._nodes))
        selected = taken_from(messages, entry)
        parts = [h[:, :rows, None], selected]
        if layer.mean or layer.sum:
            mean = add_up(entries, messages)
            if layer.mean and layer.rank == "raw":
                mean = mean / row_weights(entries, h.dtype)
            parts.append(mean[:, :, None])
        grid = torch.cat(parts, dim=2)
        self.grids.append(grid)
        return convolve(layer.cnn, grid, self.differences)

    def _fused_lgcl(self, layer: LGConv, entries: Entries, h: Tensor) -> Tensor:
        rowptr, col, value = self._one_below_the_other(entries, h)
        rows = entries.rowptr.numel() - 1
        own, flat, last = h[:, :rows].flatten(0, 1), h.flatten(0, 1), None
        if layer.mean or layer.sum:
            last = spmm(rowptr, col, value, flat)
            if layer.mean and layer.rank == "raw":
                last = last / row_weights(entries, h.dtype).repeat(len(h), 1)
        grid = k_largest_grid(
            flat, own, rowptr, col, layer.k, edge_weight=value, zeros=layer.zeros, last=last
        )
        return convolve(layer.cnn, grid.view(len(h), rows, *grid.shape[1:]), self.differences)

    def _one_below_the_other(self, entries: Entries, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The entries of all worlds as one adjacency, with masked weights."""
        worlds, nodes, _ = h.shape
        rowptr, col = stacked(entries.rowptr, worlds), entries.col
        col = (col + torch.arange(worlds)[:, None] * nodes).flatten()
        trust(rowptr, col, worlds * nodes)
        mask = self._edge_mask(entries, h)
        assert mask is not None
        value = mask.squeeze(2)
        if entries.weight is not None:
            value = value * entries.weight.to(h.dtype)
        return rowptr, col, value.flatten()

    def _mix(self, layer: Any, h: Tensor) -> Tensor:
        if isinstance(layer, LGConv):
            return self._lgcl(layer, h)
        if isinstance(layer, MappedLGConv):
            return self._lgcl(layer.lgcl, h @ layer.weight)
        if not isinstance(layer, NeighbourLayer):
            raise UsageError(f"a {type(layer).__name__} cannot be explained")
        mapped = h @ layer.weight
        if isinstance(layer, Attention):
            return self._attention(layer, mapped)
        entries = self._step(layer.adjacency_options)
        messages = self._messages(entries, mapped)
        if isinstance(layer, NeighbourMax):
            _, entry = self._largest(1, "pad", entries.rowptr, messages)
            return taken_from(messages, entry)[:, :, 0]
        total = add_up(entries, messages)
        if isinstance(layer, NeighbourMean):
            total = total / row_weights(entries, h.dtype)
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
        total = add_up(entries, share)
        messages = self.differences.product(share[..., None], heads[:, entries.col])
        summed = add_up(entries, messages.flatten(2)).view(worlds, rows, layer.heads, -1)
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

    def _step(self, options: AdjacencyOptions) -> Entries:
        """The rows that the next layer computes: those within one hop less."""
        self._depth -= 1
        rows = self._reach[self._depth]
        key = (rows, *options.values())
        if key not in self._cache:
            rowptr, row, col, weight, edge = self._all_entries(options)
            last = int(rowptr[rows])
            weight = None if weight is None else weight[:last]
            parts = rowptr[: rows + 1], row[:last], col[:last], weight, edge[:last]
            self._cache[key] = Entries(*parts)
        return self._cache[key]

    def _all_entries(self, options: AdjacencyOptions) -> Entries:
        key = (None, *options.values())
        if key not in self._cache:
            graph = self._graph
            rowptr, col, weight = graph.adjacency(**options)
            row = row_of_entry(rowptr)
            if col.numel() == graph.num_edges:
                edge = torch.arange(graph.num_edges)
            else:  # added self-loops stand in front of their rows
                added = rowptr.diff() > graph.rowptr.diff()
                is_edge = torch.ones(col.numel(), dtype=torch.bool)
                is_edge[rowptr[:-1][added].long()] = False
                edge = is_edge.cumsum(0) - 1
            self._cache[key] = Entries(rowptr, row, col, weight, torch.where(row == col, -1, edge))
        return self._cache[key]

    def _messages(self, entries: Entries, h: Tensor) -> Tensor:
        """What each entry sends, [worlds, entries, width]."""
        messages = h.index_select(1, entries.col)
        if entries.weight is not None:
            messages = messages * entries.weight.to(h.dtype)[:, None]
        mask = self._edge_mask(entries, h)
        return messages if mask is None else self.differences.product(mask, messages)

    def _edge_mask(self, entries: Entries, h: Tensor) -> Tensor | None:
        """The mask of each entry, [worlds, entries, 1]."""
        masks = self._masks
        if masks is None:
            return None
        one = masks.new_ones(len(masks), 1)
        # The last value is that of self-loops, whose edge is -1.
        place = torch.where(entries.edge < 0, masks.size(1), entries.edge)
        return torch.cat([masks, one], dim=1).index_select(1, place)[:, :, None]


def embed(model: Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """What the linear map of the first layer makes of features, and of features that are zero."""
    layer: Any = model.first_layer
    made: Tensor = layer.transform(x)
    _, constant = layer.linear_map()
    return made, constant.expand_as(made)
