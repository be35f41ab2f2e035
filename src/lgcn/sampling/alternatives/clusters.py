"""Mini-batches of clusters found by METIS, as in Cluster-GCN."""

from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import torch

from lgcn.graph import Graph
from lgcn.graph.metis import metis_parts
from lgcn.sampling.algorithm1 import select_subgraph
from lgcn.sampling.batches import BatchLoader, BatchOptions
from lgcn.sampling.start_nodes import root_weights


class ClusterLoader(BatchLoader):
    """Yields mini-batches of sub-graphs. Each consists of several clusters and the edges between
    them, as in the ["Cluster-GCN"](https://arxiv.org/abs/1905.07953) paper.

    METIS (`pip install 'lgcn[metis]'`) cuts the graph once into clusters with few edges between
    them. In each epoch, the clusters that have training nodes are shuffled and dealt out, so that
    each training node serves once. A batch with few training nodes counts less, so that the mean
    loss of an epoch is the mean over all training nodes.

    METIS needs the whole adjacency in memory, and several times as much working memory.

    Args:
        graph: The graph.
        max_nodes: Nodes per sub-graph, on average over all clusters. (default: 2000)
        clusters_per_subgraph: Clusters per sub-graph. The more, the more alike the batches are.
            (default: 4)
        halo: Hops of neighbours around the clusters that are added to a sub-graph. They are
            computed, but not scored. (default: 0)
        **options: `roots`, the nodes on which the loss is taken, and `batch_size`,
            `resample`, `keep_degree`, `seed`, `num_workers`: see `lgcn.SubgraphLoader`.
    """

    def __init__(
        self,
        graph: Graph,
        *,
        max_nodes: int = 2000,
        clusters_per_subgraph: int = 4,
        halo: int = 0,
        **options: Unpack[BatchOptions],
    ) -> None:
        super().__init__(graph, **options)
        if clusters_per_subgraph < 1:
            raise ValueError(
                f"clusters_per_subgraph must be at least 1, got {clusters_per_subgraph}"
            )
        if max_nodes < 1:
            raise ValueError(f"max_nodes must be at least 1, got {max_nodes}")
        if halo < 0:
            raise ValueError(f"halo must not be negative, got {halo}")
        self.roots = torch.from_numpy(np.unique(self.roots.numpy()))
        self.clusters_per_subgraph = clusters_per_subgraph
        self.halo = halo
        num_clusters = -(-graph.num_nodes * clusters_per_subgraph // max_nodes)
        cluster = metis_parts(
            graph, min(num_clusters, graph.num_nodes), self.seed, "sampler=clusters"
        )
        self._order = np.argsort(cluster, kind="stable")  # the nodes by cluster, sorted in each
        self._starts = np.searchsorted(cluster[self._order], np.arange(cluster.max() + 2))
        self._served = np.unique(cluster[self.roots.numpy()])

    @property
    def _num_subgraphs(self) -> int:
        return -(-self._served.size // self.clusters_per_subgraph)

    def _plan(self, epoch: int) -> list[Any]:
        rng = np.random.default_rng([self.seed, epoch])
        return np.array_split(rng.permutation(self._served), self._num_subgraphs)

    def _subgraph(self, start: Any, epoch: int, number: int) -> Graph:
        parts = [self._order[self._starts[c] : self._starts[c + 1]] for c in start]
        inside = nodes = torch.from_numpy(np.sort(np.concatenate(parts)))
        if self.halo:
            nodes = select_subgraph(
                self.graph, roots=inside, max_nodes=None, max_hops=self.halo, seed=0
            )
        subgraph = self.graph.subgraph(nodes, keep_degree=self.keep_degree)
        roots = np.intersect1d(self.roots.numpy(), inside.numpy(), assume_unique=True)
        # The mean over an epoch's batches is 1 / (number of roots) for each root.
        weights = np.broadcast_to(len(self) / self.roots.numel(), roots.shape)
        weight = root_weights(nodes, roots, weights)
        return replace(subgraph, node_weight=weight)
