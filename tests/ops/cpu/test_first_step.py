"""What a first training compiles: no more kernels than it needs, all of them ahead."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPORT = """
import json
from lgcn.training.warmup import kernels
stats = {name: kernel.stats for name, kernel in kernels().items()}
print(json.dumps([
    {name: sum(s.cache_misses.values()) for name, s in stats.items() if s.cache_misses},
    {name: sum(s.cache_hits.values()) for name, s in stats.items() if s.cache_hits},
]))
"""
AHEAD = """
from lgcn.ops.cpu.first_step import compile_first_step
compile_first_step("int64")
"""
TRAIN = """
from lgcn.__main__ import command_line
try:
    command_line().main()
except SystemExit as end:
    assert not end.code, end.code
"""
# With each specialisation, the first command on a machine takes longer.
COMPILED = {
    "lgcn.ops.cpu.kernels.row_chunks": 1,
    "lgcn.ops.cpu.select.k_largest": 1,
    "lgcn.ops.cpu.kernels.k_largest_grad_x": 1,
    "lgcn.ops.cpu.kernels.spmm": 1,
    "lgcn.ops.dropout._drop": 1,
    "lgcn.ops.dropout._drop_in_place": 1,
    "lgcn.ops.structure._place_by_column": 1,
    "lgcn.utils.splitmix.mix": 1,
}


def python(cache: Path, code: str, *arguments: str) -> Any:
    """The JSON on the last line that another process prints, which uses this cache folder."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(300)  # two processes, of some seconds each where nothing else runs
def test_the_first_command_compiles_eight_kernels_and_all_of_them_ahead(tmp_path: Path) -> None:
    compiled, loaded = python(tmp_path / "cache", AHEAD + REPORT)
    assert compiled == COMPILED
    assert loaded == {}
    train = ("train", "--dataset", "digits", "--set", "max_epochs=2")
    run = ("--out", str(tmp_path / "run"), "--quiet", "--no-baselines")
    compiled, loaded = python(tmp_path / "cache", TRAIN + REPORT, *train, *run)
    assert compiled == {}
    inlined = {"lgcn.utils.splitmix.mix"}  # in the machine code of others
    assert set(loaded) == set(COMPILED) - inlined
