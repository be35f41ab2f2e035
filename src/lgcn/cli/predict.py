"""`lgcn predict`: write the predictions of a trained model to a table."""

import functools
from pathlib import Path
from typing import Annotated, Any

import typer

from lgcn.cli.options import GraphStore, Json, MemoryLimit, OtherDataset, Root, RunFolder
from lgcn.cli.output import err, out, print_json, print_line, print_note
from lgcn.cli.parts import on_parts
from lgcn.cli.table_flags import OF_NEW_TABLES, takes_tables
from lgcn.cli.words import flag_names
from lgcn.errors import UsageError
from lgcn.utils.progress import step_progress


@functools.partial(takes_tables, only=OF_NEW_TABLES)
def predict(
    run: RunFolder,
    output: Annotated[
        Path,
        typer.Option(
            help="File to write: .csv, .tsv or .parquet. Replaced if it exists. For a graph in "
            "parts, a folder, with one Parquet file per part."
        ),
    ],
    dataset: OtherDataset = None,
    store: GraphStore = None,
    abstain_below: Annotated[
        float | None,
        typer.Option(
            help="Predict nothing below this confidence, such as 0.8. Default: predict all."
        ),
    ] = None,
    unlabelled_only: Annotated[
        bool, typer.Option("--unlabelled-only", help="Write only nodes that have no label.")
    ] = False,
    truth: Annotated[
        bool,
        typer.Option(
            " /--no-truth",
            help="Leave out the columns of the true label and the split.",
            show_default=False,
        ),
    ] = True,
    spreadsheet_safe: Annotated[
        bool,
        typer.Option(
            " /--no-spreadsheet-safe",
            help="Do not put a ' before ids and labels that a spreadsheet would run as formulas.",
            show_default=False,
        ),
    ] = True,
    memory: MemoryLimit = None,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Write the prediction for every node to a table, with confidence and probabilities.

    The table also has the true label and the split of each node, as far as they are known.
    """
    from lgcn.inference.trained_run import load_run
    from lgcn.utils.files import is_stream

    if as_json and is_stream(output):
        raise UsageError(f"--json cannot go with --output {output}: both would be one stream")
    chosen: dict[str, Any] = {
        "truth": truth,
        "unlabelled_only": unlabelled_only,
        "abstain_below": abstain_below,
        "memory": memory,
    }
    with flag_names(path="--output"), step_progress(err) as on_progress:
        trained = load_run(run)
        with on_parts(trained, "predict", dataset, store, tables) as parts:
            if parts is not None:
                written = parts.write_predictions(output, on_progress=on_progress, **chosen)
                if not parts.workers.is_first:
                    return
            else:
                written = trained.write_predictions(
                    output,
                    spreadsheet_safe=spreadsheet_safe,
                    on_progress=on_progress,
                    dataset=dataset,
                    store=store,
                    root=root,
                    **chosen,
                    **tables,
                )
    if written.protected:
        print_note(
            f"{written.protected} ids or labels got a ' in front, so that no spreadsheet takes "
            "them for formulas; --no-spreadsheet-safe leaves them as they are"
        )
    if as_json:
        record = {
            "output": str(output),
            f"{trained.spec.unit}s": written.nodes,
            "abstained": written.abstained,
        }
        print_json({**record, "classes": list(trained.class_names)})
        return
    silent = f", {written.abstained} of them left open" if abstain_below is not None else ""
    # Standard output may be where the predictions went.
    console = err if is_stream(output) else out
    print_line(f"wrote {written.nodes} predictions to {output}{silent}", console)
