"""One tiny trained run, its report, and a second run to compare it with, for all tests here."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lgcn.report import importance
from lgcn.report.write import WrittenReport, write_report
from tests.report.runs import GRAPH_KINDS, train_graph_run, train_run

EXPLAINED = 8
READY = "return document.documentElement.dataset.ready === 'yes'"


@pytest.fixture(scope="session", autouse=True)
def _few_explanations() -> Iterator[None]:
    """A report explains few nodes here: each takes milliseconds, and there are many reports."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importance, "EXPLAINED", EXPLAINED)
        yield


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Gives the run of a kind (see `tests.report.runs`); each is trained once."""
    runs: dict[Any, Path] = {}

    def run(kind: str = "classes", *settings: str) -> Path:
        if (kind, settings) not in runs:
            folder = tmp_path_factory.mktemp(kind)
            train = train_graph_run if kind in GRAPH_KINDS else train_run
            runs[kind, settings] = train(folder, kind, *settings)
        return runs[kind, settings]

    return run


@pytest.fixture(scope="session")
def written(trained: Callable[..., Path]) -> Callable[..., WrittenReport]:
    """Gives the report of a kind of run; each is written once."""
    reports: dict[str, WrittenReport] = {}

    def report(kind: str = "classes") -> WrittenReport:
        if kind not in reports:
            reports[kind] = write_report(trained(kind))
        return reports[kind]

    return report
