"""``lgcn data info``: the sizes of a data set or a graph store."""

from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import DatasetName, Json, Root
from lgcn.cli.output import out, print_json

if TYPE_CHECKING:
    from lgcn.graph import Graph


def info(dataset: DatasetName, root: Root = None, as_json: Json = False) -> None:
    """Show the sizes of a data set or a graph store."""
    from lgcn.datasets.graph_source import GraphSource
    from lgcn.store.format import is_store

    # A store may be in a folder that has the name of a data set.
    source = (
        GraphSource("store", {"path": dataset})
        if is_store(dataset)
        else GraphSource(dataset, {}, root)
    )
    source.check()
    record = _sizes(source.load())
    if as_json:
        print_json(record)
        return
    table = Table(show_header=False)
    for key, value in record.items():
        table.add_row(key.replace("_", " "), escape(str(value)))
    out.print(table)


def _sizes(graph: "Graph") -> dict[str, Any]:
    from lgcn.graph import SPLITS

    degree = graph.rowptr.diff()
    record: dict[str, Any] = {
        "name": graph.name,
        "graphs": graph.num_graphs,
        "nodes": graph.num_nodes,
        "undirected_edges": graph.num_edges // 2,
        "mean_degree": round(graph.num_edges / max(graph.num_nodes, 1), 2),
        "largest_degree": int(degree.max()) if graph.num_nodes else 0,
        "isolated_nodes": int((degree == 0).sum()),
        "features": graph.num_features,
        "classes": graph.num_classes,
        "labels": "several per node" if graph.multi_label else "one per node",
        "setting": "inductive" if graph.inductive else "transductive",
    }
    for split in SPLITS:
        mask = graph.mask(split)
        record[f"{split}_nodes"] = 0 if mask is None else int(mask.sum())
    return record
