"""The rest of the command line: help, version, warmup."""

import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from rich.console import Console

import lgcn
from lgcn.cli import app as cli
from lgcn.training.warmup import Warmup


def test_help_and_version_load_no_torch():
    code = (
        "import sys\n"
        "from lgcn.__main__ import command_line\n"
        "main = command_line()\n"
        "for option in ('--help', '--version'):\n"
        "    sys.argv = ['lgcn', option]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert not end.code\n"
        "assert not {'torch', 'numba', 'torch_geometric'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "lgcn 0." in done.stdout


def test_warmup_tells_what_was_compiled_and_what_was_there(lgcn_, monkeypatch: pytest.MonkeyPatch):
    def stub(on_step: Callable[[str, int, int], None] | None) -> Warmup:
        if on_step is not None:
            on_step("k largest, float32", 3, 8)
        return Warmup({"lgcn.a._f": ["int32", "int64"]}, {"lgcn.b._g": ["int64"]}, ["/cache"], 1.5)

    monkeypatch.setattr("lgcn.training.warmup.warmup", stub)
    assert lgcn_("warmup", "--json").json == {
        "compiled": {"lgcn.a._f": ["int32", "int64"]},
        "cached": {"lgcn.b._g": ["int64"]},
        "folders": ["/cache"],
        "seconds": 1.5,
    }
    monkeypatch.setattr(cli, "err", Console(stderr=True, force_terminal=True, width=100))
    output = lgcn_("warmup")
    assert "38 %" in output.err
    assert "k largest, float32" in output.err
    rows = [re.findall(r"[\w.]+", line) for line in output.out.splitlines()]
    assert ["lgcn.a._f", "2", "0"] in rows
    assert ["lgcn.b._g", "0", "1"] in rows
    assert output.out.endswith("1.5 s; kept in\n/cache\n")


def test_warmup_says_when_nothing_is_kept(lgcn_, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("lgcn.training.warmup.warmup", lambda on_step: Warmup({}, {}, [], 1.5))
    assert "1.5 s; nothing is kept: set NUMBA_CACHE_DIR" in lgcn_("warmup").out


def test_version(lgcn_):
    assert lgcn_("--version").out == f"lgcn {lgcn.__version__}\n"
