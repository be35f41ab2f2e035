"""`lgcn data check`: what was understood of a graph, and what looks wrong."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from lgcn.cli.data.check_graphs import check_graphs
from lgcn.cli.data.report_parts import (
    MOST_ROWS,
    bars,
    feature_columns,
    import_rows,
    more,
    remarks,
    table,
)
from lgcn.cli.options import Json, Root
from lgcn.cli.output import out, print_json
from lgcn.cli.table_flags import takes_tables
from lgcn.cli.words import in_flags
from lgcn.errors import UsageError

if TYPE_CHECKING:
    from lgcn.datasets.graph_report import GraphReport


@takes_tables
def check(
    *,
    dataset: Annotated[
        str | None, typer.Option(help="Data set by name or .npz path, instead of your own tables.")
    ] = None,
    root: Root = None,
    as_json: Json = False,
    tables: dict[str, Any],
) -> None:
    """Show what was understood of your tables, or of a data set, and what looks wrong."""
    from lgcn.datasets.graph_source import choose_source

    if bool(tables) == (dataset is not None):
        raise UsageError("say what to check: --edges and --nodes, or --dataset")
    source = choose_source(dataset, root=root, **tables)
    assert source is not None
    if source.is_partition:
        raise UsageError(
            f"{dataset} is a graph in parts, which is not checked. Give the graph store it was cut "
            "from, or see lgcn data info"
        )
    source.check()
    if source.is_graph_set:
        check_graphs(source, as_json=as_json)
        return
    from lgcn.datasets.graph_report import check_source

    report = check_source(source)
    # Notes and warnings name arguments of the library.
    report = replace(
        report,
        notes=list(map(in_flags, report.notes)),
        warnings=list(map(in_flags, report.warnings)),
    )
    if as_json:
        print_json(report.to_dict())
    else:
        out.print(render(report))


def render(report: "GraphReport") -> RenderableType:
    """The report with tables and bars: `rich.print(render(report))`.

    Args:
        report: What `lgcn.datasets.graph_report.check_graph` returned.
    """
    sizes = table(report.name)
    for name, value in _sizes(report):
        sizes.add_row(name, Text(value))
    parts: list[RenderableType] = [sizes, *feature_columns(report.columns)]
    degrees = [
        (f"{r['from']}" if r["from"] == r["to"] else f"{r['from']}-{r['to']}", r["nodes"])
        for r in report.degree_histogram
    ]
    parts.append(bars("\nNodes by number of neighbours", "neighbours", degrees))
    if report.classes:
        head = "class" if report.labels == "one per node" else "label"
        classes = list(report.classes.items())[:MOST_ROWS]
        parts += [bars(f"\nNodes by {head}", head, classes), *more(len(report.classes))]
    return Group(*parts, *remarks(report.notes, report.warnings))


def _sizes(report: "GraphReport") -> list[tuple[str, str]]:
    degree = report.degree
    kinds = [
        "directed" if report.directed else "undirected",
        "weighted" if report.weighted else "unweighted",
    ]
    labels = "none" if report.target is None else report.labels
    rows = [("nodes", f"{report.nodes:,}")]
    if report.graphs > 1:
        rows.append(("graphs", f"{report.graphs:,}"))
    rows += [
        ("edges", f"{report.edges:,} ({', '.join(kinds)})"),
        (
            "neighbours",
            f"{degree['smallest']} to {degree['largest']:,}, mean {degree['mean']:g}, median "
            f"{degree['median']:g}",
        ),
        ("isolated nodes", f"{report.isolated_nodes:,}"),
        ("self-loops", f"{report.self_loops:,}"),
        ("duplicate edges", f"{report.duplicate_edges:,}"),
        ("components", f"{report.components:,}, largest {report.largest_component:,} nodes"),
        ("features", f"{report.features:,}"),
        ("labels", f"{report.labels}, {len(report.classes)} in all" if report.classes else labels),
        ("labelled nodes", f"{report.labelled_nodes:,}"),
    ]
    if report.target is not None:
        target = report.target
        spread = f"mean {target['mean']:.4g}, standard deviation {target['deviation']:.4g}"
        rows.append(("target", f"{target['smallest']:.4g} to {target['largest']:.4g}, {spread}"))
    rows += [(f"{split} nodes", f"{number:,}") for split, number in report.splits.items()]
    if report.homophily is not None:
        rows.append(
            ("homophily", f"{report.homophily:.2f} (by chance {report.homophily_by_chance:.2f})")
        )
    rows.append(("suggested k", f"{report.suggested_k} (training uses it with k=none)"))
    return [*rows, *import_rows(report.imported)]
