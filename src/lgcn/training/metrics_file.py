"""Checks what is read from ``metrics.json``, which anyone may have written."""

from typing import Any

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr, TypeAdapter

from lgcn.training.metric_names import FACTS

Number = float | int | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Class(_Part):
    # "class" is a keyword of Python, so it is checked below.
    support: StrictInt
    predicted: StrictInt
    precision: Number
    recall: Number
    f1: Number


class _Confusion(_Part):
    true: StrictStr
    predicted: StrictStr
    nodes: StrictInt


class _Coverage(_Part):
    level: float
    half_width: float
    share: float


class _Report(_Part):
    task: StrictStr
    nodes: StrictInt
    scores: dict[str, Number]
    notes: dict[str, str]
    per_class: list[_Class] | None = None
    confusion_matrix: list[list[int]] | None = None
    confusions: list[_Confusion] | None = None
    never_predicted: list[str] | None = None
    coverage: _Coverage | None = None


class _Baseline(_Part):
    name: StrictStr
    val: dict[str, Number]
    test: dict[str, Number] | None = None


class _Baselines(_Part):
    majority: _Baseline
    features: _Baseline | None
    limits: list[str]
    seconds: float


class _Metrics(_Part):
    metric: StrictStr
    splits: dict[str, _Report]
    baselines: _Baselines | None
    summary: StrictStr | None
    warnings: list[str]


_ADAPTER = TypeAdapter(_Metrics)


def check_metrics(value: Any) -> dict[str, Any]:
    """The value, if it has the shape of `lgcn.training.run_metrics.run_metrics`.

    Raises ValueError otherwise.
    """
    _ADAPTER.validate_python(value)
    if value["metric"] not in FACTS:
        raise ValueError(f"metric must be one of {', '.join(FACTS)}")
    for split, report in value["splits"].items():
        if split not in ("train", "val", "test"):
            raise ValueError(f"splits must be train, val and test, got {split!r:.80}")
        rows = report.get("per_class") or []
        if not all(isinstance(row.get("class"), str) for row in rows):
            raise ValueError("per_class must have the name of each class")
        matrix = report.get("confusion_matrix")
        if matrix is not None and {len(rows)} != {len(matrix), *map(len, matrix)}:
            raise ValueError("confusion_matrix must have a row and a column per class")
    found: dict[str, Any] = value
    return found
