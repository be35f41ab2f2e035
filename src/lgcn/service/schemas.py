"""What requests look like. Wrong ones are refused with the field and the reason."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

MAX_TEXT = 100_000  # characters of a cell
MAX_ID = 1000
MAX_LIST = 100_000  # entries of a cell that is a list


def _check_id(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"an id is a string or a whole number, got {type(value).__name__}")
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError("an id that is a number has at most 64 bits")
        return value
    _check_text(value)
    if not 1 <= len(value) <= MAX_ID:
        raise ValueError(f"an id has 1 to {MAX_ID} characters, got {len(value)}")
    return value


def _check_text(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("text must be valid Unicode, got half of a surrogate pair") from None


def _check_cell(value: Any) -> Any:
    """A cell is null, a string, a number, true or false, or a list of strings or numbers."""
    if isinstance(value, list):
        if len(value) > MAX_LIST:
            raise ValueError(f"a list has at most {MAX_LIST} entries, got {len(value)}")
        kinds = {str if isinstance(one, str) else float for one in value}
        if len(kinds) > 1 or any(isinstance(one, bool | list | dict | None) for one in value):
            raise ValueError("a list holds strings or numbers, all of one kind")
        return [_check_single(one) for one in value]
    return _check_single(value)


def _check_single(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        _check_text(value)
        if len(value) > MAX_TEXT:
            raise ValueError(f"text has at most {MAX_TEXT} characters, got {len(value)}")
        return value
    if isinstance(value, int | float):
        return _check_number(value)
    raise ValueError(
        "a cell is null, a string, a number, true, false, or a list of strings or numbers, got "
        f"{'an object' if isinstance(value, dict) else type(value).__name__}"
    )


def _check_number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"want a number, got {type(value).__name__}")
    try:
        finite = math.isfinite(value)
    except OverflowError:  # a whole number beyond any float
        finite = False
    if not finite:
        raise ValueError("a number must be finite and at most 1.8e308")
    return value


_ID_SCHEMA = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
_SINGLE = [{"type": kind} for kind in ("string", "number", "boolean", "null")]
_CELL_SCHEMA = {"anyOf": [*_SINGLE, {"type": "array", "items": {"anyOf": _SINGLE[:2]}}]}

NodeId = Annotated[Any, AfterValidator(_check_id), WithJsonSchema(_ID_SCHEMA)]
Cell = Annotated[Any, AfterValidator(_check_cell), WithJsonSchema(_CELL_SCHEMA)]
Number = Annotated[Any, AfterValidator(_check_number), WithJsonSchema({"type": "number"})]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class NewNode(_Strict):
    """A node that the graph does not have."""

    id: Annotated[NodeId, Field(description="An id that no node of the graph has.")]
    columns: Annotated[
        dict[str, Cell],
        Field(
            description="Cells as in the node table, by column; an omitted one is an empty cell."
        ),
    ] = {}
    features: Annotated[
        list[Number] | None,
        Field(description="Numbers as the model takes them, if it was not trained on columns."),
    ] = None


class Edge(_Strict):
    """An edge of a new node, to a node of the graph or to another new node."""

    source: NodeId
    target: NodeId
    weight: Annotated[
        Number | None, Field(description="At least 0; for graphs with weights, and needed there.")
    ] = None


class PredictRequest(_Strict):
    """Nodes of the graph by id, new nodes, or both."""

    nodes: Annotated[list[NodeId], Field(description="Ids of nodes of the graph.")] = []
    new_nodes: list[NewNode] = []
    edges: Annotated[
        list[Edge], Field(description="Edges of new nodes; each has at least one new end.")
    ] = []


class ExplainRequest(_Strict):
    """A node of the graph, and what to explain about it."""

    node: Annotated[NodeId, Field(description="Id of a node of the graph.")]
    target: Annotated[
        str | None, Field(description="The class to explain. Default: the predicted one.")
    ] = None
    against: Annotated[
        str | None, Field(description="A class to compare with: why this and not that.")
    ] = None
    counterfactual: Annotated[
        bool, Field(description="Also search what would have to change for another class.")
    ] = False
    picture: Annotated[bool, Field(description="Add the explanation as an SVG picture.")] = False


class InferTensor(_Strict):
    """An input tensor of the Open Inference Protocol."""

    name: str
    shape: list[int]
    datatype: str
    parameters: dict[str, Any] | None = None
    data: list[Any]


class InferOutput(_Strict):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] | None = None


class InferRequest(_Strict):
    """An inference request of the Open Inference Protocol, version 2."""

    id: str | None = None
    parameters: dict[str, Any] | None = None
    inputs: list[InferTensor]
    outputs: list[InferOutput] | None = None
