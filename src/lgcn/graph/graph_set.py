"""Many graphs, each with a label: what the classification of whole graphs works on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lgcn.errors import UsageError
from lgcn.graph.csr import checked_nodes, one_index_dtype
from lgcn.graph.graph import Graph
from lgcn.utils.choices import Task

# Fields of Graph that describe whole graphs in `targets`, not nodes.
OF_GRAPHS = ("y", "train_mask", "val_mask", "test_mask", "sample_weight")


@dataclass(frozen=True, eq=False)
class GraphSet:
    """Many graphs as one `lgcn.Graph`, and what is known of each of them.

    Args:
        graph: All graphs side by side, with `ptr`. Its nodes have features, and no labels.
        targets: One node per graph, without edges: `y`, the splits, `sample_weight`, the graphs'
            ids (`node_ids`) and `label_names`. What scores nodes can so score graphs.

    Example:
        ```python
        graphs = lgcn.load_graphs("MUTAG")
        graphs.num_graphs, graphs.graph.num_nodes, graphs.y
        batch = graphs.select([3, 0, 7])
        ```
    """

    graph: Graph
    targets: Graph

    def __post_init__(self) -> None:
        if self.graph.ptr is None:
            raise ValueError("graph must have ptr, the node offsets of the graphs, got none")
        if self.targets.num_nodes != self.graph.num_graphs:
            raise ValueError(
                f"targets must have one node per graph ({self.graph.num_graphs}), got "
                f"{self.targets.num_nodes}"
            )
        if self.targets.num_edges:
            raise ValueError(f"targets must have no edges, got {self.targets.num_edges}")

    @classmethod
    def create(
        cls,
        graph: Graph,
        *,
        y: Tensor | None = None,
        train_mask: Tensor | None = None,
        val_mask: Tensor | None = None,
        test_mask: Tensor | None = None,
        sample_weight: Tensor | None = None,
        ids: Any = None,
        label_names: Sequence[str] | None = None,
    ) -> GraphSet:
        """Joins graphs and what is known of them.

        Args:
            graph: All graphs side by side. Without `ptr`, it is one graph. Labels and splits of its
                nodes are left out.
            y: One class per graph, -1 if unknown; a matrix of zeros and ones if a graph can have
                several labels; or a floating-point number per graph, NaN if unknown.
                (default: none)
            train_mask, val_mask, test_mask: Boolean masks of graphs. (default: none)
            sample_weight: Weight of each graph in the training loss. (default: all equal)
            ids: Your id of each graph. (default: their numbers)
            label_names: Names of the classes or labels. (default: their numbers)
        """
        ptr = torch.tensor([0, graph.num_nodes]) if graph.ptr is None else graph.ptr
        _check_within(graph, ptr)
        without: dict[str, Any] = dict.fromkeys(OF_GRAPHS)
        graph = replace(graph, ptr=ptr, node_weight=None, label_names=None, **without)
        count = ptr.numel() - 1
        targets = Graph(
            torch.zeros(count + 1, dtype=torch.long),
            torch.empty(0, dtype=torch.long),
            y=y,
            train_mask=train_mask,
            val_mask=val_mask,
            test_mask=test_mask,
            sample_weight=sample_weight,
            node_ids=None if ids is None else np.asarray(ids),
            label_names=None if label_names is None else tuple(label_names),
            name=graph.name,
        )
        return cls(graph, targets)

    @property
    def ptr(self) -> Tensor:
        """Node offsets of the graphs."""
        assert self.graph.ptr is not None
        return self.graph.ptr

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph."""
        return self.ptr.diff()

    @property
    def edge_ptr(self) -> Tensor:
        """Offsets of the graphs' entries in `graph.col`."""
        return self.graph.rowptr[self.ptr.long()]

    @property
    def num_graphs(self) -> int:
        """Number of graphs."""
        return self.targets.num_nodes

    def __len__(self) -> int:
        return self.num_graphs

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return self.graph.num_nodes

    @property
    def num_features(self) -> int:
        """Number of features per node."""
        return self.graph.num_features

    @property
    def y(self) -> Tensor | None:
        """The label of each graph."""
        return self.targets.y

    @property
    def num_classes(self) -> int:
        """Number of classes or labels of graphs; 0 for a regression."""
        return self.targets.num_classes

    @property
    def num_outputs(self) -> int:
        """Outputs that a network needs per graph."""
        return self.targets.num_outputs

    @property
    def task(self) -> Task:
        """What `y` asks for, see `lgcn.Graph.task`."""
        return self.targets.task

    @property
    def name(self) -> str:
        """Shown in messages and results."""
        return self.graph.name

    def mask(self, split: str) -> Tensor | None:
        """Returns the mask of the graphs of a split: `"train"`, `"val"` or `"test"`."""
        return self.targets.mask(split)

    def __getitem__(self, number: int) -> Graph:
        """Returns one of the graphs."""
        count = self.num_graphs
        if not -count <= number < count:  # which ends a loop over the graphs
            raise IndexError(f"the number of a graph must be below {count}, got {number}")
        return replace(self.select([number % count]).graph, ptr=None)

    def select(self, numbers: Tensor | Sequence[int]) -> GraphSet:
        """Returns some of the graphs, in the given order.

        The rows of a graph lie side by side, so that its edges are copied, not searched.

        Args:
            numbers: Distinct numbers of graphs, or a boolean mask.
        """
        numbers = checked_nodes(torch.as_tensor(numbers), self.num_graphs, "numbers")
        ptr, graph = self.ptr.long(), self.graph
        numbers = numbers.to(ptr.device)
        first, sizes = ptr[numbers], self.sizes.long()[numbers]
        new_ptr = _offsets(sizes)
        shift = first - new_ptr[:-1]  # from a node's new number to its old one
        nodes = torch.arange(int(new_ptr[-1]), device=ptr.device)
        nodes += torch.repeat_interleave(shift, sizes)

        rowptr = graph.rowptr.long()
        first_entry = rowptr[first]
        counts = rowptr[first + sizes] - first_entry
        new_entry = _offsets(counts)
        entries = torch.arange(int(new_entry[-1]), device=ptr.device)
        entries += torch.repeat_interleave(first_entry - new_entry[:-1], counts)
        col = graph.col[entries].long() - torch.repeat_interleave(shift, counts)
        new_rowptr = torch.cat([rowptr.new_zeros(1), (rowptr[nodes + 1] - rowptr[nodes]).cumsum(0)])

        def of(values: Tensor | None, places: Tensor) -> Tensor | None:
            return None if values is None else values[places]

        new_rowptr, col = one_index_dtype(new_rowptr, col)
        ids = graph.node_ids
        chosen = Graph._trusted(
            new_rowptr,
            col,
            x=None if graph.x is None else graph.features(nodes),
            edge_weight=of(graph.edge_weight, entries),
            edge_attr=of(graph.edge_attr, entries),
            degree=of(graph.degree, nodes),
            ptr=new_ptr,
            n_id=nodes if graph.n_id is None else graph.n_id[nodes],
            node_ids=None if ids is None else ids[nodes.cpu().numpy()],
            encoder=graph.encoder,
            name=graph.name,
        )
        return GraphSet(chosen, self.targets.subgraph(numbers.to(self.targets.rowptr.device)))

    def with_graph(self, **changes: Any) -> GraphSet:
        """Returns the same graphs with other fields of `graph`, such as `x`."""
        return GraphSet(replace(self.graph, **changes), self.targets)

    def with_targets(self, **changes: Any) -> GraphSet:
        """Returns the same graphs with other fields of `targets`, such as the splits."""
        return GraphSet(self.graph, replace(self.targets, **changes))

    def to(self, device: torch.device | str) -> GraphSet:
        """Returns the graphs with all tensors on `device`."""
        return GraphSet(self.graph.to(device), self.targets.to(device))

    @staticmethod
    def concat(sets: Sequence[GraphSet]) -> GraphSet:
        """Joins sets of graphs with the same features and labels to one."""
        if not sets:
            raise UsageError("sets must have at least one set of graphs, got none")
        if len(sets) == 1:
            return sets[0]
        graph = Graph.concat([one.graph for one in sets])
        graph = replace(graph, ptr=_offsets(torch.cat([one.sizes.long() for one in sets])))
        every = [one.targets for one in sets]
        ids = [one.node_ids for one in every]
        targets = replace(
            Graph.concat(every),
            ptr=None,
            n_id=None,
            node_ids=None if any(one is None for one in ids) else np.concatenate(ids),  # type: ignore[arg-type]
        )
        return GraphSet(graph, targets)

    def __repr__(self) -> str:
        labels = f"num_classes={self.num_classes}"
        if self.task == "regression":
            labels = "task='regression'"
        return (
            f"GraphSet(name={self.name!r}, num_graphs={self.num_graphs}, "
            f"num_nodes={self.num_nodes}, num_edges={self.graph.num_edges}, "
            f"num_features={self.num_features}, {labels})"
        )


def _offsets(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _check_within(graph: Graph, ptr: Tensor) -> None:
    """Raises ValueError if an edge joins nodes of two graphs."""
    graph_of = torch.repeat_interleave(ptr.long().diff())
    row = torch.repeat_interleave(graph.rowptr.diff().long())
    apart = graph_of[row] != graph_of[graph.col.long()]
    if bool(apart.any()):
        place = int(apart.nonzero()[0])
        ends = int(graph.col[place]), int(row[place])
        raise ValueError(
            f"edges must join nodes of one graph, got one from node {ends[0]} of graph "
            f"{int(graph_of[ends[0]])} to node {ends[1]} of graph {int(graph_of[ends[1]])}"
        )
