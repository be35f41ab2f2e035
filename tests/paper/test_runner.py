"""Resuming: what has a record is not run again; what is damaged or foreign is."""

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lgcn.paper.jobs import Job
from lgcn.paper.pool import Failure
from lgcn.paper.records import Records, read_records
from lgcn.paper.runner import Outcome, run_jobs

from .fakes import fake_job, fake_record, run_fake, wait_for, write_fake


def run(jobs: list[Job], folder: Path, **options: Any) -> Outcome:
    return run_jobs({"table2": jobs}, folder, run_fake, **options)


def found(folder: Path, job: Job) -> dict[str, Any] | None:
    return Records(folder).find(job)[0]


def test_runs_once_and_never_again(tmp_path: Path) -> None:
    log = tmp_path / "log"
    jobs = [fake_job(seed, log=str(log)) for seed in range(3)]
    calls: list[tuple[str, Any, int, int]] = []
    outcome = run([*jobs, jobs[0]], tmp_path, on_run=lambda *call: calls.append(call))
    assert (outcome.run, outcome.reused, outcome.failed, outcome.notes) == (3, 0, [], [])
    assert sorted(log.read_text().split()) == [job.id for job in jobs]
    assert [call[2:] for call in calls] == [(1, 3), (2, 3), (3, 3)]
    for job in jobs:
        assert found(tmp_path, job) == fake_record(job)
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
    assert [record["job"]["seed"] for record in read_records(tmp_path / "records")] == [5]
    assert run([*bad, fake_job(5)], tmp_path).reused == 1


def test_damaged_and_foreign_records_are_run_again(tmp_path: Path) -> None:
    file = tmp_path / "records" / "table2.jsonl"
    lines: list[Callable[[str], str]] = [  # lines that say nothing about any job
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: "null",
        lambda text: "[" * 100_000,
    ]
    records: list[Callable[[str], str]] = [  # records that cannot be used
        lambda text: json.dumps(json.loads(text) | {"format": 99}),
        lambda text: json.dumps(json.loads(text) | {"result": {}}),
        lambda text: json.dumps(json.loads(text) | {"settings": 3}),
        lambda text: re.sub(r'"test_score": [0-9.]+', '"test_score": NaN', text),
        lambda text: re.sub(r'"test_score": [0-9.]+', '"test_score": null', text),
    ]
    damages = [*lines, *records, lambda text: text.replace('"seed": 9', '"seed": 90')]
    jobs = [fake_job(seed) for seed in range(len(damages))]
    write_fake(tmp_path, *(fake_record(job) for job in jobs))
    texts = file.read_text().splitlines()
    assert all(found(tmp_path, job) is not None for job in jobs)
    file.write_text("\n".join(damage(text) for damage, text in zip(damages, texts, strict=True)))
    assert all(found(tmp_path, job) is None for job in jobs)
    outcome = run(jobs, tmp_path)  # at once: it starts processes
    assert outcome.run == len(jobs)
    ignored = [note for note in outcome.notes if "ignored" in note]
    again = [note for note in outcome.notes if "run again" in note]
    assert len(outcome.notes) == len(ignored) + len(again)
    assert len(ignored) == len(lines)
    assert [note.split()[1] for note in ignored] == ["1", "2", "3", "4"]
    assert [job.id for job in jobs if any(job.id in note for note in again)] == [
        job.id for job in jobs[len(lines) : -1]
    ]
    assert all(str(file) in note for note in outcome.notes)
    for job in jobs:
        assert found(tmp_path, job) == fake_record(job)
    assert len(read_records(file)) == len(jobs) + 1  # the one of another job is kept


def test_a_run_that_two_tables_need_has_one_record(tmp_path: Path) -> None:
    shared, own = fake_job(0), fake_job(1)
    outcome = run_jobs({"text": [shared], "best": [own, shared]}, tmp_path, run_fake)
    assert outcome.run == 2
    assert read_records(tmp_path / "records" / "text.jsonl") == [fake_record(shared)]
    assert read_records(tmp_path / "records" / "best.jsonl") == [fake_record(own)]
    assert run_jobs({"table4": [shared, own]}, tmp_path, run_fake).reused == 2
    write_fake(tmp_path, fake_record(shared) | {"format": 99}, table="table4")
    assert run_jobs({"table4": [shared]}, tmp_path, run_fake).run == 1  # and replaced in its file
    assert read_records(tmp_path / "records" / "text.jsonl") == [fake_record(shared)]
    assert not (tmp_path / "records" / "table4.jsonl").exists()


def test_two_programs_add_to_one_file(tmp_path: Path) -> None:
    jobs = [fake_job(seed) for seed in range(40)]
    halves = [
        threading.Thread(
            target=lambda own: [Records(tmp_path).add("text", fake_record(job)) for job in own],
            args=(jobs[start::2],),
        )
        for start in (0, 1)
    ]
    for half in halves:
        half.start()
    for half in halves:
        half.join()
    assert read_records(tmp_path / "records") == [fake_record(job) for job in jobs]


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
        f"run_jobs({{'text': jobs}}, Path({str(tmp_path)!r}), run_fake, processes=2)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = subprocess.Popen([sys.executable, "-c", code], env=environment)
    wait_for(lambda: sum(found(tmp_path, job) is not None for job in jobs) >= 2)
    program.kill()
    program.wait()
    kept = {job.id for job in jobs if found(tmp_path, job) is not None}
    assert 2 <= len(kept) < 8
    outcome = run(jobs, tmp_path, processes=2)
    assert (outcome.reused, outcome.run, outcome.notes) == (len(kept), 8 - len(kept), [])
    starts = Counter(log.read_text().split())
    assert starts.keys() == {job.id for job in jobs}
    assert all(starts[name] == 1 for name in kept)
    assert sum(starts.values()) <= 8 + 2  # two were in progress
