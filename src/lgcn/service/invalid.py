"""Requests that do not look as they should: the field and the reason, in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lgcn.errors import did_you_mean
from lgcn.service.problems import RequestError, shown

if TYPE_CHECKING:
    from fastapi import Request

# What was wanted, by pydantic's name of the error.
_WANTED = {
    "list_type": "a list",
    "string_type": "a string",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "dict_type": "a JSON object",
    "model_type": "a JSON object",
    "model_attributes_type": "a JSON object",
}


def invalid_request(found: Sequence[Mapping[str, Any]]) -> RequestError:
    """The errors that pydantic found as one field and one reason.

    Args:
        found: The errors. A field that does not exist is named before one that is missing, which is
            often the same one, misspelled.
    """
    wrong = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    if wrong["type"] == "json_invalid":
        reason = str(wrong.get("ctx", {}).get("error", "not JSON"))
        return RequestError(f"the body is not valid JSON: {reason}", "body", 400)
    field = _field(wrong["loc"])
    reason = wrong["msg"].removeprefix("Value error, ")
    if wrong["type"] == "extra_forbidden":
        missing = [str(one["loc"][-1]) for one in found if _is_missing_beside(one, wrong)]
        reason = f"no such field{f'; {missing[0]!r} is required' if missing else ''}"
    elif wrong["type"] == "missing":
        reason = "this field is required" if field else "a JSON object is needed"
    elif wrong["type"] in _WANTED:
        reason = f"want {_WANTED[wrong['type']]}, got {_kind(wrong['input'])}"
    return RequestError(reason[:300], field[:300] or "body")


def refuse_unknown(request: Request, *known: str) -> None:
    """Refuses parameters of an address that it does not take.

    Args:
        request: The request.
        *known: The parameters that it takes.
    """
    for name in request.query_params:
        if name not in known:
            hint = f"; {did_you_mean(name, known)}" if known else "; this address takes none"
            raise RequestError(f"no such parameter: {shown(name)}{hint}", name[:300] or "query")


def _is_missing_beside(one: Mapping[str, Any], wrong: Mapping[str, Any]) -> bool:
    return one["type"] == "missing" and bool(one["loc"][:-1] == wrong["loc"][:-1])


def _field(place: Sequence[Any]) -> str:
    field = ""
    for part in place:
        if part not in ("body", "path", "query"):
            field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else str(part)
    return field


def _kind(value: Any) -> str:
    """What a value of JSON is called; a short one is shown."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "an object"
    return shown(value)
