"""`lgcn explain`: why a model predicts what it predicts for a node."""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import GraphStore, Json, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, out, print_json, print_line, print_note
from lgcn.cli.table_flags import OF_NEW_TABLES, takes_tables
from lgcn.cli.words import flag_names
from lgcn.errors import UsageError
from lgcn.utils.progress import step_progress

if TYPE_CHECKING:
    from lgcn.explain.explanation import Explanation


@functools.partial(takes_tables, only=OF_NEW_TABLES)
def explain(
    run: RunFolder,
    node: Annotated[
        list[str], typer.Argument(metavar="NODE...", help="Nodes by id, or by number without ids.")
    ],
    dataset: OtherDataset = None,
    store: GraphStore = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="CLASS", help="Class or label to explain. Default: the predicted one."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(metavar="CLASS", help="Class to compare with. Default: all other classes."),
    ] = None,
    counterfactual: Annotated[
        bool,
        typer.Option(
            "--counterfactual", help="Also find what would change the prediction; takes longer."
        ),
    ] = False,
    top: Annotated[int, typer.Option(help="Rows of each table.")] = 8,
    output: Annotated[
        Path | None,
        typer.Option(
            help="File to write: a table (.csv, .tsv, .parquet), .json, or a picture (.svg, .html)."
        ),
    ] = None,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Explain predictions: the neighbours, edges and columns that mattered, what LGCLs selected.

    The contributions of the columns, and those of the nodes, add up to the score.
    """
    if top < 1:
        raise UsageError(f"--top must be at least 1, got {top}")
    from lgcn.inference.explanations import explanations_format, write_explanations
    from lgcn.inference.trained_run import load_run

    with flag_names(path="--output"), step_progress(err) as on_progress:
        if output is not None:
            explanations_format(output, len(node))
        found = load_run(run).explain(
            node,
            target=target,
            against=against,
            counterfactual=counterfactual,
            on_progress=on_progress,
            dataset=dataset,
            store=store,
            root=root,
            **tables,
        )
    if output is not None and write_explanations(found, output):
        print_note(
            "some ids or names got a ' in front, so that no spreadsheet takes them for formulas"
        )
    if as_json:
        records = [one.to_dict(top) for one in found]
        written = {} if output is None else {"output": str(output)}
        print_json({"run": str(run), **written, "explanations": records})
        return
    if output is not None:
        print_line(f"wrote {output}")
        return
    for one in found:
        _print(one, top)


def _print(found: "Explanation", top: int) -> None:
    sure = "" if found.confidence is None else f", confidence {found.confidence:.1%}"
    predicted = f"{found.predicted:.6g}" if isinstance(found.predicted, float) else found.predicted
    against = "" if found.against is None else f" against {found.against}"
    out.print(f"[bold]{escape(str(found.node))}[/bold]: {escape(str(predicted))}{sure}")
    print_line(
        f"explained: {found.explained}{against}; score {found.score:.4g} = {found.baseline:.4g} "
        f"without features {_signed(found.score - found.baseline)}"
    )
    nodes = Table("node", "contribution", "hops", "columns", title="Nodes", title_justify="left")
    for entry in found.by_node[:top]:
        columns = ", ".join(
            f"{one['column']} {_signed(one['contribution'])}" for one in entry.get("columns", [])
        )
        name = "itself" if entry["hops"] == 0 else str(entry["node"])
        cells = (name, _signed(entry["contribution"]), str(entry["hops"]), columns)
        nodes.add_row(*(escape(cell) for cell in cells))
    out.print(nodes)
    edges = Table("edge", "contribution", title="Edges", title_justify="left")
    for entry in found.by_edge[:top]:
        edge = f"{entry['source']} - {entry['target']}"
        edges.add_row(escape(edge), _signed(entry["contribution"]))
    if found.by_edge:
        out.print(edges)
    columns_ = Table("column", "contribution", "most of it", title="Columns", title_justify="left")
    for entry in found.by_column[:top]:
        most = ", ".join(
            f"{one['feature']} {_signed(one['contribution'])}" for one in entry["features"][:3]
        )
        columns_.add_row(escape(entry["column"]), _signed(entry["contribution"]), escape(most))
    out.print(columns_)
    for layer in found.selected:
        _print_layer(found, layer, top)
    for note in found.notes:
        print_note(note)
    if found.counterfactual is not None:
        _print_changes(found.counterfactual)


def _print_layer(found: "Explanation", layer: dict[str, Any], top: int) -> None:
    places = layer["filled"]
    title = f"LGCL {layer['layer']}: {layer['k']} ranks of {layer['features']} features"
    table = Table("selected", "places", "at rank 1", "strongest", title=title, title_justify="left")
    for entry in layer["neighbours"][:top]:
        strongest = entry["places"][0]
        drivers = found.units.get(strongest["feature"])
        driven = f" ({', '.join(drivers)})" if drivers else ""
        name = "itself" if entry["node"] == found.node else str(entry["node"])
        table.add_row(
            escape(name),
            f"{entry['count']} ({entry['count'] / places:.0%})",
            str(entry["first"]),
            escape(f"{strongest['feature']}, rank {strongest['rank']}{driven}"),
        )
    out.print(table)


def _print_changes(changes: dict[str, Any]) -> None:
    edges, features = changes["edges"], changes["features"]
    out.print("[bold]What would change the prediction[/bold]")
    if edges["remove"] is None:
        print_line(f"edges: {edges['reason']}")
    else:
        listed = ", ".join(f"{one['source']} - {one['target']}" for one in edges["remove"])
        print_line(f"edges: without {listed} it is {edges['predicted']}")
    if features["changes"] is None:
        print_line(f"columns: {features['reason']}")
        return
    listed = ", ".join(_change(one) for one in features["changes"])
    more = features["columns"] - len(features["changes"])
    listed += f" and {more} more" if more > 0 else ""
    print_line(f"columns: {listed}: then it is {features['predicted']}")


def _change(one: dict[str, Any]) -> str:
    """One change: a word that is gone or new, or from one value to another."""
    before, after = one["from"], one["to"]
    if after is None or before is None:
        return f"{one['column']} {'without' if after is None else 'with'} {(before or after)!r}"
    if isinstance(before, float):
        before, after = f"{before:.4g}", f"{after:.4g}"
    return f"{one['column']} from {before} to {after}"


def _signed(value: float) -> str:
    return f"{value:+.4g}"
