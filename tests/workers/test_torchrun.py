"""The real torchrun, which takes seconds to start; other tests have `tests.workers.launch`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from .data import SETTINGS, Data, parts_of, small_graph
from .processes import ROOT
from .trainings import run_training

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return parts_of(small_graph(), tmp_path_factory.mktemp("data"))


def torchrun(*arguments: str) -> subprocess.CompletedProcess[str]:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, *launcher, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def flags(data: Data, out: Path) -> list[str]:
    values = [flag for name, value in SETTINGS.items() for flag in ("--set", f"{name}={value}")]
    return ["--graph", data.path, "--out", str(out), "--no-baselines", "--quiet", *values]


def test_torchrun_trains_as_the_tests_do(data: Data, tmp_path: Path):
    done = torchrun("-m", "lgcn", "train", *flags(data, tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("saved in") == 1  # one rank prints
    expected = run_training(data, tmp_path / "other" / "run")
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == expected.weights


def test_torchrun_starts_a_killed_training_again(data: Data, tmp_path: Path):
    out = tmp_path / "run"
    done = torchrun("--max-restarts", "2", "-m", "tests.workers.killed", data.path, str(out))
    assert done.returncode == 0, done.stderr
    assert re.search("rank 0 of 2 waited .* rank 1 is missing", done.stderr)
    expected = run_training(data, tmp_path / "other" / "run")
    assert (out / "model.safetensors").read_bytes() == expected.weights


def test_a_mistake_is_one_line_per_rank(data: Data, tmp_path: Path):
    done = torchrun("-m", "lgcn", "train", *flags(data, tmp_path / "run"), "--set", "k=many")
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if "Error: " in line and "k" in line]
    assert any("many" in line for line in lines), done.stderr
