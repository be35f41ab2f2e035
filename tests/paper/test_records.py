"""Records of runs: what they say, and when they no longer count."""

import json
from pathlib import Path

import pytest
import torch

from lgcn.errors import LGCNError
from lgcn.paper.jobs import Job, full_settings, make_job
from lgcn.paper.records import (
    machine,
    make_record,
    read_record,
    record_path,
    run_and_record,
    write_record,
)

from .fakes import fake_job, fake_record, fake_result


@pytest.fixture(scope="module")
def job() -> Job:
    return make_job("lgcn", "digits", 2, {"preset": "released", "max_epochs": 2, "k": 4})


def test_a_real_record(job: Job, tmp_path: Path) -> None:
    record = run_and_record(job)
    write_record(tmp_path, job, record)
    path = record_path(tmp_path, job)
    assert path == tmp_path / "runs" / "digits" / path.parent.name / "seed-2.json"
    read = json.loads(path.read_text())
    assert list(read) == ["format", "job", "command", "settings", "result", "machine"]
    assert read["job"] == job.to_dict()
    command = "lgcn train --dataset digits --preset released --seed 2 --set k=4 --set max_epochs=2"
    assert read["command"] == command
    assert read["settings"]["optimizer"] == "nadam"
    assert read["settings"]["max_epochs"] == read["result"]["epochs"] == 2
    assert read["result"]["metric"] == "accuracy"
    assert 0 <= read["result"]["test_score"] <= read["result"]["test_score_released_rule"] <= 1
    assert read["machine"].keys() >= {"cpu", "cores", "threads", "python", "torch", "lgcn"}
    assert "gpu" not in read["machine"]
    assert str(Path.home()) not in path.read_text()
    assert str(Path.cwd()) not in path.read_text()
    # What was read is what was written, tuples being lists in JSON.
    assert read_record(tmp_path, job)[0] == json.loads(json.dumps(record))


def test_a_changed_preset_makes_records_stale(job: Job, tmp_path: Path) -> None:
    record = make_record(job, fake_result(), {})
    write_record(tmp_path, job, record)
    assert read_record(tmp_path, job) == (json.loads(json.dumps(record)), None)
    write_record(tmp_path, job, record | {"settings": record["settings"] | {"lr": 0.2}})
    found, why = read_record(tmp_path, job)
    assert found is None
    assert why is not None
    assert "lr" in why


def test_a_setting_newer_than_the_record_had_its_default(job: Job, tmp_path: Path) -> None:
    record = make_record(job, fake_result(), {})
    before = {key: value for key, value in full_settings(job).items() if key != "heads"}
    write_record(tmp_path, job, record | {"settings": before})
    assert read_record(tmp_path, job)[0] is not None
    before.pop("optimizer")  # of which the default is another
    write_record(tmp_path, job, record | {"settings": before})
    assert read_record(tmp_path, job)[0] is None


def test_a_missing_record_is_no_damage(tmp_path: Path) -> None:
    assert read_record(tmp_path, fake_job()) == (None, None)


def test_a_folder_in_place_of_a_record(tmp_path: Path) -> None:
    record_path(tmp_path, fake_job()).mkdir(parents=True)
    found, why = read_record(tmp_path, fake_job())
    assert found is None
    assert why is not None


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_run_without_a_score_is_no_result(value: float | None) -> None:
    with pytest.raises(LGCNError, match="test score"):
        make_record(fake_job(), fake_result(test_score=value), {})


def test_only_what_is_known_is_kept() -> None:
    result = fake_result(out="/home/somebody/run", history=[1], nodes_per_batch=[644])
    kept = make_record(fake_job(), result, {})["result"]
    assert kept["nodes_per_batch"] == [644]
    assert "out" not in kept
    assert "history" not in kept


def test_records_are_a_line_for_each_part(tmp_path: Path) -> None:
    write_record(tmp_path, fake_job(), fake_record(fake_job()))
    lines = record_path(tmp_path, fake_job()).read_text().splitlines()
    assert len(lines) == 6


def test_a_gpu_is_named_with_the_precision_of_its_products(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("lgcn.training.setup.pick_device", lambda name: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    before = torch.get_float32_matmul_precision()
    try:
        for precision in ("highest", "high"):
            torch.set_float32_matmul_precision(precision)
            found = machine("cuda")
            assert (found["gpu"], found["float32_products"]) == ("a GPU", precision)
    finally:
        torch.set_float32_matmul_precision(before)


def test_the_machine_has_versions() -> None:
    assert machine("cpu")["torch"] == torch.__version__


def test_a_record_that_is_nested_deeply_is_damaged(job: Job, tmp_path: Path) -> None:
    record_path(tmp_path, job).parent.mkdir(parents=True)
    record_path(tmp_path, job).write_text("[" * 100_000)
    record, why = read_record(tmp_path, job)
    assert record is None
    assert "is damaged" in why
