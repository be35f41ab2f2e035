"""`lgcn report`: a page about a trained model."""

import functools
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.cli.options import GraphStore, Json, MemoryLimit, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, print_json, print_line
from lgcn.cli.table_flags import OF_NEW_TABLES, takes_tables
from lgcn.cli.words import flag_names
from lgcn.utils.progress import step_progress
from lgcn.utils.sizes import format_memory


@functools.partial(takes_tables, only=OF_NEW_TABLES)
def report(
    run: RunFolder,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write, .html. Replaced if it exists. Default: RUN/report.html."),
    ] = None,
    sample: Annotated[
        int,
        typer.Option(
            help="How many nodes, or whole graphs, are shown one by one, 10 to 10000. Scores are "
            "about all of them."
        ),
    ] = 3000,
    dataset: OtherDataset = None,
    store: GraphStore = None,
    memory: MemoryLimit = None,
    open_: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.", show_default=False)
    ] = False,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Write a page about a trained model: scores, charts, a map of the nodes, neighbourhoods.

    Of a model of whole graphs: a map and pictures of the graphs.

    It is one HTML file, which needs no network and can be sent to others.
    """
    from lgcn.report import write_report

    with flag_names(path="--output"), step_progress(err) as on_progress:
        written = write_report(
            run,
            output,
            sample=sample,
            memory=memory,
            on_progress=on_progress,
            dataset=dataset,
            store=store,
            root=root,
            **tables,
        )
    facts = written.facts
    if open_:
        webbrowser.open(written.path.resolve().as_uri())
    if as_json:
        print_json(
            {
                "run": str(run),
                "output": str(written.path),
                "bytes": written.size,
                facts.units: facts.sample.total,
                "sampled": len(facts.sample.nodes),
                "split": facts.main,
                "metric": facts.metric,
                "scores": {name: part["scores"] for name, part in facts.reports.items()},
                "summary": facts.summary,
                "warnings": list(facts.warnings),
            }
        )
        return
    shown = (
        "" if facts.sample.complete else f", with {len(facts.sample.nodes)} sampled {facts.units}"
    )
    print_line(f"wrote {written.path} ({format_memory(written.size)}{shown}); open it in a browser")
