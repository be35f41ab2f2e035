"""What `lgcn warmup` prints."""

import re

import pytest
from rich.console import Console

from lgcn.cli import warmup as command
from lgcn.training.warmup import Warmup
from lgcn.utils.progress import OnProgress


def test_warmup_tells_what_was_compiled_and_what_was_there(lgcn_, monkeypatch: pytest.MonkeyPatch):
    def stub(on_progress: OnProgress | None) -> Warmup:
        if on_progress is not None:
            on_progress("k largest, float32", 3, 8)
        return Warmup({"lgcn.a._f": ["int32", "int64"]}, {"lgcn.b._g": ["int64"]}, ["/cache"], 1.5)

    monkeypatch.setattr("lgcn.training.warmup.warmup", stub)
    assert lgcn_("warmup", "--json").json == {
        "compiled": {"lgcn.a._f": ["int32", "int64"]},
        "cached": {"lgcn.b._g": ["int64"]},
        "folders": ["/cache"],
        "seconds": 1.5,
    }
    monkeypatch.setattr(command, "err", Console(stderr=True, force_terminal=True, width=100))
    output = lgcn_("warmup")
    assert "38 %" in output.err
    assert "k largest, float32" in output.err
    rows = [re.findall(r"[\w.]+", line) for line in output.out.splitlines()]
    assert ["lgcn.a._f", "2", "0"] in rows
    assert ["lgcn.b._g", "0", "1"] in rows
    assert output.out.endswith("1.5 s; kept in\n/cache\n")


def test_warmup_says_when_nothing_is_kept(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.training.warmup.warmup", lambda on_progress: Warmup({}, {}, [], 1.5))
    assert "1.5 s; nothing is kept: set NUMBA_CACHE_DIR" in lgcn_("warmup").out
