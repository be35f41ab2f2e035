"""Explanations of predictions, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lgcn.errors import UsageError
from lgcn.service.field import reached
from lgcn.service.problems import RequestError

if TYPE_CHECKING:
    from lgcn.service.schemas import ExplainRequest
    from lgcn.service.served_run import ServedRun

TOP = 200  # entries of each list; a hub has thousands of neighbours


def explain(served: ServedRun, request: ExplainRequest) -> dict[str, Any]:
    """The explanation of a node.

    Args:
        served: The run.
        request: The node, and what to explain about it.
    """
    [number] = served.known.find([request.node], "node").tolist()
    most = served.limits.max_neighbours
    if served.hops is not None and reached(served.graph, [number], served.hops, most) is None:
        raise RequestError(
            f"the prediction depends on more than {most} nodes, all within {served.hops} edges of "
            "the node; the service explains no more (--max-neighbours)",
            "node",
            413,
        )
    options: dict[str, Any] = {"target": request.target, "against": request.against}
    try:
        [found] = served.explainer.explain(
            [number], counterfactual=request.counterfactual, **options
        )
    except UsageError as error:
        named = (
            name for name, value in options.items() if value is not None and name in str(error)
        )
        raise RequestError(str(error), next(named, "node")) from None
    return found.to_dict(top=TOP) | ({"picture": found.svg()} if request.picture else {})
