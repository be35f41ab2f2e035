"""Sub-graphs of a graph, and several graphs as one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from lgcn.graph.checks import check_sparse_features
from lgcn.graph.csr import checked_nodes, one_index_dtype, stack_offsets, stack_rows
from lgcn.ops.induced_subgraph import induced_subgraph
from lgcn.ops.structure import csr_parts, trust
from lgcn.utils.limits import MAX_INT32

if TYPE_CHECKING:
    from torch import Tensor

    from lgcn.graph.graph import Graph

# Fields with one row per node that a sub-graph takes along. Features go through features().
NODE_TENSORS = ("y", "train_mask", "val_mask", "test_mask", "node_weight", "sample_weight")


def subgraph_fields(graph: Graph, nodes: Tensor, *, keep_degree: bool) -> dict[str, Any]:
    """The fields of `lgcn.Graph.subgraph`, which describes the arguments."""
    nodes = checked_nodes(nodes, graph.num_nodes)
    rowptr, col, entry = induced_subgraph(graph.rowptr, graph.col, nodes)
    degree = graph.row_degree()[nodes] if keep_degree else None
    ids = nodes if graph.n_id is None else graph.n_id[nodes]
    taken: dict[str, Any] = {
        key: value.index_select(0, nodes)  # a third of the time of value[nodes]
        for key in NODE_TENSORS
        if (value := getattr(graph, key)) is not None
    }
    rowptr, col = one_index_dtype(rowptr, col)
    trust(rowptr, col, nodes.numel())  # what was just made need not be read to check it
    return {
        "rowptr": rowptr,
        "col": col,
        "x": None if graph.x is None else _features_of(graph, graph.x, nodes),
        **taken,
        "edge_weight": None if graph.edge_weight is None else graph.edge_weight[entry],
        "edge_attr": None if graph.edge_attr is None else graph.edge_attr.index_select(0, entry),
        "degree": degree,
        "n_id": ids,
        "node_ids": None if graph.node_ids is None else graph.node_ids[nodes.cpu().numpy()],
        "label_names": graph.label_names,
        "encoder": graph.encoder,
        "edge_encoder": graph.edge_encoder,
        "name": graph.name,
    }


def _features_of(graph: Graph, x: Tensor, nodes: Tensor) -> Tensor:
    """The features of some nodes, which are not checked again if all features were."""
    found = graph.features(nodes)
    if found.layout == torch.sparse_csr and not graph._adjacency.trusted:
        check_sparse_features(x)  # cheap, unless they changed
        rowptr, col, _ = csr_parts(found)
        trust(rowptr, col, found.size(1))
    return found


def concat_fields(graphs: Sequence[Graph]) -> dict[str, Any]:
    """The fields of `lgcn.Graph.concat` of two graphs or more."""
    sizes = torch.tensor([0] + [graph.num_nodes for graph in graphs])
    offsets = sizes.cumsum(0)
    parts: dict[str, Any] = {}
    for key in ("x", *NODE_TENSORS, "edge_weight", "edge_attr", "degree"):
        values = [getattr(graph, key) for graph in graphs]
        present = [value is not None for value in values]
        if key == "degree" and any(present):  # the other graphs have row sums
            parts[key] = torch.cat([graph.row_degree() for graph in graphs])
            continue
        if any(present) and not all(present):
            raise ValueError(f"{key} must be given for all graphs or for none")
        if key == "edge_attr" and len({value.shape[1:] for value in values if all(present)}) > 1:
            widths = [graph.num_edge_features for graph in graphs]
            raise ValueError(f"edge_attr must have as many columns in all graphs, got {widths}")
        if all(present):
            if key == "x":  # each graph may have its own feature_scale
                values = [graph.features() for graph in graphs]
            parts[key] = stack_rows(values)
    n_id = [graph.n_id for graph in graphs]
    col = [graph.col for graph in graphs]
    if int(offsets[-1]) > MAX_INT32:  # a tensor of int32 plus an offset is int32
        col = [numbers.long() for numbers in col]
    rowptr, stacked = one_index_dtype(
        stack_offsets([graph.rowptr for graph in graphs]),
        torch.cat([c + o for c, o in zip(col, offsets, strict=False)]),
    )
    return {
        "rowptr": rowptr,
        "col": stacked,
        "ptr": offsets,
        "n_id": torch.cat(n_id) if all(i is not None for i in n_id) else None,  # type: ignore[arg-type]
        "label_names": graphs[0].label_names,
        "encoder": graphs[0].encoder,
        "edge_encoder": graphs[0].edge_encoder,
        "name": graphs[0].name,
        **parts,
    }
