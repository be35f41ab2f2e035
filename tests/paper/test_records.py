"""Records of runs: what they say, and when they no longer count."""

import json
import re
from pathlib import Path

import pytest
import torch

from lgcn.errors import DataError, LGCNError, WriteError
from lgcn.paper.jobs import Job, full_settings, make_job
from lgcn.paper.records import Records, machine, make_record, read_records, run_and_record

from .fakes import fake_job, fake_record, fake_result, write_fake


@pytest.fixture(scope="module")
def job() -> Job:
    return make_job("lgcn", "digits", 2, {"preset": "released", "max_epochs": 2, "k": 4})


def test_a_real_record(job: Job, tmp_path: Path) -> None:
    record = run_and_record(job)
    Records(tmp_path).add("table4", record)
    path = tmp_path / "records" / "table4.jsonl"
    [read] = read_records(path)
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
    assert Records(tmp_path).find(job)[0] == json.loads(json.dumps(record))


def test_a_changed_preset_makes_records_stale(job: Job, tmp_path: Path) -> None:
    record = make_record(job, fake_result(), {})
    write_fake(tmp_path, record)
    assert Records(tmp_path).find(job) == (json.loads(json.dumps(record)), None)
    write_fake(tmp_path, record | {"settings": record["settings"] | {"lr": 0.2}})
    found, why = Records(tmp_path).find(job)
    assert found is None
    assert why is not None
    assert "lr" in why


def test_a_setting_newer_than_the_record_had_its_default(job: Job, tmp_path: Path) -> None:
    record = make_record(job, fake_result(), {})
    before = {key: value for key, value in full_settings(job).items() if key != "heads"}
    write_fake(tmp_path, record | {"settings": before})
    assert Records(tmp_path).find(job)[0] is not None
    before.pop("optimizer")  # whose default is another
    write_fake(tmp_path, record | {"settings": before})
    assert Records(tmp_path).find(job)[0] is None


def test_a_missing_record_is_no_damage(tmp_path: Path) -> None:
    assert Records(tmp_path).find(fake_job()) == (None, None)
    with pytest.raises(DataError, match="no records"):
        read_records(tmp_path)
    with pytest.raises(DataError, match="no records"):
        read_records(tmp_path / "table2.jsonl")


def test_a_file_that_cannot_be_read_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "records" / "table2.jsonl"
    path.mkdir(parents=True)
    with pytest.raises(DataError, match=re.escape(str(path))):
        Records(tmp_path)


def test_a_folder_that_cannot_be_made_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "records").write_text("a file")
    with pytest.raises(WriteError, match=re.escape(str(tmp_path / "records"))):
        write_fake(tmp_path, fake_record(fake_job()))


def test_lines_are_sorted_and_one_per_run(tmp_path: Path) -> None:
    jobs = [fake_job(seed, dataset) for dataset in ("cora", "pubmed") for seed in (2, 9, 10)]
    for job in reversed(jobs):
        write_fake(tmp_path, fake_record(job))
    path = tmp_path / "records" / "table2.jsonl"
    before = path.read_text()
    assert [json.loads(line)["job"] for line in before.splitlines()] == [j.to_dict() for j in jobs]
    write_fake(tmp_path, fake_record(jobs[1]))
    assert path.read_text() == before
    write_fake(tmp_path, fake_record(jobs[1], score=0.9))
    changed = zip(before.splitlines(), path.read_text().splitlines(), strict=True)
    assert [old == new for old, new in changed] == [True, False, True, True, True, True]
    assert [path.name for path in path.parent.iterdir()] == ["table2.jsonl"]


def test_a_damaged_line_is_an_error_to_a_reader(tmp_path: Path) -> None:
    write_fake(tmp_path, *(fake_record(fake_job(seed)) for seed in range(3)))
    path = tmp_path / "records" / "table2.jsonl"
    path.write_text(path.read_text()[:-100])
    with pytest.raises(DataError, match=r"table2\.jsonl.* line 3"):
        read_records(path)
    [damaged] = Records(tmp_path).damaged
    assert "line 3" in damaged


def test_pandas_reads_records(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    write_fake(tmp_path, *(fake_record(fake_job(seed)) for seed in range(3)))
    folder = tmp_path / "records"
    runs = pandas.json_normalize(read_records(folder))
    assert runs.groupby(["job.dataset"])["result.test_score"].mean()["cora"] == pytest.approx(0.51)
    assert len(pandas.read_json(folder / "table2.jsonl", lines=True)) == 3


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
