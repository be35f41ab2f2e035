"""Resuming: what has a record is not run again; what is damaged or foreign is."""

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgcn.paper.jobs import Job
from lgcn.paper.pool import Failure
from lgcn.paper.records import read_record, record_path, write_record
from lgcn.paper.runner import Outcome, run_jobs

from .fakes import fake_job, fake_record, run_fake, wait_for


def run(jobs: list[Job], folder: Path, **options: Any) -> Outcome:
    return run_jobs(jobs, folder, run_fake, **options)


def test_runs_once_and_never_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [fake_job(seed, log=str(log)) for seed in range(3)]
    calls: list[tuple[str, Any, int, int]] = []
    outcome = run([*jobs, jobs[0]], tmp_path, on_run=lambda *call: calls.append(call))
    assert (outcome.run, outcome.reused, outcome.failed, outcome.notes) == (3, 0, [], [])
    assert sorted(log.read_text().split()) == [job.id for job in jobs]
    assert [call[2:] for call in calls] == [(1, 3), (2, 3), (3, 3)]
    for job in jobs:
        assert read_record(tmp_path, job) == (fake_record(job), None)
    again = run([*jobs, fake_job(3, log=str(log))], tmp_path)
    assert (again.run, again.reused) == (1, 3)
    assert len(log.read_text().split()) == 4
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".")]


def test_failures_are_not_recorded(tmp_path: Path) -> None:
    bad = [fake_job(i, ends=end) for i, end in enumerate(("error", "kill"))]
    calls: list[Any] = []
    outcome = run([*bad, fake_job(5)], tmp_path, on_run=lambda *call: calls.append(call))
    assert outcome.run == 1
    messages = {job.seed: message for job, message in outcome.failed}
    assert messages.keys() == {0, 1}
    assert messages[0] == "the loss became nan in epoch 3"
    assert "SIGKILL" in messages[1]
    assert sum(isinstance(call[1], Failure) for call in calls) == 2
    assert calls[-1][2:] == (3, 3)
    assert [path.name for path in (tmp_path / "runs").rglob("*.json")] == ["seed-5.json"]
    assert run([*bad, fake_job(5)], tmp_path).reused == 1


def test_damaged_and_foreign_records_are_run_again(tmp_path: Path) -> None:
    damages: list[Callable[[str], str]] = [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: "null",
        lambda text: json.dumps(json.loads(text) | {"format": 99}),
        lambda text: json.dumps(json.loads(text) | {"result": {}}),
        lambda text: json.dumps(json.loads(text) | {"settings": 3}),
        lambda text: text.replace('"seed": 7', '"seed": 70'),
        lambda text: text.replace('"test_score": 0.5', '"test_score": NaN'),
        lambda text: text.replace('"test_score": 0.5', '"test_score": null'),
    ]
    jobs = [fake_job(seed) for seed in range(len(damages))]
    paths = [record_path(tmp_path, job) for job in jobs]
    for job, path, damage in zip(jobs, paths, damages, strict=True):
        write_record(tmp_path, job, fake_record(job))
        assert read_record(tmp_path, job)[0] is not None
        path.write_text(damage(path.read_text()))
        assert read_record(tmp_path, job)[0] is None, job.seed
    outcome = run(jobs, tmp_path)  # at once: it starts processes
    assert outcome.run == len(jobs)
    assert len(outcome.notes) == len(jobs)
    for path, note in zip(paths, sorted(outcome.notes), strict=True):
        assert str(path) in note
        assert "run again" in note
    for job in jobs:
        assert read_record(tmp_path, job) == (fake_record(job), None)


def test_the_longest_runs_start_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [fake_job(0, name, log=str(log)) for name in ("cora", "ppi-rederived", "pubmed")]
    run(jobs, tmp_path)
    assert [line.split("/")[0] for line in log.read_text().split()] == [
        "ppi-rederived",
        "pubmed",
        "cora",
    ]


def test_killed_and_started_again(tmp_path: Path) -> None:
    """What was finished is kept; only what was not is run again."""
    log = tmp_path / "log"
    jobs = [fake_job(seed, log=str(log), sleep=0.3) for seed in range(8)]
    code = (
        "from pathlib import Path\n"
        "from tests.paper.fakes import fake_job, run_fake\n"
        "from lgcn.paper.runner import run_jobs\n"
        f"jobs = [fake_job(seed, log={str(log)!r}, sleep=0.3) for seed in range(8)]\n"
        f"run_jobs(jobs, Path({str(tmp_path)!r}), run_fake, processes=2)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_for(lambda: len(list(tmp_path.rglob("seed-*.json"))) >= 2)
    program.kill()
    program.wait()
    kept = {job.id for job in jobs if read_record(tmp_path, job)[0] is not None}
    assert 2 <= len(kept) < 8
    outcome = run(jobs, tmp_path, processes=2)
    assert (outcome.reused, outcome.run, outcome.notes) == (len(kept), 8 - len(kept), [])
    starts = Counter(log.read_text().split())
    assert starts.keys() == {job.id for job in jobs}
    assert all(starts[name] == 1 for name in kept)
    assert sum(starts.values()) <= 8 + 2  # two were in progress
