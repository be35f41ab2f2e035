"""`lgcn data info`: the sizes of a data set, of many graphs, a graph store or a partition."""

from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import DatasetName, Json, Root
from lgcn.cli.output import out, print_json
from lgcn.cli.partition import print_partition, summary


def info(dataset: DatasetName, root: Root = None, as_json: Json = False) -> None:
    """Show the sizes of a data set, a graph store or a partition."""
    from lgcn.datasets.graph_source import GraphSource
    from lgcn.partition import check_partition, is_partition
    from lgcn.store.format import is_store

    if is_partition(dataset):
        header = check_partition(dataset)
        record = summary(header)
        print_json(record) if as_json else print_partition(dataset, header["name"], record)
        return
    # A store may be in a folder that has the name of a data set.
    in_store = is_store(dataset)
    source = GraphSource("store", {"path": dataset}) if in_store else GraphSource(dataset, {}, root)
    source.check()
    from lgcn.datasets.graph_report import graph_sizes
    from lgcn.graph import GraphSet

    if in_store:
        from lgcn.store.open_store import open_store

        store = open_store(dataset)
        record = graph_sizes(store.graph, directed=store.header["directed"])
    else:
        loaded = source.load()
        if isinstance(loaded, GraphSet):
            from lgcn.datasets.graph_set_report import graph_set_sizes

            record = graph_set_sizes(loaded)
        else:
            record = graph_sizes(loaded)
    if as_json:
        print_json(record)
        return
    table = Table(show_header=False)
    for key, value in record.items():
        if isinstance(value, dict):  # of all graphs
            value = ", ".join(f"{name} {number:,}" for name, number in value.items())
        table.add_row(key.replace("_", " "), escape(str(value)))
    out.print(table)
