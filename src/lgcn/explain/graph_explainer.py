"""Explains the predictions of a model of whole graphs, graph by graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Module

from lgcn.errors import UsageError
from lgcn.explain.contributions import REFERENCE, Contributions
from lgcn.explain.explainer import NodeExplainer, ids_of, spec_of
from lgcn.explain.explanation import Explanation
from lgcn.explain.neighbourhood import Neighbourhood
from lgcn.graph import GraphSet
from lgcn.nn.pooling import ClusterPooling
from lgcn.training.model_spec import ModelSpec
from lgcn.utils.choices import Unit
from lgcn.utils.memory import check_memory


class GraphExplainer(NodeExplainer):
    """Explains the predictions of one model for graphs of one set.

    ```python
    graphs = lgcn.load_graphs("MUTAG")
    explainer = GraphExplainer(model, graphs)
    (found,) = explainer.explain([0])
    found.by_node[:3]  # the nodes of graph 0 that mattered most
    ```

    It has the methods of `lgcn.explain.NodeExplainer`. Contributions add up as they do for nodes.
    What the read-outs select, and which nodes a pooling keeps, is held as it was for the
    prediction, like what the LGCLs select.

    Args:
        model: An `lgcn.GraphLGCN`.
        graphs: The graphs, with features as the model takes them.
        spec: What the model was built for. (default: as the graphs say)
        graph_id: Gives the user's id of the number of a graph. (default: from the set, else
            numbers)
        **options: See `lgcn.explain.NodeExplainer`.
    """

    unit: ClassVar[Unit] = "graph"

    def __init__(
        self,
        model: Module,
        graphs: GraphSet,
        *,
        spec: ModelSpec | None = None,
        graph_id: Callable[[int], Any] | None = None,
        **options: Any,
    ) -> None:
        graphs = graphs.to("cpu")
        self.ptr = graphs.ptr.long()
        self.graph_id = ids_of(graphs.targets) if graph_id is None else graph_id
        if spec is None:
            spec = spec_of(model, graphs.targets)
            spec = replace(spec, num_features=graphs.num_features, unit="graph")
        options.setdefault("node_id", self._node_id(graphs))
        super().__init__(model, graphs.graph, spec=spec, **options)

    def _node_id(self, graphs: GraphSet) -> Callable[[int], Any]:
        """Names a node within its graph: by its id, else by its number there."""
        if graphs.graph.node_ids is not None:
            return ids_of(graphs.graph)

        def number_within(node: int) -> int:
            return node - int(self.ptr[torch.searchsorted(self.ptr, node, right=True) - 1])

        return number_within

    @property
    def count(self) -> int:
        return len(self.ptr) - 1

    def name_of(self, number: int) -> Any:
        return self.graph_id(number)

    def _check(self, number: int) -> None:
        super()._check(number)
        if self.ptr[number] == self.ptr[number + 1]:
            raise UsageError(
                f"graph {self.name_of(number)!r} has no nodes, so there is nothing to explain"
            )
        what = f"explaining graph {self.name_of(number)!r}"
        check_memory(self._bytes(*self.ptr[number : number + 2].tolist()), what)

    def _bytes(self, first: int, last: int) -> int:
        """About what an explanation holds: messages and grids of all LGCLs in all worlds."""
        edges = int(self.graph.rowptr[last] - self.graph.rowptr[first])
        values: int = sum(
            conv.in_channels * (2 * edges + 3 * (last - first) * conv.positions)
            for conv in self.parts[0].model.layers
        )
        return len(REFERENCE) * values * 4

    def _told(self, node: int, found: Contributions, *options: Any) -> Explanation:
        told = super()._told(node, found, *options)
        # There is no node that distances could be counted from.
        for entry in (*told.by_node, *told.by_edge):
            del entry["hops"]
        return told

    def important_edges(
        self, node: int, target: int | None = None, *, thorough: bool = False
    ) -> tuple[Tensor, Tensor]:
        raise UsageError(
            "important_edges is for models of nodes, and ranks edges also by how near they are to "
            "a node. Use the contributions of the edges (by_edge)"
        )

    def with_made_features(self, field: Neighbourhood) -> Neighbourhood:
        structure = self.spec.structure
        if structure is None:
            return field
        x = field.graph.features()
        x = x.to_dense() if x.layout == torch.sparse_csr else x
        given = x[:, : self.given_features] if self.given_features else None
        return replace(field, graph=structure.add_to(replace(field.graph, x=given)))

    def _notes(self, found: Contributions) -> tuple[str, ...]:
        (share,) = found.shares
        notes = []
        if share.field.graph.num_edges == 0:
            notes.append("the graph has no edges")
        if not share.chosen:
            notes.append("the model has no LGCL, so nothing is selected from neighbours")
        if any(isinstance(pool, ClusterPooling) for pool in share.part.model.pools):
            notes.append(
                "pooling merges pairs of nodes; LGCLs and read-outs after it name a pair "
                "by its first node"
            )
        return tuple(notes)
