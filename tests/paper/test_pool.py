"""Worker processes: results, failures of all kinds, threads, and that none outlives its parent."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lgcn.paper.pool import Failure, run_tasks

from . import fakes
from .fakes import wait_for


def results(tasks: list[Any], function: Any, **options: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    run_tasks(tasks, function, lambda task, result: found.append((task, result)), **options)
    return found


def is_alive(pid: int) -> bool:
    """Whether the process is there and not only waiting to be forgotten by its parent."""
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "State:\tZ" not in status.read_text()


def blocked_signals(pid: int) -> set[str]:
    lines = dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    mask = int(lines["SigBlk"], 16)
    return {s.name for s in signal.Signals if mask >> (s - 1) & 1}


def test_every_task_has_its_result_and_workers_are_used_again() -> None:
    before = dict(os.environ)
    found = results([1, 2, 3, 4], fakes.threads, processes=2)
    assert sorted(task for task, _ in found) == [1, 2, 3, 4]
    assert all(result["task"] == task for task, result in found)
    assert len({result["pid"] for _, result in found}) <= 2
    assert all(result["OMP_NUM_THREADS"] == "1" for _, result in found)
    assert all(result["NUMBA_NUM_THREADS"] == "1" for _, result in found)
    assert dict(os.environ) == before


def test_threads_can_be_left_to_the_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    [(_, result)] = results([1], fakes.threads, threads=None)
    assert result["OMP_NUM_THREADS"] == "7"
    assert result["NUMBA_NUM_THREADS"] is None


def test_no_task_starts_no_process() -> None:
    assert results([], fakes.threads) == []


def test_a_failure_ends_no_other_task() -> None:
    ends = ["kill", "error", "bug", "exit", None]
    jobs = [fakes.fake_job(i, ends=end) for i, end in enumerate(ends)]
    found = {job.seed: result for job, result in results(jobs, fakes.run_fake)}
    assert isinstance(found[0], Failure)
    assert "SIGKILL" in found[0].message
    assert "memory" in found[0].message
    assert found[1] == Failure("the loss became nan in epoch 3")
    assert found[2] == Failure("KeyError: 'no such thing'")
    assert found[3] == Failure("its process ended with exit code 3")
    assert found[4]["result"]["test_score"] == pytest.approx(0.54)


def test_an_error_here_ends_the_workers(tmp_path: Path) -> None:
    pids = []

    def on_result(task: int, result: Any) -> None:
        pids.append(result["pid"])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks([1, 2], fakes.threads, on_result, processes=2)
    assert not is_alive(pids[0])


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_the_program(how: signal.Signals, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    code = (
        "from tests.paper import fakes\n"
        "from lgcn.paper.pool import run_tasks\n"
        f"run_tasks([{str(file)!r}], fakes.wait_long, print)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_for(lambda: file.exists() and file.read_text())
    worker = int(file.read_text())
    if how == signal.SIGINT:  # a terminal sends it to the worker too, which goes on
        assert "SIGINT" in blocked_signals(worker)
        os.killpg(program.pid, how)
    else:
        program.kill()
    _, err = program.communicate(timeout=30)
    wait_for(lambda: not is_alive(worker))
    # One traceback at most, the program's own.
    assert err.count("Traceback") == (1 if how == signal.SIGINT else 0)
