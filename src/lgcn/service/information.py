"""What a client may know about the model."""

from __future__ import annotations

import math
from typing import Any

from lgcn import __version__
from lgcn.service.served_run import ServedRun

EXAMPLES = 20  # categories of a column that are named


def model_information(served: ServedRun) -> dict[str, Any]:
    """Classes, columns with their kinds, scores and settings; no paths.

    Args:
        served: The run.
    """
    run, graph, result = served.run, served.graph, served.result
    settings = run.settings.to_dict()
    for hidden in ("dataset", "dataset_options"):  # they may hold paths of the user
        settings.pop(hidden, None)
    information = {
        "name": served.name,
        "version": __version__,
        "task": served.task,
        "classes": list(served.class_names),
        "temperature": served.decision.temperature,
        "threshold": served.decision.threshold,
        "interval": _interval(served),
        "graph": {
            "name": graph.name,
            "nodes": graph.num_nodes,
            "entries": graph.num_edges,
            "directed": served.directed,
            "weighted": graph.edge_weight is not None,
            "ids": ("integer" if served.known.integer else "string")
            if served.known.has_ids
            else "number of the node",
            "examples": served.known.examples,
        },
        "new_nodes": {
            "possible": served.refusal is None,
            "reason": served.refusal,
            "hops": served.hops,
            "columns": _columns(served),
            "features": None if served.encoder else served.loaded.given.num_features,
        },
        "scores": {
            "metric": result["metric"],
            **{split: _number(result.get(f"{split}_score")) for split in ("val", "test")},
        },
        "settings": settings,
        "limits": {
            "body_bytes": served.limits.body_bytes,
            **{
                name: getattr(served.limits, name)
                for name in ("max_nodes", "max_edges", "max_neighbours", "timeout", "queue")
            },
        },
    }
    return information


def _interval(served: ServedRun) -> dict[str, float | None] | None:
    found = served.decision.interval
    return None if found is None else {"level": found[0], "half_width": found[1]}


def _columns(served: ServedRun) -> list[dict[str, Any]] | None:
    if served.encoder is None:
        return None
    described = []
    for column, stored in zip(
        served.encoder.columns, served.encoder.to_dict()["columns"], strict=True
    ):
        one: dict[str, Any] = {"name": column.name, "kind": column.kind, "features": column.width}
        if column.kind == "category":
            one["categories"] = stored["categories"][:EXAMPLES]
        described.append(one)
    return described


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and math.isfinite(value) else None
