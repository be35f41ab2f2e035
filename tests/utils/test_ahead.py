"""Kernels that another process compiles while this one does something else."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

from lgcn.utils import ahead

SLEEP = "import time\ntime.sleep(60)\n"


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that the process can import."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path / "helper.py"


def test_a_kernel_of_the_package_waits_for_the_process(module: Path, tmp_path: Path) -> None:
    module.write_text(
        textwrap.dedent(f"""
            import time
            time.sleep(0.3)
            open({str(tmp_path / "done")!r}, "w").close()
        """)
    )
    with ahead.compiling("helper", package="lgcn.ops"):
        assert not ahead.wait("lgcn.tables.ids")
        assert not (tmp_path / "done").exists()
        assert ahead.wait("lgcn.ops.cpu.kernels")
        assert (tmp_path / "done").exists()
    assert not ahead.wait("lgcn.ops.cpu.kernels")


def test_the_process_does_not_outlive_the_block(module: Path) -> None:
    module.write_text(SLEEP)
    with ahead.compiling("helper", package="lgcn.ops"):
        helper = ahead._helper
        assert helper is not None
        assert helper.process.poll() is None
    assert helper.process.returncode != 0


def test_a_module_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("helper.py").write_text("open('ran', 'w').close()")
    with ahead.compiling("helper", package="lgcn.ops"):
        assert ahead.wait("lgcn.ops.dropout")
    assert not Path("ran").exists()


def test_without_another_process_the_block_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with ahead.compiling("helper", package="lgcn.ops"):
        assert not ahead.wait("lgcn.ops.cpu.kernels")


def test_a_core_is_spare_if_this_process_may_use_it_and_others_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cores, load, spare in ((2, 0.3, True), (1, 0.3, False), (2, 1.8, False), (8, 3.0, True)):
        allowed = set(range(cores))
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, a=allowed: a, raising=False)
        monkeypatch.setattr(os, "getloadavg", lambda load=load: (load, 0.0, 0.0), raising=False)
        assert ahead.spare_core() == spare
