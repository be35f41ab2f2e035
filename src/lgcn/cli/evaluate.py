"""`lgcn evaluate`: score a trained model."""

import functools
from typing import Any

from rich.markup import escape
from rich.table import Table

from lgcn.cli.options import GraphStore, Json, OtherDataset, Root, RunFolder
from lgcn.cli.output import out, print_json
from lgcn.cli.parts import on_parts
from lgcn.cli.score_tables import print_scores
from lgcn.cli.table_flags import OF_NEW_TABLES, takes_tables
from lgcn.training.metric_names import metric_text


@functools.partial(takes_tables, only=OF_NEW_TABLES)
def evaluate(
    run: RunFolder,
    dataset: OtherDataset = None,
    store: GraphStore = None,
    root: Root = None,
    as_json: Json = False,
    *,
    tables: dict[str, Any],
) -> None:
    """Score a trained model on the nodes of its own graph, or of another one."""
    from lgcn.inference.trained_run import load_run

    trained = load_run(run)
    with on_parts(trained, "evaluate", dataset, store, tables) as parts:
        if parts is None:
            found = trained.evaluate(dataset=dataset, store=store, root=root, **tables)
        else:
            of_all = parts.evaluate()
            if of_all is None:  # the first process prints
                return
            found = of_all
    if as_json:
        record = {"dataset": found.graph, "metric": found.metric, "run": str(run)}
        more = {"baselines": found.baselines, "summary": found.summary}
        print_json({**record, "splits": found.splits, **more, "warnings": list(found.warnings)})
        return
    table = Table(title=escape(f"{run} on {found.graph}"), title_justify="left")
    for column in ("split", f"{found.unit}s", found.metric, "loss"):
        table.add_column(column, justify="left" if column == "split" else "right")
    for split, values in found.splits.items():
        score, loss = metric_text(found.metric, values["score"]), f"{values['loss']:.4f}"
        table.add_row(split, str(values["nodes"]), score, loss)
    out.print(table)
    print_scores(found.splits, found.baselines, found.summary, found.unit)
