"""Who sends which rows to whom, so that each process has the rows of its shards' halos.

The rows of a process are those of its shards' own nodes, shard by shard, followed by those of the
halo that other processes own. A node of the halo that another shard of the same process owns has
one row only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

import torch
from torch import Tensor

from lgcn.errors import DataError, UsageError
from lgcn.partition.shard import Shard
from lgcn.utils.limits import MAX_INT32
from lgcn.utils.row_blocks import row_blocks
from lgcn.workers import Workers, together

HALO_BLOCK = 2**18  # nodes


class Border:
    """The rows of a process, and what it exchanges with the others.

    All ranks make it together.

    Args:
        shards: The shards of this process.
        workers: The processes.

    Attributes:
        first: The row of the first own node of each shard; at the end, the number of own rows.
        num_rows: The number of rows with those of the halo.
        num_nodes: The number of nodes of the whole graph.
        num_features: The number of features per node.
        places: For each shard, the row of each of its nodes.
        sends: For each rank, the rows that it needs from this one.
    """

    def __init__(self, shards: Sequence[Shard], workers: Workers) -> None:
        self.shards, self.workers = shards, workers
        self.first = [0, *accumulate(shard.num_owned for shard in shards)]
        self._rank_of, facts = _ranks_of_parts(shards, workers)
        self.num_nodes, self.num_features = facts["num_nodes"], facts["num_features"]
        with together(workers, "the check of the halos"):
            asked = self._plan()
        received = workers.exchange(asked, "the nodes at the border of the parts")
        with together(workers, "the check of the border"):
            self.sends = [self._find(one[:, 0], one[:, 1]) for one in received]
        largest = max(map(len, (*asked, *received)), default=0)
        self._largest = max(workers.collect(largest, "the size of the border"))

    def complete(self, matrix: Tensor, block_bytes: int, what: str) -> None:
        """Fills in the rows of the halo, which other processes own.

        Args:
            matrix: The matrix, with the rows of own nodes.
            block_bytes: Memory that the messages under way may take, the same on all ranks.
            what: What the rows are, for errors.
        """
        size = self.workers.size
        if self._largest == 0:
            return
        row_bytes = max(1, matrix.size(1) * matrix.element_size())
        height = max(1, block_bytes // (2 * size * row_bytes))  # what is sent and what arrives
        starts = [self.first[-1] + before for before in (0, *accumulate(self._counts))]
        for first in range(0, self._largest, height):
            parts = [matrix[rows[first : first + height]] for rows in self.sends]
            for rank, rows in enumerate(self.workers.exchange(parts, what)):
                start = starts[rank] + first
                matrix[start : start + len(rows)] = rows

    def _plan(self) -> list[Tensor]:
        """Sets the rows; gives, per rank, the nodes that it is asked for, and their parts."""
        far, part = self._far_nodes()
        rank = self._rank_of[part]
        order = rank.argsort(stable=True)
        self._counts = torch.bincount(rank, minlength=self.workers.size).tolist()
        self.num_rows = self.first[-1] + len(far)
        dtype = torch.int32 if self.num_rows <= MAX_INT32 else torch.int64
        far_rows = torch.empty(len(far), dtype=dtype)
        far_rows[order] = torch.arange(self.first[-1], self.num_rows, dtype=dtype)
        self.places = []
        for shard, first in zip(self.shards, self.first, strict=False):
            place = torch.empty(shard.graph.num_nodes, dtype=dtype)
            torch.arange(first, first + shard.num_owned, out=place[: shard.num_owned])
            for start, stop, nodes, owners in _halo_blocks(shard):
                here = self._rank_of[owners] == self.workers.rank
                rows = place[start:stop]
                rows[here] = self._find(nodes[here], owners[here]).to(dtype)
                rows[~here] = far_rows[torch.searchsorted(far, nodes[~here])]
            self.places.append(place)
        return list(torch.split(torch.stack([far, part.long()], dim=1)[order], self._counts))

    def _far_nodes(self) -> tuple[Tensor, Tensor]:
        """The nodes of the halos that other processes own, in ascending order, and their parts."""
        found = [torch.empty(0, dtype=torch.long)]
        for shard in self.shards:
            for _, _, nodes, owners in _halo_blocks(shard):
                if not 0 <= int(owners.min()) <= int(owners.max()) < len(self._rank_of):
                    raise DataError(
                        f"owner of part {shard.number} must name parts from 0 to "
                        f"{len(self._rank_of) - 1}, got {int(owners.min())} to {int(owners.max())}"
                    )
                found.append(nodes[self._rank_of[owners] != self.workers.rank])
        far = torch.unique(torch.cat(found))
        part = torch.empty(len(far), dtype=torch.int32)
        for shard in self.shards:
            for _, _, nodes, owners in _halo_blocks(shard):
                away = self._rank_of[owners] != self.workers.rank
                part[torch.searchsorted(far, nodes[away])] = owners[away].int()
        return far, part

    def _find(self, nodes: Tensor, parts: Tensor) -> Tensor:
        """The rows of nodes that parts of this process own."""
        rows = torch.empty_like(nodes)
        left = len(nodes)
        for shard, first in zip(self.shards, self.first, strict=False):
            chosen = parts == shard.number
            wanted = nodes[chosen]
            left -= len(wanted)
            owned = _numbers(shard)[: shard.num_owned]
            found = torch.searchsorted(owned, wanted)
            wrong = wanted
            if shard.num_owned:
                wrong = wanted[owned[found.clamp(max=shard.num_owned - 1)] != wanted]
            if len(wrong):
                raise DataError(
                    f"part {shard.number} (rank {self.workers.rank}) does not own node "
                    f"{int(wrong[0])}, but another part says so: the shards are of different "
                    "partitions. Write them again"
                )
            rows[chosen] = first + found
        if left:
            raise DataError(
                f"rank {self.workers.rank} was asked for nodes of parts that it does not have: the "
                "shards are of different partitions. Write them again"
            )
        return rows


def _numbers(shard: Shard) -> Tensor:
    """The numbers of a shard's nodes in the whole graph."""
    assert shard.graph.n_id is not None
    return shard.graph.n_id


def _halo_blocks(shard: Shard) -> Iterator[tuple[int, int, Tensor, Tensor]]:
    """Blocks of a halo: their bounds in the shard, the nodes' numbers, and the parts that own them.

    A halo may be larger than the part itself, so it is not read at once.
    """
    for first, last in row_blocks(shard.num_halo, HALO_BLOCK):
        start, stop = shard.num_owned + first, shard.num_owned + last
        yield start, stop, _numbers(shard)[start:stop].long(), shard.owner[start:stop].long()


def _ranks_of_parts(shards: Sequence[Shard], workers: Workers) -> tuple[Tensor, dict[str, int]]:
    """The rank of each part, and what is the same of all parts; each part must be there once."""
    mine = [
        {
            "number": shard.number,
            "num_parts": shard.num_parts,
            "num_nodes": shard.num_nodes,
            "num_features": shard.graph.num_features,
        }
        for shard in shards
    ]
    found = [
        (rank, part)
        for rank, parts in enumerate(workers.collect(mine, "the parts of all ranks"))
        for part in parts
    ]
    if not found:
        raise UsageError("shards must have the parts of a graph, got none on any rank")
    (first_rank, first), *_ = found
    rank_of = [-1] * first["num_parts"]
    for rank, part in found:
        for name in ("num_parts", "num_nodes", "num_features"):
            if part[name] != first[name]:
                raise DataError(
                    f"part {part['number']} (rank {rank}) has {name} {part[name]}, part "
                    f"{first['number']} (rank {first_rank}) has {first[name]}: the shards are of "
                    "different partitions"
                )
        if not 0 <= part["number"] < len(rank_of) or rank_of[part["number"]] >= 0:
            raise UsageError(
                f"shards must have each part from 0 to {len(rank_of) - 1} once, got another part "
                f"{part['number']} on rank {rank}"
            )
        rank_of[part["number"]] = rank
    if -1 in rank_of:
        raise UsageError(
            f"shards must have all {len(rank_of)} parts of the graph, part {rank_of.index(-1)} is "
            "on no rank"
        )
    return torch.tensor(rank_of), first
