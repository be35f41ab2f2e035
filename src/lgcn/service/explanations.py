"""Explanations of predictions, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lgcn.service.problems import RequestError

if TYPE_CHECKING:
    from lgcn.service.schemas import ExplainRequest
    from lgcn.service.served_run import ServedRun


def explain(served: ServedRun, request: ExplainRequest) -> dict[str, Any]:
    """The explanation of a node.

    Args:
        served: The run.
        request: The node, and what to explain about it.
    """
    raise RequestError("explanations are not there yet", status=501)
