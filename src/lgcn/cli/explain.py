"""`lgcn explain`: why a model predicts what it predicts for a node, or for a whole graph."""

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
    from lgcn.inference.trained_run import TrainedRun

FEW = 3  # columns that a search for few changes may change


@functools.partial(takes_tables, only=OF_NEW_TABLES, leave_out=("target",))  # a class, here
def explain(
    run: RunFolder,
    node: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...",
            help="Nodes by id, or by number without ids; graphs for a model of whole graphs.",
        ),
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
    """Explain predictions: the nodes, edges and columns that mattered, what LGCLs selected.

    The contributions of the columns, and those of the nodes, add up to the score.
    """
    if top < 1:
        raise UsageError(f"--top must be at least 1, got {top}")
    from lgcn.inference.explanations import explanations_format, write_explanations
    from lgcn.inference.trained_run import load_run

    with flag_names(path="--output"), step_progress(err) as on_progress:
        if output is not None:
            explanations_format(output, len(node))
        trained = load_run(run)
        found = trained.explain(
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
        _print(one, top, trained)


def _print(found: "Explanation", top: int, run: "TrainedRun") -> None:
    against = "" if found.against is None else f" against {found.against}"
    explained = found.explained
    if run.spec.task == "regression":
        explained = _target_column(run) or explained
        predicted = f"{explained} {found.predicted:.6g}{_interval(found.predicted, run)}"
    else:
        predicted = str(found.predicted)
    sure = "" if found.confidence is None else f", confidence {found.confidence:.1%}"
    out.print(f"[bold]{escape(str(found.node))}[/bold]: {escape(predicted)}{sure}")
    print_line(
        f"explained: {explained}{against}; score {found.score:.4g} = {found.baseline:.4g} "
        f"without features {_signed(found.score - found.baseline)}"
    )
    distance = ["hops"] if found.unit == "node" else []
    head = ("node", "contribution", *distance, "columns")
    nodes = Table(*head, title="Nodes", title_justify="left")
    for entry in found.by_node[:top]:
        columns = ", ".join(
            f"{one['column']} {_signed(one['contribution'])}" for one in entry.get("columns", [])
        )
        name = "itself" if entry.get("hops") == 0 else str(entry["node"])
        hops = [str(entry[one]) for one in distance]
        cells = (name, _signed(entry["contribution"]), *hops, columns)
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
    over_all = " for each node" if found.unit == "graph" else ""
    for layer in found.selected:
        _print_selection(found, layer, f"LGCL {layer['layer']}", over_all, top)
    for readout in found.readouts:
        reads = "the embedding" if readout["level"] == 0 else f"LGCL {readout['level']}"
        _print_selection(found, readout, f"Read-out {readout['readout']} of {reads}", "", top)
    for note in found.notes:
        print_note(note)
    if found.counterfactual is not None:
        _print_changes(found.counterfactual)


def _target_column(run: "TrainedRun") -> str | None:
    """The column that a regression predicts, if it was trained on tables."""
    named = run.settings.dataset_options.get("label_column")
    if isinstance(named, list | tuple) and len(named) == 1:
        named = named[0]
    return named if isinstance(named, str) else None


def _interval(value: float, run: "TrainedRun") -> str:
    """The interval around a predicted number, if its width is known."""
    level, half_width = run.interval or (0.0, None)
    if half_width is None:
        return ""
    return f", {level:.0%} interval {value - half_width:.6g} to {value + half_width:.6g}"


def _print_selection(
    found: "Explanation", layer: dict[str, Any], who: str, over_all: str, top: int
) -> None:
    """What an LGCL or a read-out selected, as a table."""
    places, ranks = layer["filled"], "1 rank" if layer["k"] == 1 else f"{layer['k']} ranks"
    title = f"{who}: {ranks} of {layer['features']} features{over_all}"
    head = ("selected", "places (of those filled)", "at rank 1", "strongest")
    table = Table(*head, title=title, title_justify="left")
    for entry in layer["neighbours"][:top]:
        strongest = entry["places"][0]
        drivers = found.units.get(strongest["feature"])
        driven = f" ({', '.join(drivers)})" if drivers else ""
        is_own = found.unit == "node" and entry["node"] == found.node
        name = "itself" if is_own else str(entry["node"])
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
    if edges.get("reason") and edges.get("reason") == features.get("reason"):
        print_line(f"{edges['reason']}")
        return
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
    if features["columns"] > FEW or any(
        one.get("unit") == "feature" for one in features["changes"]
    ):
        listed = (
            "No change of up to three columns is enough. If all features move a little, which "
            f"need not be a possible row: {listed}"
        )
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
