"""`lgcn compare`: a page that puts trained models side by side."""

from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.cli.options import Json, MemoryLimit
from lgcn.cli.output import err, print_json, print_line
from lgcn.cli.words import flag_names
from lgcn.utils.progress import step_progress
from lgcn.utils.sizes import format_memory


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN RUN ...", help="Folders that `lgcn train` wrote, two to eight."
        ),
    ],
    output: Annotated[
        Path, typer.Option(help="File to write, .html. Replaced if it exists.")
    ] = Path("comparison.html"),
    memory: MemoryLimit = None,
    as_json: Json = False,
) -> None:
    """Write a page that compares trained models: scores, curves, classes, settings, nodes.

    It is one HTML file, which needs no network. Differences are those from the first run.
    """
    from lgcn.report import write_comparison

    with flag_names(path="--output"), step_progress(err) as on_progress:
        written = write_comparison(runs, output, memory=memory, on_progress=on_progress)
    facts = written.facts
    if as_json:
        print_json(
            {
                "output": str(written.path),
                "bytes": written.size,
                "same_graph": facts.same_graph,
                "same_split": facts.same_split,
                "disagreements": facts.num_differing if facts.same_graph else None,
                "runs": [_record(run) for run in facts.runs],
            }
        )
        return
    size = format_memory(written.size)
    print_line(f"wrote {written.path} ({size}); open it in a browser")


def _record(run: Any) -> dict[str, Any]:
    return {
        "name": run.name,
        "run": str(run.run.folder),
        "metric": run.metric,
        "split": run.main,
        "scores": {split: report["scores"] for split, report in run.reports.items()},
        "problem": run.problem,
    }
